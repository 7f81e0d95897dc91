/* BT: the gas of fluid.h, solved in each step along x, y and z, in blocks of five by five.
   NAS-95-020, simulated application BT.

   A line's unknowns are a block tridiagonal system. Lines along z are at home after a transpose of the change. */
#include "turned.h"

static const struct {int n, steps; double step_s, left[5], off[5];} SIZES[] = {
    /* published norms: A's and B's are in NAS-95-020, the others' came with NPB 2 and 3 */
    {12, 60, 0.01,
     {1.7034283709541311e-01, 1.2975252070034097e-02, 3.2527926989486055e-02, 2.6436421275166801e-02, 1.9211784131744430e-01},
     {4.9976913345811579e-04, 4.5195666782961927e-05, 7.3973765172921357e-05, 7.3821238632439731e-05, 8.9269630987491446e-04}},
    {24, 200, 0.0008,
     {0.1125590409344e+03, 0.1180007595731e+02, 0.2710329767846e+02, 0.2469174937669e+02, 0.2638427874317e+03},
     {0.4419655736008e+01, 0.4638531260002e+00, 0.1011551749967e+01, 0.9235878729944e+00, 0.1018045837718e+02}},
    {64, 200, 0.0008,
     {1.0806346714637264e+02, 1.1319730901220813e+01, 2.5974354511582465e+01, 2.3665622544678910e+01, 2.5278963211748344e+02},
     {4.2348416040525025e+00, 4.4390282496995698e-01, 9.6692480136345650e-01, 8.8302063039765474e-01, 9.7379901770829278e+00}},
    {102, 200, 0.0003,
     {1.4233597229287254e+03, 9.9330522590150238e+01, 3.5646025644535285e+02, 3.2485447959084092e+02, 3.2707541254659363e+03},
     {5.2969847140936856e+01, 4.4632896115670668e+00, 1.3122573342210174e+01, 1.2006925323559144e+01, 1.2459576151035986e+02}},
    {162, 200, 0.0001,
     {6.2398116551764615e+03, 5.0793239190423964e+02, 1.5423530093013596e+03, 1.3302387929291190e+03, 1.1604087428436455e+04},
     {1.6462008369091265e+02, 1.1497107903824313e+01, 4.1207446207461508e+01, 3.7087651059694167e+01, 3.6211053051841265e+02}}};

static Block *beyond;                       /* of a line: each point's block of the next one, divided */

/* Divide `right` and `change` by `own`: both become own^-1 times what they were. */
static void divide(Block own, Block right, double *change_here)
{
    for (int column = 0; column < 5; column++) {
        double inverse = 1 / own[column][column];
        for (int l = column + 1; l < 5; l++)
            own[column][l] *= inverse;
        for (int l = 0; l < 5; l++)
            right[column][l] *= inverse;
        change_here[column] *= inverse;
        for (int row = 0; row < 5; row++) {
            if (row == column)
                continue;
            double factor = own[row][column];
            for (int l = column + 1; l < 5; l++)
                own[row][l] -= factor * own[column][l];
            for (int l = 0; l < 5; l++)
                right[row][l] -= factor * right[column][l];
            change_here[row] -= factor * change_here[column];
        }
    }
}

/* On the faces nothing changes, so the first unknown is the second point. */
static void solve(int axis, const Five *a, Five *off, size_t apart)
{
    memset(beyond[0], 0, sizeof(Block));
    for (int i = 1; i < n - 1; i++) {
        size_t p = (size_t) i * apart;
        Block own = {{0}}, before;
        for (int m = 0; m < 5; m++)
            own[m][m] = 1;
        add_own_block(a[p], axis, own);
        neighbour_block(a[p - apart], axis, -1, before);
        neighbour_block(a[p + apart], axis, 1, beyond[i]);
        take_product(before, off[p - apart], off[p]);
        for (int m = 0; m < 5; m++)
            for (int q = 0; q < 5; q++)
                for (int l = 0; l < 5; l++)
                    own[m][l] -= before[m][q] * beyond[i - 1][q][l];
        divide(own, beyond[i], off[p]);
    }
    for (int i = n - 3; i > 0; i--)
        take_product(beyond[i], off[(size_t) (i + 1) * apart], off[(size_t) i * apart]);
}

static void one_step(void)
{
    rate_of_change(change, step_s);
    lines_of_slab(0, solve);
    lines_of_slab(1, solve);
    turn(change, turned);
    lines_along_z(solve);
    add_turned();
}

static const double COUNTED[] = {3478.8, -17655.7, 28023.7, 0};

static void check(Report *report)
{
    compare_norms(report, SIZES[report->size].left, SIZES[report->size].off);
}

int main(int argc, char **argv)
{
    Report report = {.kernel = "bt", .tolerance = 1e-8, .size = begin(argc, argv)};
    make_grid(SIZES[report.size].n, SIZES[report.size].step_s);
    make_turned();
    beyond = array((size_t) n, sizeof *beyond);
    run(&report, (Application) {SIZES[report.size].steps, start_turned, one_step, check, COUNTED});
    return end(&report);
}
