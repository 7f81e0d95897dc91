/* Lines along z for SP and BT: a process has whole lines there, and a share of the y. */
#ifndef NPB_TURNED_H
#define NPB_TURNED_H

#include "fluid.h"

static Five *turned_u, *turned;             /* u and its change, [z][our y][x] */
static Five *packed;
static int rows;                            /* our share of the y */
static int *out_count, *out_place, *in_count, *in_place;        /* of what goes to each process, and comes from it */

static void make_turned(void)
{
    size_t counts = (size_t) ranks_;
    int *all = array(4 * counts, sizeof *all);
    rows = planes;                          /* both are shares of n */
    out_count = all, out_place = all + counts, in_count = all + 2 * counts, in_place = all + 3 * counts;
    for (int p = 0; p < ranks_; p++) {
        out_count[p] = 5 * n * planes * (begins(p + 1) - begins(p));
        out_place[p] = 5 * n * planes * begins(p);
        in_count[p] = 5 * n * rows * (begins(p + 1) - begins(p));
        in_place[p] = 5 * n * rows * begins(p);
    }
    turned_u = array(wide * (size_t) rows, sizeof *turned_u);
    turned = array(wide * (size_t) rows, sizeof *turned);
    packed = array(wide * (size_t) planes, sizeof *packed);
}

/* Each process's y of each of our planes, one after the other (or back). */
static void by_process(Five *slab, int back)
{
    Five *order = packed;
    for (int p = 0; p < ranks_; p++) {
        size_t run = (size_t) n * (size_t) (begins(p + 1) - begins(p));
        for (int k = 0; k < planes; k++, order += run) {
            Five *here = slab + at(k, begins(p), 0);
            memcpy(back ? here : order, back ? order : here, run * sizeof *order);
        }
    }
}

static void turn(Five *slab, Five *to)
{
    by_process(slab, 0);
    MPI_Alltoallv(packed, out_count, out_place, MPI_DOUBLE, to, in_count, in_place, MPI_DOUBLE, MPI_COMM_WORLD);
}

static void turn_back(Five *from, Five *slab)
{
    MPI_Alltoallv(from, in_count, in_place, MPI_DOUBLE, packed, out_count, out_place, MPI_DOUBLE, MPI_COMM_WORLD);
    by_process(slab, 1);
}

static void start_turned(void)
{
    turn(u, turned_u);
}

typedef void Solve(int axis, const Five *u, Five *change, size_t apart);

/* Solve the lines along an axis inside our slab: x or y. */
static void lines_of_slab(int axis, Solve *solve)
{
    size_t apart = axis == 0 ? 1 : (size_t) n, beside = axis == 0 ? (size_t) n : 1;
    for (int k = low; k < high; k++)
        for (int line = 1; line < n - 1; line++) {
            size_t p = at(k, 0, 0) + (size_t) line * beside;
            solve(axis, u + p, change + p, apart);
        }
}

/* Solve those along z, turned. */
static void lines_along_z(Solve *solve)
{
    size_t apart = (size_t) rows * (size_t) n;
    for (int j = 0; j < rows; j++)
        for (int i = 1; i < n - 1 && first + j > 0 && first + j < n - 1; i++) {
            size_t p = (size_t) j * (size_t) n + (size_t) i;
            solve(2, turned_u + p, turned + p, apart);
        }
}

static void add(Five *to, const Five *what, size_t points)
{
    for (size_t p = 0; p < points; p++)
        for (int m = 0; m < 5; m++)
            to[p][m] += what[p][m];
}

/* Add the turned change to u, which both arrangements have. */
static void add_turned(void)
{
    add(turned_u, (const Five *) turned, wide * (size_t) rows);
    turn_back(turned, change);
    add(u + at(0, 0, 0), (const Five *) change + at(0, 0, 0), wide * (size_t) planes);
}

#endif
