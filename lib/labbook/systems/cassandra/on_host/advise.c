/* For LD_PRELOAD: the kernel reads nothing ahead of a file that was opened by a thread whose name begins as
 * LABBOOK_NOTHING_AHEAD says. Files that other threads open are read ahead as the disk's setting says.
 *
 * Cassandra 1.0.7 opens its files anew for each get and for each stream, so that one process has both.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

static int is_named(void)
{
    char thread[17] = "";
    const char *begins = getenv("LABBOOK_NOTHING_AHEAD");
    return begins && *begins && !prctl(PR_GET_NAME, thread) && !strncmp(thread, begins, strlen(begins));
}

int open64(const char *path, int flags, ...)
{
    static int (*next)(const char *, int, ...);
    va_list more;
    va_start(more, flags);
    int mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(more, int) : 0;
    va_end(more);
    if (!next)
        next = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open64");
    int file = next(path, flags, mode);
    if (file >= 0 && (flags & O_ACCMODE) == O_RDONLY && is_named())
        posix_fadvise(file, 0, 0, POSIX_FADV_RANDOM);
    return file;
}
