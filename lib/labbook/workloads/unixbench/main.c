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

static const struct {const char *name; double (*run)(void);} TESTS[] = {
    {"dhrystone", dhrystone}, {"whetstone", whetstone}, {"execl", NULL}, {"copy_1024", copy_1024},
    {"copy_256", copy_256}, {"copy_4096", copy_4096}, {"pipe", pipe_throughput},
    {"context", context_switching}, {"spawn", process_creation}, {"shell_1", shell_1},
    {"shell_8", shell_8}, {"syscall", system_calls}, {NULL, NULL}};

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

/* One copy: waits until `start` is closed, works, and tells. */
static void work(int test, double seconds, int copy, int start, int result)
{
    char byte, folder[32];
    const char *program = this_program();
    snprintf(folder, sizeof folder, "copy-%d", copy);
    if (chdir(folder))
        fail(folder);
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

static void begin_copies(int test, double seconds, int copies, int *start, int *result)
{
    if (pipe(start) || pipe(result))
        fail("pipe");
    for (int copy = 0; copy < copies; copy++) {
        char folder[32];
        snprintf(folder, sizeof folder, "copy-%d", copy);
        if (mkdir(folder, 0755) && errno != EEXIST)
            fail(folder);
        pid_t child = fork();
        if (child < 0)
            fail("fork");
        if (child == 0) {
            close(start[1]);
            close(result[0]);
            work(test, seconds, copy, start[0], result[1]);
        }
    }
    close(start[0]);
    close(result[1]);
}

static int run(int test, double seconds, int copies)
{
    int start[2], result[2], ended, failed = 0, got = 0;
    static Result found[MOST_COPIES];
    begin_copies(test, seconds, copies, start, result);
    close(start[1]);                        /* all at once */
    while (got < copies && read(result[0], &found[got], sizeof *found) == sizeof *found)
        got++;
    while (wait(&ended) > 0 || errno == EINTR)
        failed |= ended;
    if (failed || got != copies) {
        fprintf(stderr, "%s: %d of %d copies came to an end\n", TESTS[test].name, got, copies);
        return 2;
    }
    printf("{\"test\": \"%s\", \"copies\": %d, \"counts\": [", TESTS[test].name, copies);
    for (int i = 0; i < copies; i++)
        printf("%s%.6f", i ? ", " : "", found[i].count);
    printf("], \"took_s\": [");
    for (int i = 0; i < copies; i++)
        printf("%s%.6f", i ? ", " : "", found[i].took_s);
    printf("], \"compiler\": \"%s\"}\n", __VERSION__);
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
