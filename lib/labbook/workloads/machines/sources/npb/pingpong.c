/* A message to and fro between the first process and the last one, the others waiting: latency by one of a
   byte, bandwidth by one of a mebibyte. Each round trip is timed, since a median says more than a mean.

   The messages go over a TCP connection of their own, on which both ends wait in the kernel. A process that waits
   by Open MPI spins, and on a shared core it spins to the end of the scheduler's slice: it would time slices. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common.h"

#define LONG (1 << 20)
#define WARM 10

static char message[LONG];

static int on_tcp(int connection)
{
    int on = 1;
    if (connection < 0 || setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on))
        fail("rank %d: no connection for messages: %s", rank_, strerror(errno));
    return connection;
}

/* The last process: the connection of the first one, to a port that it is told of. */
static int accepted(struct sockaddr_in here)
{
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *) &here, sizeof here)) {
        here.sin_addr.s_addr = INADDR_ANY;      /* the address is that of a router before this machine */
        if (bind(listener, (struct sockaddr *) &here, sizeof here))
            fail("rank %d: no port for messages: %s", rank_, strerror(errno));
    }
    socklen_t size = sizeof here;
    if (listen(listener, 1) || getsockname(listener, (struct sockaddr *) &here, &size))
        fail("rank %d: no port for messages: %s", rank_, strerror(errno));
    MPI_Send(&here.sin_port, sizeof here.sin_port, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    int connection = on_tcp(accept(listener, NULL, NULL));
    close(listener);
    return connection;
}

/* The first process: the connection to the last one. */
static int connected(struct sockaddr_in there)
{
    MPI_Recv(&there.sin_port, sizeof there.sin_port, MPI_BYTE, ranks_ - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    int connection = on_tcp(socket(AF_INET, SOCK_STREAM, 0));
    if (connect(connection, (struct sockaddr *) &there, sizeof there))
        fail("rank %d: no connection for messages: %s", rank_, strerror(errno));
    return connection;
}

static void send_all(int connection, int bytes)
{
    for (int sent = 0; sent < bytes;) {
        ssize_t more = send(connection, message + sent, (size_t) (bytes - sent), MSG_NOSIGNAL);
        if (more < 0)
            fail("rank %d: a message was not sent: %s", rank_, strerror(errno));
        sent += (int) more;
    }
}

static void receive_all(int connection, int bytes)
{
    for (int got = 0; got < bytes;) {
        ssize_t more = recv(connection, message + got, (size_t) (bytes - got), MSG_WAITALL);
        if (more <= 0)
            fail("rank %d: a message did not come: %s", rank_, more ? strerror(errno) : "the other end closed");
        got += (int) more;
    }
}

/* Sorted one-way seconds of `rounds` round trips of a message of so many bytes, on the first process. */
static void times(int connection, int bytes, int rounds, double *seconds)
{
    for (int i = -WARM; i < rounds; i++) {
        double began = MPI_Wtime();
        if (rank_ == 0) {
            send_all(connection, bytes);
            receive_all(connection, bytes);
        } else {
            receive_all(connection, bytes);
            send_all(connection, bytes);
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
    struct sockaddr_in last = {.sin_family = AF_INET};
    int rounds = argc == 4 ? atoi(argv[2]) : 0, long_rounds = argc == 4 ? atoi(argv[3]) : 0;
    if (rounds < 1 || long_rounds < 1 || ranks_ < 2 || inet_pton(AF_INET, argv[1], &last.sin_addr) != 1)
        fail("usage, by two processes or more: %s ADDRESS_OF_THE_LAST ROUNDS LONG_ROUNDS", argv[0]);
    if (rank_ == 0 || rank_ == ranks_ - 1) {
        double *small = array((size_t) rounds, sizeof *small);
        double *big = array((size_t) long_rounds, sizeof *big);
        int connection = rank_ ? accepted(last) : connected(last);
        times(connection, 1, rounds, small);
        times(connection, LONG, long_rounds, big);
        if (rank_ == 0)
            printf("{\"rounds\": %d, \"latency_us\": %.3f, \"least_latency_us\": %.3f, "
                   "\"p95_latency_us\": %.3f, \"bandwidth_mb_per_s\": %.3f, \"compiler\": \"%s\"}\n",
                   rounds, small[rounds / 2] * 1e6, small[0] * 1e6, small[rounds * 95 / 100] * 1e6,
                   LONG / big[long_rounds / 2] / 1e6, __VERSION__);
        close(connection);
    }
    MPI_Finalize();
    return 0;
}
