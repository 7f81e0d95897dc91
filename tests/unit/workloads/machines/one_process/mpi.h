/* MPI for one process, as far as the NAS kernels use it: so their results are tested without an MPI. */
#ifndef ONE_PROCESS_MPI_H
#define ONE_PROCESS_MPI_H

#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef int MPI_Comm;
typedef int MPI_Status;
typedef size_t MPI_Datatype;                /* its size */

enum {MPI_COMM_WORLD, MPI_SUM = 0, MPI_MAX, MPI_PROC_NULL = -2};
#define MPI_BYTE ((size_t) 1)
#define MPI_INT sizeof(int)
#define MPI_INT64_T ((size_t) 8)
#define MPI_DOUBLE sizeof(double)
#define MPI_C_DOUBLE_COMPLEX (2 * sizeof(double))
#define MPI_IN_PLACE ((void *) 1)
#define MPI_STATUS_IGNORE ((MPI_Status *) 0)

static inline int copied(const void *from, void *to, size_t bytes)
{
    if (from != MPI_IN_PLACE && from != to)
        memmove(to, from, bytes);
    return 0;
}

static inline double MPI_Wtime(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double) now.tv_sec + (double) now.tv_nsec * 1e-9;
}

#define MPI_Init(count, words) ((void) (count), (void) (words))
#define MPI_Finalize() ((void) 0)
#define MPI_Abort(comm, code) exit(code)
#define MPI_Barrier(comm) ((void) (comm))
#define MPI_Comm_rank(comm, rank) (*(rank) = 0)
#define MPI_Comm_size(comm, size) (*(size) = 1)
#define MPI_Comm_split(comm, colour, key, made) ((void) (colour), (void) (key), *(made) = (comm))
#define MPI_Allreduce(from, to, n, type, op, comm) copied(from, to, (size_t) (n) * (type))
#define MPI_Reduce_scatter_block(from, to, n, type, op, comm) copied(from, to, (size_t) (n) * (type))
#define MPI_Allgather(from, n, type, to, m, same, comm) copied(from, to, (size_t) (n) * (type))
#define MPI_Alltoall(from, n, type, to, m, same, comm) copied(from, to, (size_t) (n) * (type))
#define MPI_Alltoallv(from, n, at, type, to, m, put, same, comm) \
    ((void) (at), (void) (m), (void) (put), copied(from, to, (size_t) (n)[0] * (type)))
#define MPI_Sendrecv(from, n, type, whom, tag, to, m, same, who, label, comm, status) \
    ((void) (whom), (who) == MPI_PROC_NULL ? 0 : copied(from, to, (size_t) (n) * (type)))

/* There is nobody to send to. */
#define MPI_Send(from, n, type, whom, tag, comm) ((void) (from), (void) (whom), abort())
#define MPI_Recv(to, n, type, whom, tag, comm, status) ((void) (to), (void) (whom), abort())

#endif
