/* Whetstone in double precision: the modules of Curnow and Wichmann, A synthetic benchmark, The Computer
   Journal 19 (1976), with their weights. Ten rounds of these are a million Whetstone instructions.
   Compiled alone, with -DALONE, it is a program that prints what each module ends with. */
#include "bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define T 0.499975
#define T1 0.50025
#define T2 2.0

/* Repetitions of each module in a round; modules 1 and 10 have the weight 0. */
enum {ELEMENTS = 12, PARAMETER = 14, JUMPS = 345, INTEGERS = 210, ANGLES = 32, CALLS = 899,
      REFERENCES = 616, FUNCTIONS = 93};

static double array[4];                     /* what module 9 refers to */
static int j, k, l;

static CALLED void mix(double *e, double last)
{
    for (int i = 0; i < 6; i++) {
        e[0] = (e[0] + e[1] + e[2] - e[3]) * T;
        e[1] = (e[0] + e[1] - e[2] + e[3]) * T;
        e[2] = (e[0] - e[1] + e[2] + e[3]) * T;
        e[3] = (-e[0] + e[1] + e[2] + e[3]) / last;
    }
}

static CALLED void elements(double *e)
{
    for (int i = 0; i < ELEMENTS; i++) {
        e[0] = (e[0] + e[1] + e[2] - e[3]) * T;
        e[1] = (e[0] + e[1] - e[2] + e[3]) * T;
        e[2] = (e[0] - e[1] + e[2] + e[3]) * T;
        e[3] = (-e[0] + e[1] + e[2] + e[3]) * T;
    }
}

/* The result of the module's choices is computed without making them, from any of them on. */
static CALLED int jumps(int at)
{
    for (int i = 0; i < JUMPS; i++) {
        if (at == 1)
            at = 2;
        else
            at = 3;
        UNKNOWN(at);
        if (at > 2)
            at = 0;
        else
            at = 1;
        UNKNOWN(at);
        if (at < 1)
            at = 1;
        else
            at = 0;
        UNKNOWN(at);
    }
    return at;
}

/* The integers are the same after each repetition, which a compiler finds out. */
static CALLED void integers(double *e)
{
    int a = 1, b = 2, c = 3;
    for (int i = 0; i < INTEGERS; i++) {
        UNKNOWN(a);
        UNKNOWN(b);
        UNKNOWN(c);
        a = a * (b - a) * (c - b);
        b = c * b - (c - a) * b;
        c = (c - b) * (b + a);
        e[c - 2] = a + b + c;
        e[b - 2] = a * b * c;
    }
}

static CALLED void angles(double *x, double *y)
{
    for (int i = 0; i < ANGLES; i++) {
        *x = T * atan(T2 * sin(*x) * cos(*x) / (cos(*x + *y) + cos(*x - *y) - 1));
        *y = T * atan(T2 * sin(*y) * cos(*y) / (cos(*x + *y) + cos(*x - *y) - 1));
    }
}

static CALLED void called(double x, double y, double *z)
{
    x = T * (x + y);
    y = T * (x + y);
    *z = (x + y) / T2;
}

static CALLED void referred(void)
{
    array[j] = array[k];
    array[k] = array[l];
    array[l] = array[j];
}

/* One round; what its modules end with, as `Values` names them. */
typedef struct {double e[4], p[4], at, whole[2], x, y, z, referred[3], f;} Values;

static CALLED void round_(Values *found)
{
    double e[4] = {1, -1, -1, -1}, p[4], whole[4] = {0}, x = 0.5, y = 0.5, z = 0, f = 0.75;
    elements(e);
    for (int i = 0; i < 4; i++)
        p[i] = e[i];
    for (int i = 0; i < PARAMETER; i++)
        mix(p, T2);
    int at = jumps(1);
    integers(whole);
    angles(&x, &y);
    for (int i = 0; i < CALLS; i++)
        called(1, 1, &z);
    j = 0;
    k = 1;
    l = 2;
    for (int i = 0; i < 3; i++)
        array[i] = i + 1;
    for (int i = 0; i < REFERENCES; i++)
        referred();
    for (int i = 0; i < FUNCTIONS; i++)
        f = sqrt(exp(log(f) / T1));
    *found = (Values) {{e[0], e[1], e[2], e[3]}, {p[0], p[1], p[2], p[3]}, at, {whole[0], whole[1]},
                       x, y, z, {array[0], array[1], array[2]}, f};
}

double whetstone(void)
{
    Values first, last;
    double rounds = 0;
    round_(&first);
    for (; !over; rounds++)
        round_(&last);
    if (rounds && memcmp(&first, &last, sizeof first))
        fail("whetstone: not the same numbers each time");
    return rounds / 10;
}

#ifdef ALONE
volatile sig_atomic_t over;

void fail(const char *what)
{
    puts(what);
    exit(2);
}

int main(void)
{
    Values found;
    const double *value = (const double *) &found;
    round_(&found);
    for (size_t i = 0; i < sizeof found / sizeof *value; i++)
        printf("%.15g ", value[i]);
    return 0;
}
#endif
