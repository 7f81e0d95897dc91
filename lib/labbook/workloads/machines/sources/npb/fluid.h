/* What LU, SP and BT share: the equations of a viscous gas in a cube, their exact solution, the grid, and what is
   compared at the end. NAS-95-020, its three simulated applications.

   At each point are five values: density, momentum along x, y and z, and energy. The equations have a source that
   makes a given polynomial their exact solution, so the steady state is known; on the cube's faces it is given.
   A process has whole planes of x and y, a slab along z, and copies of two planes of each neighbour. */
#ifndef NPB_FLUID_H
#define NPB_FLUID_H

#include <stddef.h>
#include "common.h"

#define GHOSTS 2
#define ENERGY 4
#define GAMMA 1.4
#define VISCOSITY 0.1
#define CONDUCTION (GAMMA * GAMMA * VISCOSITY)
#define SMOOTHING 0.25                      /* of the fourth difference */

typedef double Five[5];
typedef double Block[5][5];
/* Of a point: velocity, half its square, energy of a unit of mass, pressure. */
typedef struct {double v[3], half, specific, pressure;} Gas;

static const double DIFFUSION[3] = {0.75, 0.75, 1};
/* Of the exact solution: 1; x, y, z; their squares, cubes and fourth powers. */
static const double EXACT[13][5] = {
    {2, 1, 2, 2, 5}, {0, 0, 2, 2, 4}, {0, 0, 0, 0, 3}, {4, 0, 0, 0, 2}, {5, 1, 0, 0, 0.1}, {3, 2, 2, 2, 0.4},
    {0.5, 3, 3, 3, 0.3}, {0.02, 0.01, 0.04, 0.03, 0.05}, {0.01, 0.03, 0.03, 0.05, 0.04},
    {0.03, 0.02, 0.05, 0.04, 0.03}, {0.5, 0.4, 0.3, 0.2, 0.1}, {0.4, 0.3, 0.5, 0.1, 0.3}, {0.3, 0.5, 0.4, 0.3, 0.2}};
/* The fourth difference at the first two points inside, further in, and at the last two. */
static const double FOURTH[5][5] = {
    {0, 0, 5, -4, 1}, {0, -4, 6, -4, 1}, {1, -4, 6, -4, 1}, {1, -4, 6, -4, 0}, {1, -4, 5, 0, 0}};

static int n, first, planes;                /* points along an axis; the first of our planes, and how many they are */
static int low, high;                       /* of our planes those inside the cube: from low to before high */
static size_t wide;                         /* points of a plane */
static double step_s;                       /* of time */
static Five *u, *change, *source;           /* what is solved for; what is off, then its change; all with copies */
static Gas *gas;

static inline size_t at(int k, int j, int i)
{
    return ((size_t) (k + GHOSTS) * (size_t) n + (size_t) j) * (size_t) n + (size_t) i;
}

/* The first plane (or line) of a process, of n. */
static inline int begins(int process)
{
    return (int) ((long) process * n / ranks_);
}

static void make_grid(int points, double step)
{
    n = points;
    step_s = step;
    wide = (size_t) n * (size_t) n;
    first = begins(rank_);
    planes = begins(rank_ + 1) - first;
    if (n / ranks_ < GHOSTS)
        fail("%d ranks are too many for this size", ranks_);
    low = first == 0;
    high = first + planes == n ? planes - 1 : planes;
    size_t all = wide * (size_t) (planes + 2 * GHOSTS);
    u = array(all, sizeof *u);
    change = array(all, sizeof *change);
    source = array(all, sizeof *source);
    gas = array(all, sizeof *gas);
}

static inline double power_series(int axis, int m, double x)
{
    return x * (EXACT[1 + axis][m] + x * (EXACT[4 + axis][m] + x * (EXACT[7 + axis][m] + x * EXACT[10 + axis][m])));
}

static inline double exact(int m, double x, double y, double z)
{
    return EXACT[0][m] + power_series(0, m, x) + power_series(1, m, y) + power_series(2, m, z);
}

static inline int on_a_face(int k, int j, int i)
{
    return k == 0 || k == n - 1 || j == 0 || j == n - 1 || i == 0 || i == n - 1;
}

/* Between the values at the two faces, those of each axis, and less what is in two of them. */
static double between_faces(int m, double x, double y, double z)
{
    double a = (1 - x) * exact(m, 0, y, z) + x * exact(m, 1, y, z);
    double b = (1 - y) * exact(m, x, 0, z) + y * exact(m, x, 1, z);
    double c = (1 - z) * exact(m, x, y, 0) + z * exact(m, x, y, 1);
    return a + b + c - a * b - a * c - b * c + a * b * c;
}

/* All values of u, the copies too: the exact ones, or (which are exact on faces) those to begin with. */
static void set_values(int all_exact)
{
    double h = 1.0 / (n - 1);
    for (int k = -GHOSTS; k < planes + GHOSTS; k++)
        for (int j = 0; j < n; j++)
            for (int i = 0; i < n; i++) {
                int is_exact = all_exact || on_a_face(first + k, j, i);
                for (int m = 0; m < 5; m++)
                    u[at(k, j, i)][m] = (is_exact ? exact : between_faces)(m, i * h, j * h, (first + k) * h);
            }
}

/* Bring the neighbours' planes that are copied. */
static void bring_copies(void)
{
    int up = rank_ + 1 < ranks_ ? rank_ + 1 : MPI_PROC_NULL, down = rank_ ? rank_ - 1 : MPI_PROC_NULL;
    int count = GHOSTS * (int) wide * 5;
    MPI_Sendrecv(u[at(planes - GHOSTS, 0, 0)], count, MPI_DOUBLE, up, 0, u[at(-GHOSTS, 0, 0)], count, MPI_DOUBLE, down,
                 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(u[at(0, 0, 0)], count, MPI_DOUBLE, down, 1, u[at(planes, 0, 0)], count, MPI_DOUBLE, up, 1,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static inline Gas gas_of(const double *a)
{
    Gas of;
    for (int axis = 0; axis < 3; axis++)
        of.v[axis] = a[1 + axis] / a[0];
    of.half = 0.5 * (of.v[0] * of.v[0] + of.v[1] * of.v[1] + of.v[2] * of.v[2]);
    of.specific = a[ENERGY] / a[0];
    of.pressure = (GAMMA - 1) * (a[ENERGY] - a[0] * of.half);
    return of;
}

static inline double flux(const double *a, const Gas *of, int axis, int m)
{
    double momentum = m == 1 + axis ? of->pressure : m == ENERGY ? of->pressure * of->v[axis] : 0;
    return m == 0 ? a[1 + axis] : a[m] * of->v[axis] + momentum;
}

static inline double second(double before, double here, double next)
{
    return before - 2 * here + next;
}

/* Add what moves along an axis to `sum`: neighbours are `apart`, and the point is the `place`-th. */
static inline void add_along(int axis, size_t p, size_t apart, int place, double *sum)
{
    double inverse = n - 1, square = inverse * inverse;
    const Gas *last = gas + (p - apart), *of = gas + p, *next = gas + (p + apart);
    const double *fourth = FOURTH[place == 1 ? 0 : place == 2 ? 1 : place == n - 3 ? 3 : place == n - 2 ? 4 : 2];
    for (int m = 0; m < 5; m++) {
        const double *before = u[p - apart], *after_it = u[p + apart];
        double smooth = fourth[1] * before[m] + fourth[2] * u[p][m] + fourth[3] * after_it[m];
        if (fourth[0] != 0)
            smooth += u[p - 2 * apart][m];
        if (fourth[4] != 0)
            smooth += u[p + 2 * apart][m];
        sum[m] += DIFFUSION[axis] * square * second(before[m], u[p][m], after_it[m]) - SMOOTHING * smooth
                  - inverse / 2 * (flux(after_it, next, axis, m) - flux(before, last, axis, m));
    }
    for (int j = 0; j < 3; j++)
        sum[1 + j] += VISCOSITY * square * (j == axis ? 4. / 3 : 1) * second(last->v[j], of->v[j], next->v[j]);
    sum[ENERGY] += VISCOSITY * square * (
        (1 - GAMMA * GAMMA) * second(last->half, of->half, next->half)
        + second(last->v[axis] * last->v[axis], of->v[axis] * of->v[axis], next->v[axis] * next->v[axis]) / 6
        + GAMMA * GAMMA * second(last->specific, of->specific, next->specific));
}

/* to = factor (what u changes by in a unit of time - the exact solution's), inside; `source` is the latter. */
static void rate_of_change(Five *to, double factor)
{
    bring_copies();
    for (size_t p = at(-1, 0, 0); p < at(planes + 1, 0, 0); p++)
        gas[p] = gas_of(u[p]);
    for (int k = low; k < high; k++)
        for (int j = 1; j < n - 1; j++)
            for (int i = 1; i < n - 1; i++) {
                size_t p = at(k, j, i);
                Five sum = {0, 0, 0, 0, 0};
                add_along(0, p, 1, i, sum);
                add_along(1, p, (size_t) n, j, sum);
                add_along(2, p, wide, first + k, sum);
                for (int m = 0; m < 5; m++)
                    to[p][m] = factor * (sum[m] - source[p][m]);
            }
}

/* The values to begin with, once the source is known. */
static void begin_values(void)
{
    set_values(1);
    memset(source, 0, wide * (size_t) (planes + 2 * GHOSTS) * sizeof *source);
    rate_of_change(source, 1);
    set_values(0);
}

/* Derivatives of the flux along an axis by the five values. */
static inline void flux_jacobian(const double *a, int axis, Block to)
{
    Gas of = gas_of(a);
    const double *v = of.v, along = v[axis], c2 = GAMMA - 1;
    memset(to, 0, sizeof(Block));
    to[0][1 + axis] = 1;
    for (int j = 0; j < 3; j++) {
        to[1 + j][0] = -v[j] * along;
        to[1 + j][1 + j] += along;
        to[1 + j][1 + axis] += v[j];
        to[1 + axis][1 + j] -= c2 * v[j];
        to[ENERGY][1 + j] = -c2 * v[j] * along;
    }
    to[1 + axis][0] += c2 * of.half;
    to[1 + axis][ENERGY] = c2;
    to[ENERGY][0] = (2 * c2 * of.half - GAMMA * of.specific) * along;
    to[ENERGY][1 + axis] += GAMMA * of.specific - c2 * of.half;
    to[ENERGY][ENERGY] = GAMMA * along;
}

/* Derivatives of the viscous terms along an axis. */
static inline void viscous_jacobian(const double *a, int axis, Block to)
{
    Gas of = gas_of(a);
    memset(to, 0, sizeof(Block));
    to[ENERGY][0] = -CONDUCTION * of.specific / a[0];
    to[ENERGY][ENERGY] = CONDUCTION / a[0];
    for (int j = 0; j < 3; j++) {
        double weight = (j == axis ? 4. / 3 : 1) * VISCOSITY;
        to[1 + j][0] = -weight * of.v[j] / a[0];
        to[1 + j][1 + j] = weight / a[0];
        to[ENERGY][0] -= (weight - CONDUCTION) * of.v[j] * of.v[j] / a[0];
        to[ENERGY][1 + j] = (weight - CONDUCTION) * of.v[j] / a[0];
    }
}

/* to = time step x (side x flux's derivatives / 2h - (viscous ones + diffusion) / h^2), of a neighbour on a side. */
static inline void neighbour_block(const double *a, int axis, int side, Block to)
{
    double once = step_s * (n - 1), twice = once * (n - 1);
    Block viscous;
    flux_jacobian(a, axis, to);
    viscous_jacobian(a, axis, viscous);
    for (int m = 0; m < 5; m++) {
        for (int l = 0; l < 5; l++)
            to[m][l] = side * once / 2 * to[m][l] - twice * viscous[m][l];
        to[m][m] -= twice * DIFFUSION[axis];
    }
}

/* Add 2 x time step x (viscous derivatives + diffusion) / h^2, of a point itself. */
static inline void add_own_block(const double *a, int axis, Block to)
{
    double twice = step_s * (n - 1) * (n - 1);
    Block viscous;
    viscous_jacobian(a, axis, viscous);
    for (int m = 0; m < 5; m++) {
        for (int l = 0; l < 5; l++)
            to[m][l] += 2 * twice * viscous[m][l];
        to[m][m] += 2 * twice * DIFFUSION[axis];
    }
}

/* to -= a x. */
static inline void take_product(Block a, const double *x, double *to)
{
    for (int m = 0; m < 5; m++)
        for (int l = 0; l < 5; l++)
            to[m] -= a[m][l] * x[l];
}

/* Roots of the mean squares inside: of `a`, or where it is NULL of what u is off. */
static void norms(Five *a, double *to)
{
    double h = 1.0 / (n - 1), inside = (double) (n - 2) * (n - 2) * (n - 2);
    Five mine = {0, 0, 0, 0, 0};
    for (int k = low; k < high; k++)
        for (int j = 1; j < n - 1; j++)
            for (int i = 1; i < n - 1; i++)
                for (int m = 0; m < 5; m++) {
                    size_t p = at(k, j, i);
                    double found = a ? a[p][m] : u[p][m] - exact(m, i * h, j * h, (first + k) * h);
                    mine[m] += found * found;
                }
    MPI_Allreduce(mine, to, 5, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (int m = 0; m < 5; m++)
        to[m] = sqrt(to[m] / inside);
}

/* `start` sets what an application keeps beside u; `check` is of what `steps` steps find. `counted`: additions and
   multiplications of a step, as NPB counts them, for n^3, n^2, n and 1. */
typedef struct {
    int steps;
    void (*start)(void), (*one_step)(void), (*check)(Report *);
    const double *counted;
} Application;

static Application application;

static void start_again(void)
{
    application.start();
    application.one_step();                 /* memory is touched, connections are there */
    set_values(0);
    application.start();
}

static void timed_steps(Report *report)
{
    for (int i = 0; i < application.steps; i++) {
        double began = MPI_Wtime();
        application.one_step();
        step_done(report, began);
    }
}

static void run(Report *report, Application of)
{
    const double *counted = of.counted, wide_n = n;
    application = of;
    begin_values();
    report->operations = of.steps * (((counted[0] * wide_n + counted[1]) * wide_n + counted[2]) * wide_n + counted[3]);
    repeat(report, (Run) {start_again, timed_steps, of.check});
}

/* Compare the norms of what is left and of what is off with those published. */
static void compare_norms(Report *report, const double *left, const double *off)
{
    Five found;
    rate_of_change(change, 1);
    norms(change, found);
    for (int m = 0; m < 5; m++)
        compare(report, found[m], left[m]);
    norms(NULL, found);
    for (int m = 0; m < 5; m++)
        compare(report, found[m], off[m]);
}

#endif
