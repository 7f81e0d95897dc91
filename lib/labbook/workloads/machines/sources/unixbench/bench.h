/* What the tests share. A test works until `over` is set, by an alarm, and gives how much it did. */
#ifndef UNIXBENCH_STYLE_H
#define UNIXBENCH_STYLE_H

#include <signal.h>

/* A call stays a call, with what it is given: the compiler knows nothing of the function. */
#define CALLED __attribute__((noipa))

/* An integer's value is any, for all that the compiler knows from here on. */
#define UNKNOWN(integer) __asm__ volatile("" : "+r"(integer))

extern volatile sig_atomic_t over;

/* Ends the program: what failed, with the words of errno. */
void fail(const char *what) __attribute__((noreturn));

double now_s(void);                         /* of a clock that only goes on */

double dhrystone(void);                     /* loops */
double whetstone(void);                     /* millions of Whetstone instructions */
double copy_files(void);                    /* kilobytes copied */
double pipe_throughput(void);               /* 512 bytes written to a pipe, and read */
double context_switching(void);             /* a number sent to another process, and back */
double process_creation(void);
double shell_1(void);                       /* rounds of so many scripts at a time */
double shell_8(void);
double system_calls(void);

/* What is made before the time runs, in the current folder: files to copy, in blocks of that size, and what
   the scripts work on. */
void files_1024(void);
void files_256(void);
void files_4096(void);
void text(void);

/* Replaces the process by itself until `until_s`; the last one writes count and time to `result`. */
void execl_again(const char *program, long count, double began_s, double until_s, int result)
    __attribute__((noreturn));

#endif
