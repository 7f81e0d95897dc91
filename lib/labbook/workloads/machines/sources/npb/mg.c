/* MG: V-cycles of a multigrid solver for Poisson's equation on a periodic cube. NAS-95-020, kernel MG.

   The processes cut the cube into boxes. A coarse grid of which a process would have less than two points
   along an axis is the whole of it on every process: it costs less to work on than to talk about. */
#include "common.h"

#define LEVELS 9                            /* of the finest grid of all, 512 points wide */
#define CHARGES 10                          /* of either sign */

static const struct {int log2_n, steps; double smoother[4], norm;} SIZES[] = {
    /* published norms of the residual: A's and B's are in NAS-95-020, the others' came with NPB 2 and 3 */
    {5, 4, {-3. / 8, 1. / 32, -1. / 64, 0}, 0.5307707005734e-04},
    {7, 4, {-3. / 8, 1. / 32, -1. / 64, 0}, 0.6467329375339e-05},
    {8, 4, {-3. / 8, 1. / 32, -1. / 64, 0}, 0.2433365309069e-05},
    {8, 20, {-3. / 17, 1. / 33, -1. / 61, 0}, 0.1800564401355e-05},
    {9, 20, {-3. / 17, 1. / 33, -1. / 61, 0}, 0.5706732285740e-06}};
/* Weights of a point itself, its 6 nearest neighbours, the 12 next and the 8 at the corners. */
static const double MINUS_A[4] = {8. / 3, 0, -1. / 6, -1. / 12};
static const double RESTRICTION[4] = {1. / 2, 1. / 4, 1. / 8, 1. / 16};

/* Points are at 1 to m[axis] along each axis, x, y, z; at 0 and m + 1 are copies of neighbours'. */
typedef struct {
    int n, spread, m[3];
    size_t y, z, all;                       /* distance of neighbours along y and z; of everything */
    double *u, *r;
} Grid;

static Grid grids[LEVELS + 1];
static int top, parts[3] = {1, 1, 1}, here[3];      /* processes along each axis; our place */
static double *v, *line[2], *packed, *packed_too;

static void place(void)
{
    for (int left = ranks_, axis = 2; left > 1; left /= 2, axis = (axis + 2) % 3)
        parts[axis] *= 2;
    here[0] = rank_ % parts[0];
    here[1] = rank_ / parts[0] % parts[1];
    here[2] = rank_ / parts[0] / parts[1];
}

static int process_at(int x, int y, int z)
{
    return (z * parts[1] + y) * parts[0] + x;
}

static void make_grid(Grid *grid, int n)
{
    grid->n = n;
    grid->spread = n / parts[0] >= 2 && n / parts[1] >= 2 && n / parts[2] >= 2;
    for (int axis = 0; axis < 3; axis++)
        grid->m[axis] = grid->spread ? n / parts[axis] : n;
    grid->y = (size_t) grid->m[0] + 2;
    grid->z = grid->y * ((size_t) grid->m[1] + 2);
    grid->all = grid->z * ((size_t) grid->m[2] + 2);
    grid->u = array(grid->all, sizeof *grid->u);
    grid->r = array(grid->all, sizeof *grid->r);
}

/* The layer across `axis` at `at`, copies of neighbours' included, to or from the buffer. */
static size_t layer(const Grid *grid, double *a, int axis, int at, double *buffer, int out)
{
    size_t step[3] = {1, grid->y, grid->z}, count = 0;
    int i = axis == 0 ? 1 : 0, j = axis == 2 ? 1 : 2;       /* the axes along the layer */
    for (int q = 0; q < grid->m[j] + 2; q++) {
        double *from = a + (size_t) at * step[axis] + (size_t) q * step[j];
        for (int p = 0; p < grid->m[i] + 2; p++, count++)
            if (out)
                buffer[count] = from[(size_t) p * step[i]];
            else
                from[(size_t) p * step[i]] = buffer[count];
    }
    return count;
}

/* Fill the copies of neighbours' points; an axis at a time, so that edges and corners come along. */
static void edges(const Grid *grid, double *a)
{
    for (int axis = 0; axis < 3; axis++) {
        int m = grid->m[axis], next[3], last[3];
        memcpy(next, here, sizeof next);
        memcpy(last, here, sizeof last);
        next[axis] = (here[axis] + 1) % parts[axis];
        last[axis] = (here[axis] + parts[axis] - 1) % parts[axis];
        int up = process_at(next[0], next[1], next[2]), down = process_at(last[0], last[1], last[2]);
        for (int way = 0; way < 2; way++) {
            int count = (int) layer(grid, a, axis, way ? 1 : m, packed, 1);
            double *came = packed;
            if (grid->spread && parts[axis] > 1) {
                came = packed_too;
                MPI_Sendrecv(packed, count, MPI_DOUBLE, way ? down : up, way, came, count, MPI_DOUBLE,
                             way ? up : down, way, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            }
            layer(grid, a, axis, way ? m + 1 : 0, came, 0);
        }
    }
}

/* For each x of the line through `a`: in line[0] the sum of the four values nearest in y and z, in line[1]
   that of the four diagonal ones. */
static inline void lines(const Grid *grid, const double *a)
{
    const double *n = a - grid->y, *s = a + grid->y, *low = a - grid->z, *high = a + grid->z;
    const double *low_n = n - grid->z, *low_s = s - grid->z, *high_n = n + grid->z, *high_s = s + grid->z;
    double *one = line[0], *two = line[1];
    for (int x = 0; x < grid->m[0] + 2; x++) {
        one[x] = n[x] + s[x] + low[x] + high[x];
        two[x] = low_n[x] + low_s[x] + high_n[x] + high_s[x];
    }
}

static inline double weighed(const double *w, const double *a, const double *one, const double *two, int x)
{
    return w[0] * a[x] + w[1] * (a[x - 1] + a[x + 1] + one[x])
           + w[2] * (one[x - 1] + one[x + 1] + two[x]) + w[3] * (two[x - 1] + two[x + 1]);
}

/* to = base + the weighted sum over a's neighbours. */
static void add_weighed(const Grid *grid, const double *w, const double *a, const double *base, double *to)
{
    for (int z = 1; z <= grid->m[2]; z++)
        for (int y = 1; y <= grid->m[1]; y++) {
            size_t at = (size_t) z * grid->z + (size_t) y * grid->y;
            const double *from = a + at, *under = base + at;
            double *put = to + at;
            lines(grid, from);
            for (int x = 1; x <= grid->m[0]; x++)
                put[x] = under[x] + weighed(w, from, line[0], line[1], x);
        }
    edges(grid, to);
}

/* Half as many points each way; point j of the coarse grid lies on point 2 j of the fine one. */
static void restrict_box(const Grid *fine, double *to, size_t y_step, size_t z_step)
{
    for (int z = 1; z <= fine->m[2] / 2; z++)
        for (int y = 1; y <= fine->m[1] / 2; y++) {
            const double *from = fine->r + 2 * ((size_t) z * fine->z + (size_t) y * fine->y);
            double *put = to + (size_t) (z - 1) * z_step + (size_t) (y - 1) * y_step;
            lines(fine, from);
            for (int x = 1; x <= fine->m[0] / 2; x++)
                put[x - 1] = weighed(RESTRICTION, from, line[0], line[1], 2 * x);
        }
}

/* Every process's box of the coarse grid to all. */
static void gather(const Grid *fine, Grid *coarse)
{
    int m[3] = {fine->m[0] / 2, fine->m[1] / 2, fine->m[2] / 2}, count = m[0] * m[1] * m[2];
    double *boxes = packed_too, *from = boxes;
    MPI_Allgather(packed, count, MPI_DOUBLE, boxes, count, MPI_DOUBLE, MPI_COMM_WORLD);
    for (int p = 0; p < ranks_; p++) {
        int x0 = p % parts[0] * m[0], y0 = p / parts[0] % parts[1] * m[1];
        int z0 = p / parts[0] / parts[1] * m[2];
        for (int z = 1; z <= m[2]; z++)
            for (int y = 1; y <= m[1]; y++, from += m[0])
                memcpy(coarse->r + (size_t) (z0 + z) * coarse->z + (size_t) (y0 + y) * coarse->y
                       + x0 + 1, from, (size_t) m[0] * sizeof *from);
    }
}

static void restrict_to(const Grid *fine, Grid *coarse)
{
    if (fine->spread && !coarse->spread) {
        restrict_box(fine, packed, (size_t) fine->m[0] / 2, (size_t) (fine->m[0] / 2 * (fine->m[1] / 2)));
        gather(fine, coarse);
    } else {
        restrict_box(fine, coarse->r + 1 + coarse->y + coarse->z, coarse->y, coarse->z);
    }
    edges(coarse, coarse->r);
}

/* Adds the coarse solution to the fine one: as it is where their points meet, else the mean of the 2, 4
   or 8 nearest. */
static void prolong(const Grid *coarse, Grid *fine)
{
    size_t shift[3] = {0, 0, 0};            /* of our box in a coarse grid that is here as a whole */
    if (fine->spread && !coarse->spread)
        for (int axis = 0; axis < 3; axis++)
            shift[axis] = (size_t) (here[axis] * fine->m[axis] / 2);
    const double *origin = coarse->u + shift[0] + shift[1] * coarse->y + shift[2] * coarse->z;
    double *mean = line[0];
    for (int z = 1; z <= fine->m[2]; z++)
        for (int y = 1; y <= fine->m[1]; y++) {
            const double *a = origin + (size_t) (z / 2) * coarse->z + (size_t) (y / 2) * coarse->y;
            const double *b = a + y % 2 * coarse->y, *c = a + z % 2 * coarse->z;
            const double *d = c + y % 2 * coarse->y;
            double *to = fine->u + (size_t) z * fine->z + (size_t) y * fine->y;
            for (int x = 0; x <= fine->m[0] / 2; x++)
                mean[x] = (a[x] + b[x] + c[x] + d[x]) / 4;
            for (int x = 1; x <= fine->m[0] / 2; x++) {
                to[2 * x - 1] += (mean[x - 1] + mean[x]) / 2;
                to[2 * x] += mean[x];
            }
        }
    edges(fine, fine->u);
}

static void cycle(const double *smoother)
{
    for (int k = top; k > 1; k--)
        restrict_to(&grids[k], &grids[k - 1]);
    for (int k = 1; k <= top; k++) {
        Grid *grid = &grids[k];
        if (k < top)
            memset(grid->u, 0, grid->all * sizeof *grid->u);
        if (k > 1) {
            prolong(&grids[k - 1], grid);
            add_weighed(grid, MINUS_A, grid->u, k < top ? grid->r : v, grid->r);
        }
        add_weighed(grid, smoother, grid->r, grid->u, grid->u);
    }
}

typedef struct {double value; int64_t at;} Drawn;

/* Keeps the CHARGES largest of sign * value, the largest first. */
static void keep(Drawn *kept, Drawn drawn, int sign)
{
    int i = CHARGES - 1;
    if (sign * drawn.value <= sign * kept[i].value)
        return;
    for (; i > 0 && sign * drawn.value > sign * kept[i - 1].value; i--)
        kept[i] = kept[i - 1];
    kept[i] = drawn;
}

/* v: 1 where the ten largest numbers of a random cube are, -1 at the ten smallest, else 0. */
static void make_charges(const Grid *grid)
{
    Drawn mine[2][CHARGES], (*all)[2][CHARGES] = array((size_t) ranks_, sizeof mine);
    int64_t n = grid->n, x0 = here[0] * grid->m[0], y0 = here[1] * grid->m[1], z0 = here[2] * grid->m[2];
    for (int i = 0; i < CHARGES; i++)
        mine[0][i] = (Drawn) {-1, 0}, mine[1][i] = (Drawn) {2, 0};
    for (int64_t z = z0; z < z0 + grid->m[2]; z++)
        for (int64_t y = y0; y < y0 + grid->m[1]; y++) {
            int64_t at = (z * n + y) * n + x0;
            uint64_t state = after(USUAL_SEED, (uint64_t) at);
            for (int x = 0; x < grid->m[0]; x++, at++) {
                Drawn drawn = {draw(&state), at};
                keep(mine[0], drawn, 1);
                keep(mine[1], drawn, -1);
            }
        }
    MPI_Allgather(mine, sizeof mine, MPI_BYTE, all, sizeof mine, MPI_BYTE, MPI_COMM_WORLD);
    for (int p = 0; p < ranks_; p++)
        for (int i = 0; i < CHARGES && p != rank_; i++) {
            keep(mine[0], all[p][0][i], 1);
            keep(mine[1], all[p][1][i], -1);
        }
    memset(v, 0, grid->all * sizeof *v);
    for (int i = 0; i < 2 * CHARGES; i++) {
        int64_t at = mine[i / CHARGES][i % CHARGES].at;
        int64_t x = at % n - x0, y = at / n % n - y0, z = at / n / n - z0;
        if (x >= 0 && x < grid->m[0] && y >= 0 && y < grid->m[1] && z >= 0 && z < grid->m[2])
            v[(size_t) (z + 1) * grid->z + (size_t) (y + 1) * grid->y + (size_t) x + 1]
                = i < CHARGES ? 1 : -1;
    }
    edges(grid, v);
    free(all);
}

static double norm(const Grid *grid)
{
    double sum = 0, all;
    for (int z = 1; z <= grid->m[2]; z++)
        for (int y = 1; y <= grid->m[1]; y++) {
            const double *r = grid->r + (size_t) z * grid->z + (size_t) y * grid->y;
            for (int x = 1; x <= grid->m[0]; x++)
                sum += r[x] * r[x];
        }
    MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return sqrt(all / pow(grid->n, 3));
}

static int size;
static double found;

static void from_zero(Grid *grid)
{
    memset(grid->u, 0, grid->all * sizeof *grid->u);
}

static void step(Grid *grid)
{
    cycle(SIZES[size].smoother);
    add_weighed(grid, MINUS_A, grid->u, v, grid->r);
}

static void start(void)
{
    Grid *grid = &grids[top];
    from_zero(grid);
    add_weighed(grid, MINUS_A, grid->u, v, grid->r);
    step(grid);                             /* memory is touched, connections are there */
    from_zero(grid);
}

static void timed(Report *report)
{
    Grid *grid = &grids[top];
    add_weighed(grid, MINUS_A, grid->u, v, grid->r);
    for (int i = 0; i < SIZES[size].steps; i++) {
        double began = MPI_Wtime();
        step(grid);
        step_done(report, began);
    }
    found = norm(grid);
}

static void check(Report *report)
{
    compare(report, found, SIZES[size].norm);
}

int main(int argc, char **argv)
{
    Report report = {.kernel = "mg", .tolerance = 1e-8, .size = begin(argc, argv)};
    size = report.size;
    top = SIZES[size].log2_n;
    place();
    for (int k = 1; k <= top; k++)
        make_grid(&grids[k], 1 << k);
    Grid *grid = &grids[top];
    if (!grid->spread)
        fail("%d ranks are too many for this size", ranks_);
    size_t widest = (size_t) grid->n + 2, whole = 0;    /* what is packed: a layer, or a whole grid */
    for (int k = 1; k < top; k++)
        whole = grids[k].spread ? whole : grids[k].all;
    size_t room = widest * widest > whole ? widest * widest : whole;
    packed = array(room, sizeof *packed);
    packed_too = array(room, sizeof *packed_too);
    for (int i = 0; i < 2; i++)
        line[i] = array(widest, sizeof **line);
    v = array(grid->all, sizeof *v);
    make_charges(grid);
    /* of additions and multiplications, as NPB counts */
    report.operations = 58.0 * SIZES[size].steps * pow(grid->n, 3);
    repeat(&report, (Run) {start, timed, check});
    return end(&report);
}
