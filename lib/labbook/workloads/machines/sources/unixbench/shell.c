/* Scripts: so many at a time, again and again. What the script does is in script.sh, beside the program. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LINES 150

static const char *const WORDS[] = {"the", "lamp", "river", "of", "a", "station", "under", "seven", "green",
                                    "letters", "and", "window", "to", "rain", "morning", "it"};

/* What every script makes its own files of. */
void text(void)
{
    FILE *file = fopen("text", "w");
    unsigned state = 1;
    if (!file)
        fail("text");
    for (int line = 0; line < LINES; line++)
        for (int word = 0; word < 8; word++) {
            state = state * 1664525u + 1013904223u;
            fprintf(file, "%s%c", WORDS[state >> 28], word == 7 ? '\n' : ' ');
        }
    if (fclose(file))
        fail("text");
}

static const char *script(void)
{
    static char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 16);
    if (length < 0)
        fail("/proc/self/exe");
    path[length] = 0;
    strcpy(strrchr(path, '/') + 1, "script.sh");
    if (access(path, R_OK))
        fail(path);
    return path;
}

static double rounds(int at_once)
{
    const char *path = script();
    char number[16];
    double count = 0;
    int ended;
    for (; !over; count++) {
        for (int i = 0; i < at_once; i++) {
            pid_t child = fork();
            if (child < 0)
                fail("fork");
            if (child == 0) {
                snprintf(number, sizeof number, "%d", i);
                execl("/bin/sh", "sh", path, number, (char *) NULL);
                _exit(127);
            }
        }
        for (int i = 0; i < at_once; i++)
            if (wait(&ended) < 0 || ended)
                fail("script.sh");
    }
    unlink("text");
    return count;
}

double shell_1(void)
{
    return rounds(1);
}

double shell_8(void)
{
    return rounds(8);
}
