/* LU: the gas of fluid.h, solved by symmetric successive over-relaxation.
   NAS-95-020, simulated application LU.

   In a step each point needs its neighbours before it, and then, backwards, those after it. So the processes work
   on lines of x in turn: a process has a line's planes done when the next one, above or below, begins it. */
#include "fluid.h"

#define RELAXATION 1.2

static const struct {int n, steps; double step_s, left[5], off[5], surface;} SIZES[] = {
    /* published norms and integrals: A's and B's are in NAS-95-020, the others' came with NPB 2 and 3 */
    {12, 50, 0.5,
     {1.6196343210976702e-02, 2.1976745164821318e-03, 1.5179927653399185e-03, 1.5029584435994323e-03, 3.4264073155896461e-02},
     {6.4223319957960924e-04, 8.4144342047347926e-05, 5.8588269616485186e-05, 5.8474222595157350e-05, 1.3103347914111294e-03},
     7.8418928865937083e+00},
    {33, 300, 0.0015,
     {0.1236511638192e+02, 0.1317228477799e+01, 0.2550120713095e+01, 0.2326187750252e+01, 0.2826799444189e+02},
     {0.4867877144216e+00, 0.5064652880982e-01, 0.9281818101960e-01, 0.8570126542733e-01, 0.1084277417792e+01},
     0.1161399311023e+02},
    {64, 250, 2,
     {7.7902107606689367e+02, 6.3402765259692870e+01, 1.9499249727292479e+02, 1.7845301160418537e+02, 1.8384760349464247e+03},
     {2.9964085685471943e+01, 2.8194576365003349e+00, 7.3473412698774742e+00, 6.7139225687777051e+00, 7.0715315688392578e+01},
     2.6030925604886277e+01},
    {102, 250, 2,
     {3.5532672969982736e+03, 2.6214750795310692e+02, 8.8333721850952190e+02, 7.7812774739425265e+02, 7.3087969592545314e+03},
     {1.1401176380212709e+02, 8.1098963655421574e+00, 2.8480597317698308e+01, 2.5905394567832939e+01, 2.6054907504857413e+02},
     4.7887162703308227e+01},
    {162, 250, 2,
     {1.03766980323537846e+04, 8.92212458801008552e+02, 2.56238814582660871e+03, 2.19194343857831427e+03, 1.78078057261061185e+04},
     {2.15986399716949279e+02, 1.55789559239863600e+01, 5.41318863077207766e+01, 4.82262643154045421e+01, 4.55902910043250358e+02},
     6.66404553572181300e+01}};

/* Solve own x = right, in place of `right`. */
static void solve(Block own, double *right)
{
    for (int column = 0; column < 5; column++) {
        double inverse = 1 / own[column][column];
        for (int row = column + 1; row < 5; row++) {
            double factor = own[row][column] * inverse;
            for (int l = column + 1; l < 5; l++)
                own[row][l] -= factor * own[column][l];
            right[row] -= factor * right[column];
        }
    }
    for (int row = 4; row >= 0; row--) {
        for (int l = row + 1; l < 5; l++)
            right[row] -= own[row][l] * right[l];
        right[row] /= own[row][row];
    }
}

/* Relax a point by its neighbours on one side, before it (-1) or after it (1). */
static void relax(size_t p, int side)
{
    const size_t apart[3] = {1, (size_t) n, wide};
    Five beside = {0, 0, 0, 0, 0};
    Block own = {{0}}, block;
    for (int m = 0; m < 5; m++)
        own[m][m] = 1;
    for (int axis = 2; axis >= 0; axis--) {
        size_t next = side < 0 ? p - apart[axis] : p + apart[axis];
        neighbour_block(u[next], axis, side, block);
        take_product(block, change[next], beside);
        add_own_block(u[p], axis, own);
    }
    if (side < 0) {                         /* D x = change - relaxation L x */
        for (int m = 0; m < 5; m++)
            change[p][m] += RELAXATION * beside[m];
        solve(own, change[p]);
    } else {                                /* x = change - relaxation D^-1 U x */
        solve(own, beside);
        for (int m = 0; m < 5; m++)
            change[p][m] += RELAXATION * beside[m];
    }
}

/* One sweep through the cube: upwards by the neighbours before each point, downwards by those after it. */
static void sweep(int side)
{
    int from = side < 0 ? rank_ - 1 : rank_ + 1, to = side < 0 ? rank_ + 1 : rank_ - 1;
    int count = 5 * n, lines = n - 2, depth = high - low;
    for (int line = 0; line < lines; line++) {
        int j = side < 0 ? 1 + line : n - 2 - line;
        if (from >= 0 && from < ranks_)
            MPI_Recv(change[at(side < 0 ? -1 : planes, j, 0)], count, MPI_DOUBLE, from, j, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int plane = 0; plane < depth; plane++)
            for (int point = 0; point < lines; point++) {
                int k = side < 0 ? low + plane : high - 1 - plane;
                relax(at(k, j, side < 0 ? 1 + point : n - 2 - point), side);
            }
        if (to >= 0 && to < ranks_)
            MPI_Send(change[at(side < 0 ? planes - 1 : 0, j, 0)], count, MPI_DOUBLE, to, j, MPI_COMM_WORLD);
    }
}

/* `change` is that of u in a step before, and after what is left. */
static void one_step(void)
{
    for (int side = -1; side < 2; side += 2)
        sweep(side);
    for (int k = low; k < high; k++)
        for (size_t p = at(k, 0, 0); p < at(k + 1, 0, 0); p++)
            for (int m = 0; m < 5; m++)
                u[p][m] += change[p][m] / (RELAXATION * (2 - RELAXATION));
    rate_of_change(change, step_s);
}

static double pressure(int k, int j, int i)
{
    return gas_of(u[at(k, j, i)]).pressure;
}

/* Of the pressure over the faces of a box inside, of trapezoids: the published one's edges are as they are. */
static double surface_integral(void)
{
    const int begin_at[3] = {1, 1, 2}, end_at[3] = {n - 2, n - 3, n - 2};       /* points along x, y, z */
    double mine = 0, all, h = 1.0 / (n - 1);
    for (int k = 0; k < planes; k++)
        for (int j = begin_at[1]; j <= end_at[1]; j++)
            for (int i = begin_at[0]; i <= end_at[0]; i++) {
                int place[3] = {i, j, first + k};
                double edges[3];            /* of a trapezoid rule along each axis: a half at the ends */
                int inside = 1;
                for (int axis = 0; axis < 3; axis++) {
                    inside &= place[axis] >= begin_at[axis] && place[axis] <= end_at[axis];
                    edges[axis] = place[axis] == begin_at[axis] || place[axis] == end_at[axis] ? 0.5 : 1;
                }
                for (int axis = 0; inside && axis < 3; axis++)
                    if (edges[axis] < 1)
                        mine += pressure(k, j, i) * edges[(axis + 1) % 3] * edges[(axis + 2) % 3];
            }
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all * h * h;
}

static void start(void)
{
    rate_of_change(change, step_s);
}

static const double COUNTED[] = {1984.77, -10923.3, 27770.9, -144010};

static void check(Report *report)
{
    compare_norms(report, SIZES[report->size].left, SIZES[report->size].off);
    compare(report, surface_integral(), SIZES[report->size].surface);
}

int main(int argc, char **argv)
{
    Report report = {.kernel = "lu", .tolerance = 1e-8, .size = begin(argc, argv)};
    make_grid(SIZES[report.size].n, SIZES[report.size].step_s);
    run(&report, (Application) {SIZES[report.size].steps, start, one_step, check, COUNTED});
    return end(&report);
}
