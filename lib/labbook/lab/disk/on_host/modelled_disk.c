/* A disk whose requests take the time of a model: a FUSE file system with one file, `disk`, for a
 * loop device. Its data lie in a sparse file and are moved at once; the reply is given at the time
 * that the model says.
 *
 *     modelled_disk file=F mount=M log=L socket=S size=BYTES order=fcfs|elevator channels=N
 *                   overhead_ns= after_ns= bytes_per_s= track_ns= stroke_ns= turn_ns= span= owner=UID
 *
 * A request occupies a channel for overhead + seek + rotation + size / rate, and its reply follows
 * `after_ns` later, which occupies nothing. Channels share the rate: one transfer is after the other. seek = track + (stroke - track) * sqrt(distance / span),
 * where the span is the size of the modelled disk, of which this is the beginning.
 * Rotation: until the sector comes round, from the angle at the seek's end. Neither for a request
 * that begins where the last one ended. A request starts when it arrives or, by the model's clock,
 * when a channel is free, so that late awakenings do not add up. The next request is chosen when a
 * channel is free: the oldest (fcfs), or the one with the next place upwards (elevator, C-LOOK).
 * A flush is answered when all writes before it are done; there is no write cache.
 *
 * It does nothing before it reads a byte from standard input, so that it is written down first, and
 * prints `ready` when the file is there. SIGUSR1: no more waiting, for a disk that goes away.
 * A line to the socket is a command (`status`, `order NAME`), the answer a line of JSON.
 * The log is a ring of `struct entry`, one a served request.
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
#define LOG_ENTRIES (1u << 19)
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
    uint64_t number, due_ns, left;
    char *data;             /* of a read, from when it is served; `left`: writes that a flush waits for */
    int error;
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
    if (turn_ns && log->place != head) {
        log->seek_ns = seek_ns(head, log->place);
        log->rotation_ns = rotation_ns(log->place, t + log->seek_ns);
    }
    t += log->seek_ns + log->rotation_ns;
    if (channels > 1 && t < transfers_end)
        t = transfers_end;
    t += (uint64_t)((double)log->size * 1e9 / bytes_per_s);
    log->started_ns = start;
    log->ended_ns = transfers_end = t;
    head = log->place + log->size;
}

/* Requests that wait. */

static struct request *choose(void)
{
    struct request **best = NULL, **lowest = NULL;
    if (!by_place)
        best = &waiting;        /* the list is in order of arrival */
    else
        for (struct request **one = &waiting; *one; one = &(*one)->next) {
            uint64_t place = (*one)->log.place;
            if (!lowest || place < (*lowest)->log.place)
                lowest = one;
            if (place >= head && (!best || place < (*best)->log.place))
                best = one;
        }
    if (!best)
        best = lowest;
    struct request *chosen = *best;
    *best = chosen->next;
    chosen->next = NULL;
    chosen->log.waiting = waits--;
    return chosen;
}

static void append(struct request **list, struct request *request)
{
    while (*list)
        list = &(*list)->next;
    *list = request;
}

static struct request *made(fuse_req_t req, size_t bytes, off_t place, int write)
{
    struct request *request = calloc(1, sizeof *request);
    if (!request)
        return NULL;
    request->reply_to = req;
    request->log.size = bytes;
    request->log.place = place;
    request->log.write = write;
    request->log.pid = fuse_req_ctx(req)->pid;
    request->log.arrived_ns = now_ns();
    return request;
}

static void enqueue(struct request *request)
{
    pthread_mutex_lock(&lock);
    request->number = accepted++;
    unfinished_writes += request->log.write;
    append(&waiting, request);
    waits++;
    pthread_cond_signal(&arrival);
    pthread_mutex_unlock(&lock);
}

/* Count a write that is done, and answer the flushes that waited for it alone. Under the lock. */
static void finish_write(uint64_t number)
{
    unfinished_writes--;
    for (struct request **one = &flushes; *one;) {
        struct request *flush = *one;
        if (flush->number > number && --flush->left == 0) {
            *one = flush->next;
            fuse_reply_err(flush->reply_to, 0);
            free(flush);
        } else
            one = &flush->next;
    }
}

static void read_data(struct request *request)
{
    size_t have = 0, wanted = request->log.size;
    request->data = malloc(wanted);
    while (request->data && have < wanted) {
        ssize_t got = pread(data_fd, request->data + have, wanted - have, request->log.place + have);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            request->error = EIO;
            say("a read at %llu failed: %s", (unsigned long long)request->log.place,
                got ? strerror(errno) : "beyond the end");
            return;
        }
        have += got;
    }
    if (!request->data)
        request->error = ENOMEM;
}

static void reply(struct request *request)
{
    struct entry *log = &request->log;
    log->replied_ns = now_ns();
    log->failed = request->error != 0;
    if (request->error)
        fuse_reply_err(request->reply_to, request->error);
    else if (log->write)
        fuse_reply_write(request->reply_to, log->size);
    else
        fuse_reply_buf(request->reply_to, request->data, log->size);
    pthread_mutex_lock(&lock);
    failed += log->failed;
    modelled_ns += log->ended_ns - log->started_ns;
    slept_ns += log->replied_ns - log->started_ns;
    late += log->replied_ns > request->due_ns + LATE_NS;
    log->number = served;
    if (pwrite(log_fd, log, sizeof *log, (served % LOG_ENTRIES) * sizeof *log) < 0)
        say("the log of served requests cannot be written: %s", strerror(errno));
    served++;
    if (log->write)
        finish_write(request->number);
    pthread_mutex_unlock(&lock);
    free(request->data);
    free(request);
}

static void *channel(void *unused)
{
    uint64_t free_at = 0;
    (void)unused;
    for (;;) {
        pthread_mutex_lock(&lock);
        while (!waiting)
            pthread_cond_wait(&arrival, &lock);
        struct request *request = choose();
        uint64_t arrived = request->log.arrived_ns;
        serve_by_model(request, arrived > free_at ? arrived : free_at);
        free_at = request->log.ended_ns;
        pthread_mutex_unlock(&lock);
        request->due_ns = free_at + after_ns;
        if (!request->log.write && !request->error)
            read_data(request);
        sleep_until(free_at);
        if (in_a_hurry)
            free_at = 0;
        if (after_ns && !in_a_hurry) {
            pthread_mutex_lock(&lock);
            *(served_first ? &served_last->next : &served_first) = request;
            served_last = request;
            pthread_cond_signal(&leaving);
            pthread_mutex_unlock(&lock);
            continue;
        }
        reply(request);
    }
    return NULL;
}

/* Replies `after_ns` after the end of the service; due times are in order but for channels' own. */
static void *leave(void *unused)
{
    (void)unused;
    for (;;) {
        pthread_mutex_lock(&lock);
        while (!served_first)
            pthread_cond_wait(&leaving, &lock);
        struct request *request = served_first;
        pthread_mutex_unlock(&lock);
        sleep_until(request->due_ns);
        pthread_mutex_lock(&lock);
        served_first = request->next;
        pthread_mutex_unlock(&lock);
        reply(request);
    }
    return NULL;
}

/* The file system: a folder with one file. */

static void fill(fuse_ino_t ino, struct stat *attributes)
{
    memset(attributes, 0, sizeof *attributes);
    attributes->st_ino = ino;
    attributes->st_nlink = 1;
    attributes->st_mode = ino == FOLDER ? S_IFDIR | 0700 : S_IFREG | 0600;
    attributes->st_size = ino == FOLDER ? 0 : size;
    attributes->st_blksize = 4096;
}

static void on_init(void *unused, struct fuse_conn_info *connection)
{
    (void)unused;
    connection->want |= connection->capable & FUSE_CAP_ASYNC_DIO;
    connection->want &= ~(unsigned)(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE);
    connection->max_write = connection->max_read = LARGEST;
    connection->max_background = connection->congestion_threshold = AT_ONCE;
}

static void on_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct fuse_entry_param entry = { .ino = FILE_INODE, .attr_timeout = FOR_EVER, .entry_timeout = FOR_EVER };
    if (parent != FOLDER || strcmp(name, NAME)) {
        fuse_reply_err(req, ENOENT);
        return;
    }
    fill(FILE_INODE, &entry.attr);
    fuse_reply_entry(req, &entry);
}

static void on_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *file)
{
    (void)file;
    struct stat attributes;
    fill(ino, &attributes);
    fuse_reply_attr(req, &attributes, FOR_EVER);
}

static void on_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *wanted, int what, struct fuse_file_info *file)
{
    (void)wanted, (void)what;   /* times, which nobody reads */
    on_getattr(req, ino, file);
}

static void on_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *file)
{
    if (ino != FILE_INODE) {
        fuse_reply_err(req, EISDIR);
        return;
    }
    file->direct_io = 1;
    fuse_reply_open(req, file);
}

static void on_readdir(fuse_req_t req, fuse_ino_t ino, size_t room, off_t from, struct fuse_file_info *file)
{
    (void)ino, (void)file;
    const char *names[] = { ".", "..", NAME };
    char entries[512];
    size_t used = 0;
    for (off_t i = from; i < 3; i++) {
        struct stat attributes;
        fill(i == 2 ? FILE_INODE : FOLDER, &attributes);
        size_t more = fuse_add_direntry(req, entries + used, sizeof entries - used, names[i], &attributes, i + 1);
        if (used + more > room || used + more > sizeof entries)
            break;
        used += more;
    }
    fuse_reply_buf(req, entries, used);
}

static void on_statfs(fuse_req_t req, fuse_ino_t ino)
{
    (void)ino;
    struct statvfs state;
    if (fstatvfs(data_fd, &state))
        fuse_reply_err(req, errno);
    else
        fuse_reply_statfs(req, &state);
}

static void on_read(fuse_req_t req, fuse_ino_t ino, size_t bytes, off_t place, struct fuse_file_info *file)
{
    (void)ino, (void)file;
    if ((uint64_t)place >= size)
        bytes = 0;
    else if (bytes > size - place)
        bytes = size - place;
    if (!bytes) {
        fuse_reply_buf(req, NULL, 0);
        return;
    }
    struct request *request = made(req, bytes, place, 0);
    if (request)
        enqueue(request);
    else
        fuse_reply_err(req, ENOMEM);
}

static void on_write(fuse_req_t req, fuse_ino_t ino, const char *data, size_t bytes, off_t place,
                     struct fuse_file_info *file)
{
    (void)ino, (void)file;
    struct request *request = made(req, bytes, place, 1);
    if (!request) {
        fuse_reply_err(req, ENOMEM);
        return;
    }
    for (size_t have = 0; have < bytes && !request->error;) {
        ssize_t put = pwrite(data_fd, data + have, bytes - have, place + have);
        if (put > 0)
            have += put;
        else if (put == 0 || errno != EINTR) {
            request->error = EIO;
            is_full |= put < 0 && errno == ENOSPC;
            say("a write at %llu failed: %s", (unsigned long long)place, strerror(errno));
        }
    }
    enqueue(request);
}

static void on_fsync(fuse_req_t req, fuse_ino_t ino, int only_data, struct fuse_file_info *file)
{
    (void)ino, (void)only_data, (void)file;
    struct request *flush = made(req, 0, 0, 0);
    if (!flush) {
        fuse_reply_err(req, ENOMEM);
        return;
    }
    pthread_mutex_lock(&lock);
    flush->number = accepted;
    flush->left = unfinished_writes;
    if (flush->left)
        append(&flushes, flush);
    else {
        fuse_reply_err(req, 0);
        free(flush);
    }
    pthread_mutex_unlock(&lock);
}

static void on_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t place, off_t length,
                         struct fuse_file_info *file)
{
    (void)ino, (void)file;
    fuse_reply_err(req, fallocate(data_fd, mode | FALLOC_FL_KEEP_SIZE, place, length) ? errno : 0);
}

static const struct fuse_lowlevel_ops operations = {
    .init = on_init, .lookup = on_lookup, .getattr = on_getattr, .setattr = on_setattr, .open = on_open,
    .readdir = on_readdir, .statfs = on_statfs, .read = on_read, .write = on_write, .fsync = on_fsync,
    .fallocate = on_fallocate,
};

/* Commands. */

static void answer(int connection)
{
    char line[64] = "", said[640];
    ssize_t got = read(connection, line, sizeof line - 1);
    struct timespec real, steady;
    line[got > 0 ? got : 0] = 0;
    line[strcspn(line, "\n")] = 0;
    clock_gettime(CLOCK_REALTIME, &real);
    clock_gettime(CLOCK_MONOTONIC, &steady);
    pthread_mutex_lock(&lock);
    if (!strcmp(line, "order fcfs") || !strcmp(line, "order elevator"))
        by_place = !strcmp(line, "order elevator");
    snprintf(said, sizeof said,
             "{\"served\": %llu, \"failed\": %llu, \"late\": %llu, \"waiting\": %u, \"full\": %s, "
             "\"order\": \"%s\", \"modelled_ns\": %llu, \"slept_ns\": %llu, \"kept\": %u, "
             "\"io_flusher\": %s, "
             "\"hurries\": %s, \"offset_s\": %.9f}\n",
             (unsigned long long)served, (unsigned long long)failed, (unsigned long long)late, waits,
             is_full ? "true" : "false", by_place ? "elevator" : "fcfs", (unsigned long long)modelled_ns,
             (unsigned long long)slept_ns, LOG_ENTRIES, is_flusher ? "true" : "false", in_a_hurry ? "true" : "false",
             (double)(real.tv_sec - steady.tv_sec) + (real.tv_nsec - steady.tv_nsec) / 1e9);
    pthread_mutex_unlock(&lock);
    if (write(connection, said, strlen(said)) < 0)
        say("nobody read an answer");
}

static void *listen_for_commands(void *listener)
{
    for (;;) {
        int connection = accept((int)(intptr_t)listener, NULL, NULL);
        if (connection < 0)
            continue;
        struct timeval most = { .tv_sec = 2 };
        setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
        answer(connection);
        close(connection);
    }
    return NULL;
}

/* Start. */

static void die(const char *what)
{
    say("%s: %s", what, strerror(errno));
    exit(1);
}

static void take(const char *word)
{
    static const struct { const char *name; const char **text; uint64_t *number; } known[] = {
        { "file=", &text.file, NULL }, { "mount=", &text.mount, NULL }, { "log=", &text.log, NULL },
        { "socket=", &text.socket, NULL }, { "order=", &text.order, NULL }, { "size=", NULL, &size },
        { "channels=", NULL, &channels }, { "overhead_ns=", NULL, &overhead_ns },
        { "after_ns=", NULL, &after_ns }, { "bytes_per_s=", NULL, &bytes_per_s },
        { "track_ns=", NULL, &track_ns }, { "stroke_ns=", NULL, &stroke_ns },
        { "turn_ns=", NULL, &turn_ns }, { "span=", NULL, &span }, { "owner=", NULL, &owner },
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        size_t length = strlen(known[i].name);
        if (strncmp(word, known[i].name, length))
            continue;
        if (known[i].text)
            *known[i].text = word + length;
        else
            *known[i].number = strtoull(word + length, NULL, 10);
        return;
    }
    say("unknown setting: %s", word);
    exit(2);
}

static int opened(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC, 0600);
    if (fd < 0)
        die(path);
    return fd;
}

static int listener(void)
{
    struct sockaddr_un place = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    strncpy(place.sun_path, text.socket, sizeof place.sun_path - 1);
    unlink(text.socket);
    umask(0177);
    if (fd < 0 || bind(fd, (struct sockaddr *)&place, sizeof place) || listen(fd, 16))
        die(text.socket);
    if (chown(text.socket, owner, -1) || fchown(log_fd, owner, -1))
        die("chown");
    return fd;
}

static void on_hurry(int signal)
{
    (void)signal;
    in_a_hurry = 1;
}

/* Not to be stopped by a lack of memory that only its own disk could end. */
static void stay_alive(void)
{
    is_flusher = !prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0);
    if (!is_flusher)
        say("no PR_SET_IO_FLUSHER: %s", strerror(errno));
    prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
    mallopt(M_MMAP_THRESHOLD, 64 << 20);    /* data of requests come from memory that stays */
    mallopt(M_TRIM_THRESHOLD, 512 << 20);
    mallopt(M_ARENA_MAX, 1);
    if (mlockall(MCL_CURRENT | MCL_FUTURE))
        say("no mlockall: %s", strerror(errno));
    FILE *score = fopen("/proc/self/oom_score_adj", "w");
    if (score) {
        fputs("-1000", score);
        fclose(score);
    }
    struct sched_param first = { .sched_priority = 1 };
    if (sched_setscheduler(0, SCHED_RR, &first))
        setpriority(PRIO_PROCESS, 0, -20);
}

static void start_thread(void *(*job)(void *), void *what)
{
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 256 << 10);
    errno = pthread_create(&thread, &attributes, job, what);
    if (errno)
        die("pthread_create");
}

int main(int count, char **words)
{
    char go;
    for (int i = 1; i < count; i++)
        take(words[i]);
    if (!text.file || !text.mount || !text.log || !text.socket || !size || !bytes_per_s || !channels
        || channels > MOST_CHANNELS || (turn_ns && channels > 1) || stroke_ns < track_ns) {
        say("settings are missing, or do not fit together");
        return 2;
    }
    if (span < size)
        span = size;
    by_place = text.order && !strcmp(text.order, "elevator");
    if (read(0, &go, 1) != 1)
        return 1;
    signal(SIGUSR1, on_hurry);
    signal(SIGPIPE, SIG_IGN);
    data_fd = opened(text.file, O_RDWR);
    log_fd = opened(text.log, O_RDWR | O_CREAT | O_TRUNC);
    int commands = listener();

    char options[] = "-oallow_other,default_permissions,max_read=1048576,fsname=labbook-disk,subtype=labbook-disk";
    char *arguments[] = { words[0], options };
    struct fuse_args fuse_arguments = FUSE_ARGS_INIT(2, arguments);
    struct fuse_session *session = fuse_session_new(&fuse_arguments, &operations, sizeof operations, NULL);
    if (!session || fuse_session_mount(session, text.mount))
        die("no FUSE file system");
    stay_alive();
    for (uint64_t i = 0; i < channels; i++)
        start_thread(channel, NULL);
    if (after_ns)
        start_thread(leave, NULL);
    start_thread(listen_for_commands, (void *)(intptr_t)commands);
    if (write(1, "ready\n", 6) < 0)
        return 1;
    dup2(2, 1);
    fuse_session_loop(session);
    say("the file system was aborted or unmounted");
    return 0;
}
