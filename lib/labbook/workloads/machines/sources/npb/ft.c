/* FT: a partial differential equation solved by Fourier transforms of a three-dimensional array.
   NAS-95-020, kernel FT.

   In space a process has whole planes of x and y; among frequencies whole x and z, and a share of the y:
   so each transform of one axis is at home, and a transpose of the array lies between y and z. */
#include "common.h"

#define LANES 16                            /* lines that are transformed together */
#define ALPHA 1e-6
#define SUMMED 1024
#define MOST_SUMS 20

typedef struct {double re, im;} Complex;

static const struct {int x, y, z, steps;} SIZES[] = {
    {64, 64, 64, 6}, {128, 128, 32, 6}, {256, 256, 128, 6}, {512, 256, 256, 20}, {512, 512, 512, 20}};
/* Checksums after each step. Class A's and B's are in NAS-95-020, the others' came with NPB 2 and 3. */
static const double SUMS[][MOST_SUMS][2] = {
    {{5.546087004964e+02, 4.845363331978e+02}, {5.546385409189e+02, 4.865304269511e+02},
     {5.546148406171e+02, 4.883910722336e+02}, {5.545423607415e+02, 4.901273169046e+02},
     {5.544255039624e+02, 4.917475857993e+02}, {5.542683411902e+02, 4.932597244941e+02}},
    {{5.673612178944e+02, 5.293246849175e+02}, {5.631436885271e+02, 5.282149986629e+02},
     {5.594024089970e+02, 5.270996558037e+02}, {5.560698047020e+02, 5.260027904925e+02},
     {5.530898991250e+02, 5.249400845633e+02}, {5.504159734538e+02, 5.239212247086e+02}},
    {{5.046735008193e+02, 5.114047905510e+02}, {5.059412319734e+02, 5.098809666433e+02},
     {5.069376896287e+02, 5.098144042213e+02}, {5.077892868474e+02, 5.101336130759e+02},
     {5.085233095391e+02, 5.104914655194e+02}, {5.091487099959e+02, 5.107917842803e+02}},
    {{5.177643571579e+02, 5.077803458597e+02}, {5.154521291263e+02, 5.088249431599e+02},
     {5.146409228649e+02, 5.096208912659e+02}, {5.142378756213e+02, 5.101023387619e+02},
     {5.139626667737e+02, 5.103976610617e+02}, {5.137423460082e+02, 5.105948019802e+02},
     {5.135547056878e+02, 5.107404165783e+02}, {5.133910925466e+02, 5.108576573661e+02},
     {5.132470705390e+02, 5.109577278523e+02}, {5.131197729984e+02, 5.110460304483e+02},
     {5.130070319283e+02, 5.111252433800e+02}, {5.129070537032e+02, 5.111968077718e+02},
     {5.128182883502e+02, 5.112616233064e+02}, {5.127393733383e+02, 5.113203605551e+02},
     {5.126691062020e+02, 5.113735928093e+02}, {5.126064276004e+02, 5.114218460548e+02},
     {5.125504076570e+02, 5.114656139760e+02}, {5.125002331720e+02, 5.115053595966e+02},
     {5.124551951846e+02, 5.115415130407e+02}, {5.124146770029e+02, 5.115744692211e+02}},
    {{5.195078707457e+02, 5.149019699238e+02}, {5.155422171134e+02, 5.127578201997e+02},
     {5.144678022222e+02, 5.122251847514e+02}, {5.140150594328e+02, 5.121090289018e+02},
     {5.137550426810e+02, 5.121143685824e+02}, {5.135811056728e+02, 5.121496764568e+02},
     {5.134569343165e+02, 5.121870921893e+02}, {5.133651975661e+02, 5.122193250322e+02},
     {5.132955192805e+02, 5.122454735794e+02}, {5.132410471738e+02, 5.122663649603e+02},
     {5.131971141679e+02, 5.122830879827e+02}, {5.131605205716e+02, 5.122965869718e+02},
     {5.131290734194e+02, 5.123075927445e+02}, {5.131012720314e+02, 5.123166486553e+02},
     {5.130760908195e+02, 5.123241541685e+02}, {5.130528295923e+02, 5.123304037599e+02},
     {5.130310107773e+02, 5.123356167976e+02}, {5.130103090133e+02, 5.123399592211e+02},
     {5.129905029333e+02, 5.123435588985e+02}, {5.129714421109e+02, 5.123465164008e+02}}};

static int nx, ny, nz, planes, share;       /* of the array; z of a process in space; y among frequencies */
static int widest;
static size_t points;                       /* of a process */
static Complex *root, *work, *other;        /* of unity; [widest][LANES] twice */
static Complex *kept, *moving, *packed;     /* frequencies; what is transformed; for transposes */
static double *decay[3];                    /* of each frequency of an axis, in one step */

/* Stockham's transform of LANES lines at a time, [n][LANES] in `work`, sorted without a permutation. */
static void transform(int n, int inverse)
{
    Complex *from = work, *to = other;
    for (int length = n, wide = LANES; length > 1; length /= 2, wide *= 2) {
        int half = length / 2;
        for (int p = 0; p < half; p++) {
            Complex w = root[p * (widest / length)];
            double sine = inverse ? -w.im : w.im;
            const Complex *a = from + (size_t) p * wide, *b = a + (size_t) half * wide;
            Complex *sum = to + 2 * (size_t) p * wide, *turned = sum + wide;
            for (int q = 0; q < wide; q++) {
                double re = a[q].re - b[q].re, im = a[q].im - b[q].im;
                sum[q].re = a[q].re + b[q].re;
                sum[q].im = a[q].im + b[q].im;
                turned[q].re = re * w.re - im * sine;
                turned[q].im = re * sine + im * w.re;
            }
        }
        Complex *swap = from;
        from = to;
        to = swap;
    }
    work = from;
    other = to;
}

/* Transforms `count` lines of n points each, `along` apart; their first points lie `across` apart. */
static void lines(Complex *a, int n, size_t along, size_t count, size_t across, int inverse)
{
    for (size_t first = 0; first < count; first += LANES) {
        Complex *block = a + first * across;
        for (int i = 0; i < n; i++)
            for (int lane = 0; lane < LANES; lane++)
                work[i * LANES + lane] = block[(size_t) i * along + (size_t) lane * across];
        transform(n, inverse);
        for (int i = 0; i < n; i++)
            for (int lane = 0; lane < LANES; lane++)
                block[(size_t) i * along + (size_t) lane * across] = work[i * LANES + lane];
    }
}

static void along_x_and_y(Complex *a, int inverse)
{
    lines(a, nx, 1, (size_t) planes * (size_t) ny, (size_t) nx, inverse);
    for (int z = 0; z < planes; z++)
        lines(a + (size_t) z * (size_t) ny * (size_t) nx, ny, (size_t) nx, (size_t) nx, 1, inverse);
}

static void along_z(Complex *a, int inverse)
{
    lines(a, nz, (size_t) share * (size_t) nx, (size_t) share * (size_t) nx, 1, inverse);
}

/* Each process's y of each plane, one after the other (or back): the order in which they are sent. */
static void by_process(Complex *array_of_planes, Complex *ordered, int back)
{
    size_t run = (size_t) share * (size_t) nx;
    for (int p = 0; p < ranks_; p++)
        for (int z = 0; z < planes; z++) {
            Complex *a = array_of_planes + ((size_t) z * (size_t) ranks_ + (size_t) p) * run;
            Complex *b = ordered + ((size_t) p * (size_t) planes + (size_t) z) * run;
            memcpy(back ? a : b, back ? b : a, run * sizeof *a);
        }
}

static void exchange(Complex *from, Complex *to)
{
    int block = (int) (points / (size_t) ranks_);
    MPI_Alltoall(from, block, MPI_C_DOUBLE_COMPLEX, to, block, MPI_C_DOUBLE_COMPLEX, MPI_COMM_WORLD);
}

/* `moving`, in space, to frequencies [z][y][x] in `kept`. */
static void to_frequencies(void)
{
    along_x_and_y(moving, 0);
    by_process(moving, packed, 0);
    exchange(packed, kept);
    along_z(kept, 0);
}

/* `moving`, frequencies, to space [z][y][x] in its place. */
static void to_space(void)
{
    along_z(moving, 1);
    exchange(moving, packed);
    by_process(moving, packed, 1);
    along_x_and_y(moving, 1);
}

static void start_values(void)
{
    uint64_t state = after(USUAL_SEED, 2 * (uint64_t) rank_ * points);
    for (size_t i = 0; i < points; i++) {
        moving[i].re = draw(&state);
        moving[i].im = draw(&state);
    }
}

/* One step in time: `kept` moves on, and `moving` is its copy. */
static void evolve(void)
{
    size_t at = 0;
    for (int z = 0; z < nz; z++)
        for (int y = rank_ * share; y < (rank_ + 1) * share; y++) {
            double both = decay[2][z] * decay[1][y];
            for (int x = 0; x < nx; x++, at++) {
                double factor = both * decay[0][x];
                kept[at].re *= factor;
                kept[at].im *= factor;
                moving[at] = kept[at];
            }
        }
}

static void checksum(double *sum)
{
    double mine[2] = {0, 0}, all = (double) nx * ny * nz;
    for (int j = 1; j <= SUMMED; j++) {
        int x = j % nx, y = 3 * j % ny, z = 5 * j % nz - rank_ * planes;
        if (z < 0 || z >= planes)
            continue;
        Complex found = moving[((size_t) z * (size_t) ny + (size_t) y) * (size_t) nx + (size_t) x];
        mine[0] += found.re / all;          /* of the inverse transform */
        mine[1] += found.im / all;
    }
    MPI_Allreduce(mine, sum, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void prepare(void)
{
    const double pi = acos(-1);
    int n[3] = {nx, ny, nz};
    widest = nx > ny ? nx : ny;
    widest = nz > widest ? nz : widest;
    root = array((size_t) widest, sizeof *root);
    for (int i = 0; i < widest; i++)
        root[i] = (Complex) {cos(2 * pi * i / widest), -sin(2 * pi * i / widest)};
    for (int axis = 0; axis < 3; axis++) {
        decay[axis] = array((size_t) n[axis], sizeof *decay[axis]);
        for (int i = 0; i < n[axis]; i++) {
            double k = i < n[axis] / 2 ? i : i - n[axis];
            decay[axis][i] = exp(-4 * ALPHA * pi * pi * k * k);
        }
    }
    work = array((size_t) widest * LANES, sizeof *work);
    other = array((size_t) widest * LANES, sizeof *other);
    kept = array(points, sizeof *kept);
    moving = array(points, sizeof *moving);
    packed = array(points, sizeof *packed);
}

static int size;
static double sums[MOST_SUMS][2];

static void start(void)
{
    start_values();                         /* memory is touched, connections are there */
    to_frequencies();
}

static void timed(Report *report)
{
    start_values();
    to_frequencies();
    for (int i = 0; i < SIZES[size].steps; i++) {
        double began = MPI_Wtime();
        evolve();
        to_space();
        checksum(sums[i]);
        step_done(report, began);
    }
}

static void check(Report *report)
{
    for (int i = 0; i < SIZES[size].steps; i++)
        for (int part = 0; part < 2; part++)
            compare(report, sums[i][part], SUMS[size][i][part]);
}

int main(int argc, char **argv)
{
    Report report = {.kernel = "ft", .tolerance = 1e-12, .size = begin(argc, argv)};
    size = report.size;
    nx = SIZES[size].x;
    ny = SIZES[size].y;
    nz = SIZES[size].z;
    planes = nz / ranks_;
    share = ny / ranks_;
    if (!planes || !share)
        fail("%d ranks are too many for this size", ranks_);
    points = (size_t) planes * (size_t) ny * (size_t) nx;
    prepare();
    double all = (double) nx * ny * nz, log_all = log(all);
    /* of additions and multiplications, as NPB counts */
    report.operations = all * (14.8157 + 7.19641 * log_all + (5.23518 + 7.21113 * log_all) * SIZES[size].steps);
    repeat(&report, (Run) {start, timed, check});
    return end(&report);
}
