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
    if (!strcmp(line, "hurry on") || !strcmp(line, "hurry off"))
        in_a_hurry = !strcmp(line, "hurry on");
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
