/* What the kernel does: calls, pipes, switches between processes, new processes, copies of files. */
#include "bench.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PIPED 512

/* The five calls of UnixBench's own loop, in which the kernel has little else to do: what is counted is the
   loop. */
double system_calls(void)
{
    double count = 0;
    for (; !over; count++) {
        long copy = syscall(SYS_dup, 0);
        if (copy < 0 || syscall(SYS_close, copy) || syscall(SYS_getpid) <= 0)
            fail("system calls");
        syscall(SYS_getuid);
        syscall(SYS_umask, 022);
    }
    return count;
}

double pipe_throughput(void)
{
    int ends[2];
    char block[PIPED] = {0};
    double count = 0;
    if (pipe(ends))
        fail("pipe");
    for (; !over; count++)
        if (write(ends[1], block, PIPED) != PIPED || read(ends[0], block, PIPED) != PIPED)
            fail("pipe");
    return count;
}

static void answer(int from, int to)
{
    long number;
    while (read(from, &number, sizeof number) == sizeof number)
        if (write(to, &number, sizeof number) != sizeof number)
            fail("pipe");
    _exit(0);
}

double context_switching(void)
{
    int there[2], back[2];
    long number = 0, came;
    if (pipe(there) || pipe(back))
        fail("pipe");
    pid_t child = fork();
    if (child < 0)
        fail("fork");
    if (child == 0) {
        close(there[1]);
        close(back[0]);
        answer(there[0], back[1]);
    }
    close(there[0]);
    close(back[1]);
    for (; !over; number++)
        if (write(there[1], &number, sizeof number) != sizeof number
            || read(back[0], &came, sizeof came) != sizeof came || came != number)
            fail("pipe");
    close(there[1]);
    if (waitpid(child, NULL, 0) != child)
        fail("wait");
    return (double) number;
}

double process_creation(void)
{
    double count = 0;
    int ended;
    for (; !over; count++) {
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        if (child < 0 || waitpid(child, &ended, 0) != child || ended)
            fail("fork");
    }
    return count;
}

static size_t size;                         /* of a block of the files that are copied */
static int blocks, from, to;

static int fresh(const char *name)
{
    int file = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (file < 0)
        fail(name);
    return file;
}

static void prepare_files(size_t block_size, int count)
{
    char *block = calloc(1, block_size);
    if (!block)
        fail("memory");
    memset(block, 'x', block_size);
    size = block_size;
    blocks = count;
    from = fresh("from");
    to = fresh("to");
    for (int i = 0; i < blocks; i++)
        if (write(from, block, size) != (ssize_t) size)
            fail("from");
    free(block);
}

void files_1024(void)
{
    prepare_files(1024, 2000);
}

void files_256(void)
{
    prepare_files(256, 500);
}

void files_4096(void)
{
    prepare_files(4096, 8000);
}

static void rewound(int file)
{
    if (lseek(file, 0, SEEK_SET))
        fail("lseek");
}

/* Copies the one file to the other, block by block, and from the begin again when it is through. */
double copy_files(void)
{
    char *block = malloc(size);
    double copied = 0;
    if (!block)
        fail("memory");
    while (!over) {
        rewound(from);
        rewound(to);
        for (int i = 0; i < blocks && !over; i++, copied += (double) size / 1024)
            if (read(from, block, size) != (ssize_t) size || write(to, block, size) != (ssize_t) size)
                fail("copy");
    }
    unlink("from");
    unlink("to");
    free(block);
    return copied;
}
