/* A disk whose requests take the time of a model: a FUSE file system with one file, `disk`, for a
 * loop device. Its data lie in a sparse file and are moved at once; the reply is given at the time
 * that the model says.
 *
 *     modelled_disk file=F mount=M log=L socket=S size=BYTES order=fcfs|elevator channels=N
 *                   overhead_ns= after_ns= bytes_per_s= track_ns= stroke_ns= turn_ns= span= owner=UID
 *
 * A request occupies a channel for overhead + seek + rotation + size / rate, and its reply follows
 * `after_ns` later, which occupies nothing. Channels share the rate: one transfer is after the other.
 * seek = track + (stroke - track) * sqrt(distance / span), where the span is the size of the whole disk,
 * of which this is the beginning. Rotation: until the sector comes round, from the angle at the seek's end.
 * A request that begins where the last one ended has no seek, no rotation and no `after_ns`. A request starts when it arrives or, by the model's clock,
 * when a channel is free, so that late awakenings do not add up. The next request is chosen when a
 * channel is free: the oldest (fcfs), or the one with the next place upwards (elevator, C-LOOK).
 * A flush is answered when all writes before it are done; there is no write cache.
 *
 * It does nothing before it reads a byte from standard input, so that it is written down first, and
 * prints `ready` when the file is there. SIGUSR1: no more waiting, for a disk that goes away.
 * A line to the socket is a command (`status`, `order NAME`, `hurry on`, `hurry off`), the answer a line of JSON.
 * The log is a ring of `struct entry`, one a served request.
 *
 * One program in four files, compiled as one text: this one has what all share and the model's times,
 * requests.c the queue, file_system.c what FUSE calls, main.c commands and the start.
 */

#define FUSE_USE_VERSION 35
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <malloc.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#ifndef PR_SET_IO_FLUSHER
#define PR_SET_IO_FLUSHER 57
#endif

enum { FOLDER = FUSE_ROOT_ID, FILE_INODE = 2, LARGEST = 1 << 20, AT_ONCE = 128, MOST_CHANNELS = 64 };
#define NAME "disk"
#define LOG_ENTRIES (1u << 17)
#define LATE_NS 1000000     /* a reply this much after the model's time is counted as late */
#define FOR_EVER 1e6        /* seconds that the kernel may keep names and attributes */

struct entry {              /* 64 bytes; read by served.py */
    uint64_t arrived_ns, started_ns, ended_ns, replied_ns;      /* CLOCK_MONOTONIC; ended: the model's */
    uint64_t place;
    uint32_t size, seek_ns, rotation_ns, pid;
    uint16_t waiting;       /* requests that waited when this one was chosen, itself included */
    uint8_t write, failed;
    uint32_t number;        /* from 0; modulo 2^32 */
};

struct request {
    struct request *next;
    fuse_req_t reply_to;
    struct entry log;
    uint64_t number, due_ns;
    uint64_t left;          /* writes that a flush waits for */
    char *data;             /* of a read, from when it is served */
    int error, goes_on;     /* goes on: begins where the last one ended */
};

static struct { const char *file, *mount, *log, *socket, *order; } text;
static uint64_t size, channels = 1, overhead_ns, after_ns, bytes_per_s, track_ns, stroke_ns, turn_ns, span, owner;
static int data_fd, log_fd;
static volatile sig_atomic_t in_a_hurry;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t arrival = PTHREAD_COND_INITIALIZER, leaving = PTHREAD_COND_INITIALIZER;
static struct request *waiting, *flushes, *served_first, *served_last;  /* served: waits `after_ns` */
static uint64_t accepted, unfinished_writes, served, failed, late, modelled_ns, slept_ns, head,
                transfers_end;
static unsigned waits;
static int by_place, is_full, is_flusher;

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void sleep_until(uint64_t ns)
{
    struct timespec t = { ns / 1000000000ull, ns % 1000000000ull };
    while (!in_a_hurry && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        ;
}

static void say(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    vfprintf(stderr, format, values);
    va_end(values);
    fputc('\n', stderr);
}

/* The model: when a request that starts at `start` ends. */

static uint64_t seek_ns(uint64_t from, uint64_t to)
{
    double distance = from > to ? from - to : to - from;
    return track_ns + (uint64_t)((stroke_ns - track_ns) * sqrt(distance / span));
}

static uint64_t rotation_ns(uint64_t place, uint64_t at)
{
    uint64_t track = (uint64_t)((double)bytes_per_s * turn_ns / 1e9);
    uint64_t sector = (uint64_t)((double)(place % track) / track * turn_ns);
    return (sector + turn_ns - at % turn_ns) % turn_ns;
}

static void serve_by_model(struct request *request, uint64_t start)
{
    struct entry *log = &request->log;
    uint64_t t = start + overhead_ns;
    request->goes_on = log->place == head;
    if (turn_ns && !request->goes_on) {
        log->seek_ns = seek_ns(head, log->place);
        log->rotation_ns = rotation_ns(log->place, t + log->seek_ns);
    }
    t += log->seek_ns + log->rotation_ns;
    if (channels > 1 && t < transfers_end && !in_a_hurry)
        t = transfers_end;
    t += (uint64_t)((double)log->size * 1e9 / bytes_per_s);
    log->started_ns = start;
    log->ended_ns = transfers_end = t;
    head = log->place + log->size;
}
