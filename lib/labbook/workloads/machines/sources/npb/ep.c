/* EP: pairs of Gaussian deviates, made where they are counted. NAS-95-020, kernel EP.

   2^M pairs of uniform numbers in (-1, 1); those within the unit circle become deviates X and Y, whose
   sums are verified, and which are counted by the integer part of the larger one. */
#include "common.h"

#define SEED 271828183ULL
#define BATCH (1 << 16)                     /* pairs between two jumps in the sequence */
#define RINGS 10

static const int LOG2_PAIRS[] = {24, 25, 28, 30, 32};
/* Class A's and B's are in NAS-95-020; the others' came with NPB 2 and 3. */
static const double SUMS[][2] = {
    {-3.247834652034740e+3, -6.958407078382297e+3},
    {-2.863319731645753e+3, -6.320053679109499e+3},
    {-4.295875165629892e+3, -1.580732573678431e+4},
    {4.033815542441498e+4, -2.660669192809235e+4},
    {4.764367927995374e+4, -8.084072988043731e+4}};

/* The numbers first and the square roots and logarithms of few of them afterwards: a dependent
   chain of products, and a loop without one. */
static void batch(uint64_t number, double *u, double *sums, double *rings)
{
    uint64_t x = after(SEED, number * 2 * BATCH);
    for (int i = 0; i < 2 * BATCH; i++)
        u[i] = 2 * draw(&x) - 1;
    for (int i = 0; i < BATCH; i++) {
        double a = u[2 * i], b = u[2 * i + 1], t = a * a + b * b;
        if (t > 1)
            continue;
        double scale = sqrt(-2 * log(t) / t);
        a *= scale;
        b *= scale;
        rings[(int) fmax(fabs(a), fabs(b))]++;
        sums[0] += a;
        sums[1] += b;
    }
}

static int size;
static double *u, mine[2 + RINGS], all[2 + RINGS];

static void start(void)
{
    memset(mine, 0, sizeof mine);
}

static void timed(Report *report)
{
    double began = MPI_Wtime();
    uint64_t batches = (1ULL << LOG2_PAIRS[size]) / BATCH;
    for (uint64_t i = (uint64_t) rank_; i < batches; i += (uint64_t) ranks_)
        batch(i, u, mine, mine + 2);
    MPI_Allreduce(mine, all, 2 + RINGS, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    step_done(report, began);
}

static void check(Report *report)
{
    for (int i = 0; i < 2; i++)
        compare(report, all[i], SUMS[size][i]);
}

int main(int argc, char **argv)
{
    Report report = {.kernel = "ep", .tolerance = 1e-8, .size = begin(argc, argv)};
    size = report.size;
    u = array(2 * BATCH, sizeof *u);
    report.operations = ldexp(1, LOG2_PAIRS[size] + 1);     /* numbers drawn, as NPB counts */
    repeat(&report, (Run) {start, timed, check});
    return end(&report);
}
