/* What all kernels share: the generator, arrays, sizes, and the report.

   The generator is that of NAS-95-020: x' = a x mod 2^46 with a = 5^13, and x 2^-46 is the
   number. A product modulo 2^64 keeps what is asked modulo 2^46, so unsigned integers are exact. */
#ifndef NPB_COMMON_H
#define NPB_COMMON_H

#include <math.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WAIT_NS 100000

/* In the place of the C library's, which Open MPI calls while a rank waits: it sleeps, so that ranks that share
   a core leave it to those that compute. The program is linked so that libraries find it. */
int sched_yield(void)
{
    struct timespec wait = {0, WAIT_NS};
    return nanosleep(&wait, NULL);
}

#define MULTIPLIER 1220703125ULL            /* 5^13 */
#define USUAL_SEED 314159265ULL             /* of all kernels but EP */
#define BITS_46 ((1ULL << 46) - 1)
#define MOST_RUNS 1000
#define MOST_STEPS 20000
#define TO_UNIT (1.0 / (double) (1ULL << 46))

static int rank_, ranks_;
static double timed_s_;                     /* that all timed runs together last at least */

/* The next number of the sequence, between 0 and 1. */
static inline double draw(uint64_t *x)
{
    *x = *x * MULTIPLIER & BITS_46;
    return (double) *x * TO_UNIT;
}

/* The state of a sequence begun at `seed`, after n numbers. */
static inline uint64_t after(uint64_t seed, uint64_t n)
{
    for (uint64_t a = MULTIPLIER; n; n >>= 1, a = a * a & BITS_46)
        if (n & 1)
            seed = seed * a & BITS_46;
    return seed;
}

static inline void fail(const char *words, ...)
{
    va_list more;
    va_start(more, words);
    vfprintf(stderr, words, more);
    va_end(more);
    fputc('\n', stderr);
    MPI_Abort(MPI_COMM_WORLD, 2);
    exit(2);
}

/* Zeroed; never a null pointer. */
static inline void *array(size_t count, size_t size)
{
    void *made = calloc(count ? count : 1, size);
    if (!made)
        fail("rank %d: no memory for %zu bytes", rank_, count * size);
    return made;
}

static inline int is_power_of_2(int n)
{
    return n > 0 && !(n & (n - 1));
}

/* The index among "SWABC" of the size that the command line names. Without seconds behind it one run is timed. */
static inline int begin(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
    const char *sizes = "SWABC";
    const char *found = (argc == 2 || argc == 3) && argv[1][0] ? strchr(sizes, argv[1][0]) : NULL;
    char *end = "";
    timed_s_ = argc == 3 ? strtod(argv[2], &end) : 0;
    if (!found || argv[1][1] || *end || !(timed_s_ >= 0))
        fail("usage: %s S|W|A|B|C [SECONDS]", argv[0]);
    if (!is_power_of_2(ranks_))
        fail("%d ranks: a power of two is needed", ranks_);
    return (int) (found - sizes);
}

/* What a run found, beside what is published. An error is relative, and NaN is never within. */
typedef struct {
    const char *kernel;
    int size;
    double operations, worst, tolerance;    /* operations: of a run */
    int values, steps, runs, wrong;
    double value[64];                       /* found by the last run */
    double step[MOST_STEPS], run[MOST_RUNS];    /* seconds of each iteration, on rank 0, and of each run */
} Report;

/* What a kernel does in a run: `start` and `check` are not timed. */
typedef struct {void (*start)(void), (*timed)(Report *), (*check)(Report *);} Run;

static inline void compare(Report *report, double found, double published)
{
    double off = fabs((found - published) / published);
    report->value[report->values++] = found;
    if (!(off <= report->worst) && !isnan(report->worst))
        report->worst = off;
    if (!(off <= report->tolerance))
        report->wrong++;
}

static inline void listed(const char *name, const double *numbers, int count, const char *format)
{
    printf(", \"%s\": [", name);
    for (int i = 0; i < count; i++) {
        printf(i ? ", " : "");
        if (isfinite(numbers[i]))
            printf(format, numbers[i]);
        else
            printf("null");
    }
    printf("]");
}

static inline int by_size(const void *a, const void *b)
{
    double one = *(const double *) a, other = *(const double *) b;
    return (one > other) - (one < other);
}

static inline double median(const double *numbers, int count)
{
    double *sorted = array((size_t) count, sizeof *sorted), found;
    memcpy(sorted, numbers, (size_t) count * sizeof *sorted);
    qsort(sorted, (size_t) count, sizeof *sorted, by_size);
    found = (sorted[count / 2] + sorted[(count - 1) / 2]) / 2;
    free(sorted);
    return found;
}

/* One line of JSON by rank 0. The time is the median of the runs'. */
static inline int end(Report *report)
{
    if (rank_ == 0) {
        double seconds = median(report->run, report->runs);
        printf("{\"kernel\": \"%s\", \"size\": \"%c\", \"ranks\": %d, \"seconds\": %.6f, \"mops\": %.4f, "
               "\"verified\": %s, \"error\": ", report->kernel, "SWABC"[report->size], ranks_, seconds,
               report->operations / seconds / 1e6, report->wrong ? "false" : "true");
        printf(isfinite(report->worst) ? "%.3e" : "null", report->worst);
        printf(", \"tolerance\": %g, \"compiler\": \"%s\"", report->tolerance, __VERSION__);
        listed("values", report->value, report->values, "%.16g");
        listed("iterations", report->step, report->steps, "%.6f");
        listed("runs", report->run, report->runs, "%.6f");
        printf("}\n");
    }
    MPI_Finalize();
    return 0;
}

/* Begin the clock together. */
static inline double together(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    return MPI_Wtime();
}

static inline void step_done(Report *report, double began)
{
    report->step[report->steps++] = MPI_Wtime() - began;
}

/* Run once, and again until the timed runs together last as long as the command line asks. A run's time is that of
   the slowest rank. */
static inline void repeat(Report *report, Run run)
{
    double so_far = 0, seconds;
    int steps;
    do {
        report->values = 0;
        steps = report->steps;
        run.start();
        double began = together();
        run.timed(report);
        seconds = MPI_Wtime() - began;
        MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        so_far += report->run[report->runs++] = seconds;
        run.check(report);
        steps = report->steps - steps;
    } while (so_far < timed_s_ && report->runs < MOST_RUNS && report->steps + steps <= MOST_STEPS);
}

#endif
