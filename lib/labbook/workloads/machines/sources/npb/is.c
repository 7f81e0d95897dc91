/* IS: integers ranked, ten times over. NAS-95-020, kernel IS.

   A key's rank is the number of smaller keys. Keys go to the process that ranks their value; which values
   are whose is decided anew each time, from how many keys lie in each of many buckets. */
#include "common.h"

#define ITERATIONS 10
#define LOG2_BUCKETS 10
#define BUCKETS (1 << LOG2_BUCKETS)
#define TESTED 5
#define COUNTED (BUCKETS + TESTED)

static const int LOG2_KEYS[] = {16, 20, 23, 25, 27};
static const int LOG2_MOST[] = {11, 16, 19, 21, 23};        /* keys are below 2^this */
/* Where five keys stand and which ranks these have: `rank + way * (iteration - less)`, where way is 1 or
   -1 as the keys that each iteration changes lie below or above. Class A's are in NAS-95-020, the others'
   came with NPB 2 and 3. */
static const struct {int place[TESTED], rank[TESTED], way[TESTED], less[TESTED];} TESTS[] = {
    {{48427, 17148, 23627, 62548, 4431}, {0, 18, 346, 64917, 65463}, {1, 1, 1, -1, -1}, {0}},
    {{357773, 934767, 875723, 898999, 404505}, {1249, 11698, 1039987, 1043896, 1048018},
     {1, 1, -1, -1, -1}, {2, 2, 0, 0, 0}},
    {{2112377, 662041, 5336171, 3642833, 4250760}, {104, 17523, 123928, 8288932, 8388264},
     {1, 1, 1, -1, -1}, {1, 1, 1, 1, 1}},
    {{41869, 812306, 5102857, 18232239, 26860214}, {33422937, 10244, 59149, 33135281, 99},
     {-1, 1, 1, -1, 1}, {0}},
    {{44172927, 72999161, 74326391, 129606274, 21736814},
     {61147, 882988, 266290, 133997595, 133525895}, {1, 1, 1, -1, -1}, {0}}};

static int size, count, shift;              /* the size; keys of a process; of a key to its bucket */
static int *keys, *sorted;                  /* own keys; own keys by bucket */
static int *got, room, gots;                /* keys whose values are this process's, of all processes */
static int *smaller, lowest, values;        /* keys below each own value; the first one, and how many */
static int (*found)[TESTED];                /* [iteration] ranks, where these keys are ours */

static void make_keys(void)
{
    uint64_t x = after(USUAL_SEED, 4 * (uint64_t) rank_ * (uint64_t) count);
    double quarter = ldexp(1, LOG2_MOST[size]) / 4;
    for (int i = 0; i < count; i++) {
        double sum = draw(&x);
        for (int j = 0; j < 3; j++)
            sum += draw(&x);
        keys[i] = (int) (quarter * sum);
    }
}

/* Keys in each bucket and, in the same message, the five keys that are tested. */
static void count_buckets(int *mine, int *all)
{
    memset(mine, 0, COUNTED * sizeof *mine);
    for (int i = 0; i < count; i++)
        mine[keys[i] >> shift]++;
    for (int i = 0; i < TESTED; i++)
        if (TESTS[size].place[i] / count == rank_)
            mine[BUCKETS + i] = keys[TESTS[size].place[i] % count];
    MPI_Allreduce(mine, all, COUNTED, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

static void sort_by_bucket(const int *mine)
{
    int place[BUCKETS], next = 0;
    for (int i = 0; i < BUCKETS; i++) {
        place[i] = next;
        next += mine[i];
    }
    for (int i = 0; i < count; i++)
        sorted[place[keys[i] >> shift]++] = keys[i];
}

/* Successive buckets to each process, until it has its share of the keys: whose[p] to whose[p + 1]. */
static void share(const int *all, int *whose)
{
    int64_t keys_so_far = 0;
    int owner = 0;
    whose[0] = 0;
    for (int i = 0; i < BUCKETS; i++) {
        keys_so_far += all[i];
        while (owner < ranks_ - 1 && keys_so_far >= (int64_t) count * (owner + 1))
            whose[++owner] = i + 1;
    }
    while (owner < ranks_)
        whose[++owner] = BUCKETS;
}

static void exchange(const int *mine, const int *whose)
{
    int sent[4 * ranks_], *to = sent + ranks_, *taken = to + ranks_, *from = taken + ranks_;
    for (int p = 0, next = 0; p < ranks_; p++) {
        to[p] = next;
        for (int i = whose[p]; i < whose[p + 1]; i++)
            next += mine[i];
        sent[p] = next - to[p];
    }
    MPI_Alltoall(sent, 1, MPI_INT, taken, 1, MPI_INT, MPI_COMM_WORLD);
    gots = 0;
    for (int p = 0; p < ranks_; p++) {
        from[p] = gots;
        gots += taken[p];
    }
    if (gots > room) {
        free(got);
        got = array((size_t) (room = gots), sizeof *got);
    }
    MPI_Alltoallv(sorted, sent, to, MPI_INT, got, taken, from, MPI_INT, MPI_COMM_WORLD);
}

/* smaller[v]: keys of all processes below lowest + v; there is one more than there are values. */
static void count_smaller(const int *all, const int *whose)
{
    lowest = whose[rank_] << shift;
    values = (whose[rank_ + 1] - whose[rank_]) << shift;
    memset(smaller, 0, ((size_t) values + 1) * sizeof *smaller);
    for (int i = 0; i < gots; i++)
        smaller[got[i] - lowest + 1]++;
    for (int i = 0; i < whose[rank_]; i++)
        smaller[0] += all[i];
    for (int v = 0; v < values; v++)
        smaller[v + 1] += smaller[v];
}

static void rank_keys(int iteration)
{
    int mine[COUNTED], all[COUNTED], whose[ranks_ + 1];
    if (rank_ == 0) {
        keys[iteration] = iteration;
        keys[iteration + ITERATIONS] = (1 << LOG2_MOST[size]) - iteration;
    }
    count_buckets(mine, all);
    sort_by_bucket(mine);
    share(all, whose);
    exchange(mine, whose);
    count_smaller(all, whose);
    for (int i = 0; i < TESTED; i++) {
        int value = all[BUCKETS + i] - lowest;
        found[iteration - 1][i] = value >= 0 && value < values ? smaller[value] : 0;
    }
}

/* Puts each key at the place that its rank gives, and counts the neighbours in the wrong order. */
static int unsorted(void)
{
    int wrong = 0, first = smaller[0], edge[2] = {INT32_MAX, INT32_MIN}, edges[2 * ranks_];
    int *next = array((size_t) values, sizeof *next), *line = array((size_t) gots, sizeof *line);
    memcpy(next, smaller, (size_t) values * sizeof *next);
    for (int i = 0; i < gots; i++)
        line[next[got[i] - lowest]++ - first] = got[i];
    for (int i = 1; i < gots; i++)
        wrong += line[i - 1] > line[i];
    if (gots) {
        edge[0] = line[0];
        edge[1] = line[gots - 1];
    }
    MPI_Allgather(edge, 2, MPI_INT, edges, 2, MPI_INT, MPI_COMM_WORLD);
    for (int p = 0, last = INT32_MIN; p < ranks_; p++) {
        wrong += rank_ == 0 && last > edges[2 * p];
        last = edges[2 * p + 1] > last ? edges[2 * p + 1] : last;
    }
    int64_t sums[2] = {wrong, gots};
    MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    free(next);
    free(line);
    return sums[0] || sums[1] != (int64_t) count * ranks_;
}

static void start(void)
{
    make_keys();
    rank_keys(1);                           /* memory is touched, connections are there */
}

static void timed(Report *report)
{
    for (int i = 1; i <= ITERATIONS; i++) {
        double step = MPI_Wtime();
        rank_keys(i);
        step_done(report, step);
    }
}

static void check(Report *report)
{
    MPI_Allreduce(MPI_IN_PLACE, found, ITERATIONS * TESTED, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < ITERATIONS; i++)
        for (int j = 0; j < TESTED; j++)
            compare(report, found[i][j], TESTS[size].rank[j]
                    + TESTS[size].way[j] * (i + 1 - TESTS[size].less[j]));
    report->wrong += unsorted();
}

int main(int argc, char **argv)
{
    Report report = {.kernel = "is", .tolerance = 0, .size = begin(argc, argv)};
    size = report.size;
    count = (1 << LOG2_KEYS[size]) / ranks_;
    if (count <= 2 * ITERATIONS)
        fail("%d ranks are too many for this size", ranks_);
    shift = LOG2_MOST[size] - LOG2_BUCKETS;
    keys = array((size_t) count, sizeof *keys);
    sorted = array((size_t) count, sizeof *sorted);
    smaller = array((1u << LOG2_MOST[size]) + 1, sizeof *smaller);
    found = array(ITERATIONS, sizeof *found);
    report.operations = (double) ITERATIONS * count * ranks_;   /* keys ranked, as NPB counts */
    repeat(&report, (Run) {start, timed, check});
    return end(&report);
}
