/* Requests: they wait, are served by a channel, and are answered. */

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
        uint64_t later = request->goes_on ? 0 : after_ns;
        request->due_ns = free_at + later;
        if (!request->log.write && !request->error)
            read_data(request);
        sleep_until(free_at);
        if (in_a_hurry)
            free_at = 0;
        if (later && !in_a_hurry) {
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
