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
