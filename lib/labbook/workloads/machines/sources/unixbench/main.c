/* unixbench_style TEST SECONDS COPIES: so many copies of one test at a time, each in a folder of its own
   below the current one. Prints one line of JSON: what each copy counted, and in which time. */
#include "bench.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOST_COPIES 1024
#define AGAIN "execl-again"                 /* what the execl test calls itself with */

typedef struct {double count, took_s;} Result;

static const struct {const char *name; void (*prepare)(void); double (*run)(void);} TESTS[] = {
    {"dhrystone", NULL, dhrystone}, {"whetstone", NULL, whetstone}, {"execl", NULL, NULL},
    {"copy_1024", files_1024, copy_files}, {"copy_256", files_256, copy_files},
    {"copy_4096", files_4096, copy_files}, {"pipe", NULL, pipe_throughput},
    {"context", NULL, context_switching}, {"spawn", NULL, process_creation}, {"shell_1", text, shell_1},
    {"shell_8", text, shell_8}, {"syscall", NULL, system_calls}, {NULL, NULL, NULL}};

volatile sig_atomic_t over;

void fail(const char *what)
{
    perror(what);
    exit(2);
}

double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double) now.tv_sec + (double) now.tv_nsec * 1e-9;
}

static void ring(int number)
{
    (void) number;
    over = 1;
}

static void set_alarm(double seconds)
{
    struct sigaction action = {.sa_handler = ring, .sa_flags = SA_RESTART};
    double whole = floor(seconds);
    struct itimerval timer = {.it_value = {(time_t) whole, (suseconds_t) ((seconds - whole) * 1e6)}};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
}

static void tell(int result, double count, double took_s)
{
    Result found = {count, took_s};
    if (write(result, &found, sizeof found) != sizeof found)
        fail("result");
}

void execl_again(const char *program, long count, double began_s, double until_s, int result)
{
    char words[4][40];
    if (now_s() >= until_s) {
        tell(result, (double) count, now_s() - began_s);
        exit(0);
    }
    snprintf(words[0], sizeof words[0], "%ld", count + 1);
    snprintf(words[1], sizeof words[1], "%.9f", began_s);
    snprintf(words[2], sizeof words[2], "%.9f", until_s);
    snprintf(words[3], sizeof words[3], "%d", result);
    execl(program, program, AGAIN, words[0], words[1], words[2], words[3], (char *) NULL);
    fail(program);
}

static const char *this_program(void)
{
    static char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length < 0)
        fail("/proc/self/exe");
    path[length] = 0;
    return path;
}

/* One copy: prepares itself, says so, waits until `start` is closed, works, and prints what it did. */
static void work(int test, double seconds, int copy, int ready, int start, int result)
{
    char byte = 0, folder[32];
    const char *program = this_program();
    snprintf(folder, sizeof folder, "copy-%d", copy);
    if (mkdir(folder, 0755) && errno != EEXIST)
        fail(folder);
    if (chdir(folder))
        fail(folder);
    if (TESTS[test].prepare)
        TESTS[test].prepare();
    if (write(ready, &byte, 1) != 1)
        fail("ready");
    close(ready);                           /* else who waits for a copy that died waits for this one */
    if (read(start, &byte, 1))
        fail("start");
    close(start);
    double began = now_s();
    if (!TESTS[test].run)
        execl_again(program, 0, began, began + seconds, result);
    set_alarm(seconds);
    double count = TESTS[test].run();
    tell(result, count, now_s() - began);
    exit(0);
}

/* Starts all copies at once, when each is ready; `result` is where they tell. */
static void begin_copies(int test, double seconds, int copies, int *result)
{
    int start[2], ready[2];
    char byte;
    if (pipe(start) || pipe(ready) || pipe(result))
        fail("pipe");
    for (int copy = 0; copy < copies; copy++) {
        pid_t child = fork();
        if (child < 0)
            fail("fork");
        if (child == 0) {
            close(start[1]);
            close(ready[0]);
            close(result[0]);
            work(test, seconds, copy, ready[1], start[0], result[1]);
        }
    }
    close(start[0]);
    close(ready[1]);
    close(result[1]);
    for (int copy = 0; copy < copies && read(ready[0], &byte, 1) == 1; copy++)
        ;
    close(ready[0]);
    close(start[1]);
}

static void listed(const char *name, const Result *found, int copies, int times)
{
    printf(", \"%s\": [", name);
    for (int i = 0; i < copies; i++)
        printf("%s%.6f", i ? ", " : "", times ? found[i].took_s : found[i].count);
    printf("]");
}

static int run(int test, double seconds, int copies)
{
    static Result found[MOST_COPIES];
    int result[2], ended, failed = 0, got = 0;
    begin_copies(test, seconds, copies, result);
    while (got < copies && read(result[0], &found[got], sizeof *found) == sizeof *found)
        got++;
    while (wait(&ended) > 0)
        failed |= ended;
    if (failed || got != copies) {
        fprintf(stderr, "%s: %d of %d copies came to an end\n", TESTS[test].name, got, copies);
        return 2;
    }
    printf("{\"test\": \"%s\", \"copies\": %d", TESTS[test].name, copies);
    listed("counts", found, copies, 0);
    listed("took_s", found, copies, 1);
    printf(", \"compiler\": \"%s\"}\n", __VERSION__);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 6 && !strcmp(argv[1], AGAIN))
        execl_again(argv[0], atol(argv[2]), atof(argv[3]), atof(argv[4]), atoi(argv[5]));
    double seconds = argc == 4 ? atof(argv[2]) : 0;
    int copies = argc == 4 ? atoi(argv[3]) : 0, test = 0;
    while (argc == 4 && TESTS[test].name && strcmp(TESTS[test].name, argv[1]))
        test++;
    if (!(seconds >= 0.001) || copies < 1 || copies > MOST_COPIES || !TESTS[test].name) {
        fprintf(stderr, "usage: %s TEST SECONDS COPIES\n", argv[0]);
        return 2;
    }
    return run(test, seconds, copies);
}
