/* A message to and fro between the first process and the last one, the others waiting: latency by one of a
   byte, bandwidth by one of a mebibyte. Each round trip is timed, since a median says more than a mean. */
#define SPINS                               /* while it waits: a sleep would be longer than a message */
#include "common.h"

#define LONG (1 << 20)
#define WARM 10

static char message[LONG];

/* Sorted one-way seconds of `rounds` round trips of a message of so many bytes, on the first process. */
static void times(int bytes, int rounds, double *seconds)
{
    int last = ranks_ - 1;
    for (int i = -WARM; i < rounds; i++) {
        double began = MPI_Wtime();
        if (rank_ == 0) {
            MPI_Send(message, bytes, MPI_BYTE, last, 0, MPI_COMM_WORLD);
            MPI_Recv(message, bytes, MPI_BYTE, last, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else if (rank_ == last) {
            MPI_Recv(message, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(message, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
        }
        if (i >= 0)
            seconds[i] = (MPI_Wtime() - began) / 2;
    }
    qsort(seconds, (size_t) rounds, sizeof *seconds, by_size);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
    int rounds = argc == 3 ? atoi(argv[1]) : 0, long_rounds = argc == 3 ? atoi(argv[2]) : 0;
    if (rounds < 1 || long_rounds < 1 || ranks_ < 2)
        fail("usage, by two processes or more: %s ROUNDS LONG_ROUNDS", argv[0]);
    double *small = array((size_t) rounds, sizeof *small);
    double *big = array((size_t) long_rounds, sizeof *big);
    times(1, rounds, small);
    times(LONG, long_rounds, big);
    if (rank_ == 0)
        printf("{\"rounds\": %d, \"latency_us\": %.3f, \"least_latency_us\": %.3f, "
               "\"p95_latency_us\": %.3f, \"bandwidth_mb_per_s\": %.3f, \"compiler\": \"%s\"}\n",
               rounds, small[rounds / 2] * 1e6, small[0] * 1e6, small[rounds * 95 / 100] * 1e6,
               LONG / big[long_rounds / 2] / 1e6, __VERSION__);
    MPI_Finalize();
    return 0;
}
