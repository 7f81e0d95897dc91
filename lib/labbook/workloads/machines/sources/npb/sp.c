/* SP: the gas of fluid.h, solved in each step along x, y and z in its five waves, each by itself.
   NAS-95-020, simulated application SP.

   Along an axis three waves move with the gas, and two with sound beside it. A wave's unknowns on a line are a
   pentadiagonal system. Lines along z are at home after a transpose of the change. */
#include "turned.h"

static const struct {int n, steps; double step_s, left[5], off[5];} SIZES[] = {
    /* published norms: A's and B's are in NAS-95-020, the others' came with NPB 2 and 3 */
    {12, 100, 0.015,
     {2.7470315451339479e-02, 1.0360746705285417e-02, 1.6235745065095532e-02, 1.5840557224455615e-02, 3.4849040609362460e-02},
     {2.7289258557377227e-05, 1.0364446640837285e-05, 1.6154798287166471e-05, 1.5750704994480102e-05, 3.4177666183390531e-05}},
    {36, 400, 0.0015,
     {0.1893253733584e-02, 0.1717075447775e-03, 0.2778153350936e-03, 0.2887475409984e-03, 0.3143611161242e-02},
     {0.7542088599534e-04, 0.6512852253086e-05, 0.1049092285688e-04, 0.1128838671535e-04, 0.1212845639773e-03}},
    {64, 400, 0.0015,
     {2.4799822399300195, 1.1276337964368832, 1.5028977888770491, 1.4217816211695179, 2.1292113035138280},
     {1.0900140297820550e-04, 3.7343951769282091e-05, 5.0092785406541633e-05, 4.7671093939528255e-05, 1.3621613399213001e-04}},
    {102, 400, 0.001,
     {0.6903293579998e+02, 0.3095134488084e+02, 0.4103336647017e+02, 0.3864769009604e+02, 0.5643482272596e+02},
     {0.9810006190188e-02, 0.1022827905670e-02, 0.1720597911692e-02, 0.1694479428231e-02, 0.1847456263981e-01}},
    {162, 400, 0.00067,
     {0.5881691581829e+03, 0.2454417603569e+03, 0.3293829191851e+03, 0.3081924971891e+03, 0.4597223799176e+03},
     {0.2598120500183e+00, 0.2590888922315e-01, 0.5132886416320e-01, 0.4806073419454e-01, 0.5483377491301e+00}}};

typedef double Bands[5];                    /* of a row: two before, itself, two after */

static Bands *band;                         /* of a line */
static double *along, *sound, *spread;      /* of its points: velocity, speed of sound, diffusion */

static inline double sound_of(const double *a, const Gas *of)
{
    return sqrt(GAMMA * of->pressure / a[0]);
}

static inline double most(double a, double b)
{
    return a > b ? a : b;
}

/* The rows of a wave that moves with the gas and `way` x the speed of sound. */
static void fill(int way)
{
    double once = step_s * (n - 1) / 2, twice = step_s * (n - 1) * (n - 1);
    for (int i = 1; i < n - 1; i++) {
        const double *fourth = FOURTH[i == 1 ? 0 : i == 2 ? 1 : i == n - 3 ? 3 : i == n - 2 ? 4 : 2];
        for (int j = 0; j < 5; j++)
            band[i][j] = step_s * SMOOTHING * fourth[j];
        band[i][1] += -once * (along[i - 1] + way * sound[i - 1]) - twice * spread[i - 1];
        band[i][2] += 1 + 2 * twice * spread[i];
        band[i][3] += once * (along[i + 1] + way * sound[i + 1]) - twice * spread[i + 1];
    }
}

/* Solve for the waves `from` to before `to`, whose rows are in `band`; on the faces nothing changes. */
static void solve_waves(Five *off, size_t apart, int from, int to)
{
    for (int i = 1; i < n - 1; i++) {
        double *row = band[i], inverse;
        size_t p = (size_t) i * apart;
        if (i > 2) {
            row[1] -= row[0] * band[i - 2][3];
            row[2] -= row[0] * band[i - 2][4];
        }
        if (i > 1) {
            row[2] -= row[1] * band[i - 1][3];
            row[3] -= row[1] * band[i - 1][4];
        }
        inverse = 1 / row[2];
        row[3] *= inverse;
        row[4] *= inverse;
        for (int m = from; m < to; m++) {
            if (i > 2)
                off[p][m] -= row[0] * off[p - 2 * apart][m];
            if (i > 1)
                off[p][m] -= row[1] * off[p - apart][m];
            off[p][m] *= inverse;
        }
    }
    for (int i = n - 3; i > 0; i--)
        for (int m = from; m < to; m++) {
            size_t p = (size_t) i * apart;
            off[p][m] -= band[i][3] * off[p + apart][m];
            if (i < n - 3)
                off[p][m] -= band[i][4] * off[p + 2 * apart][m];
        }
}

static void solve(int axis, const Five *a, Five *off, size_t apart)
{
    for (int i = 0; i < n; i++) {
        const double *here = a[(size_t) i * apart];
        Gas of = gas_of(here);
        double thin = VISCOSITY / here[0];
        along[i] = of.v[axis];
        sound[i] = sound_of(here, &of);
        spread[i] = DIFFUSION[axis] + most(4. / 3, GAMMA * GAMMA) * thin;
    }
    for (int way = -1; way < 2; way++) {
        fill(way);
        solve_waves(off, apart, way == 0 ? 0 : way > 0 ? 3 : 4, way == 0 ? 3 : way > 0 ? 4 : 5);
    }
}

/* From the five values to waves along x. */
static void to_waves(const double *a, double *r)
{
    Gas of = gas_of(a);
    const double *v = of.v, root = sqrt(0.5), thin = 1 / a[0], c = sound_of(a, &of);
    double pressed = (GAMMA - 1) / (c * c) * (of.half * r[0] - v[0] * r[1] - v[1] * r[2] - v[2] * r[3] + r[4]);
    double moved = root * thin * (v[0] * r[0] - r[1]), rang = root * thin * c * pressed;
    double y = thin * (v[1] * r[0] - r[2]), z = -thin * (v[2] * r[0] - r[3]);
    r[0] -= pressed;
    r[1] = z;
    r[2] = y;
    r[3] = rang - moved;
    r[4] = rang + moved;
}

/* From waves along x to those along y. */
static void x_to_y(double *r)
{
    double root = sqrt(0.5), moved = root * r[2], both = 0.5 * (r[3] + r[4]), apart = root * (r[3] - r[4]), one = r[0];
    r[0] = -r[1];
    r[1] = one;
    r[2] = apart;
    r[3] = both - moved;
    r[4] = both + moved;
}

/* From waves along y to those along z. */
static void y_to_z(double *r)
{
    double root = sqrt(0.5), moved = root * r[0], both = 0.5 * (r[3] + r[4]), one = r[1];
    r[0] = root * (r[3] - r[4]);
    r[1] = -r[2];
    r[2] = one;
    r[3] = both - moved;
    r[4] = both + moved;
}

/* From waves along z to the five values. */
static void from_waves(const double *a, double *r)
{
    Gas of = gas_of(a);
    const double *v = of.v, root = sqrt(0.5) * a[0], c = sound_of(a, &of);
    double rang = root / c * (r[3] + r[4]), mass = r[2] + rang, moved = root * (r[3] - r[4]);
    double x = -a[0] * r[1], y = a[0] * r[0];
    r[0] = mass;
    r[1] = x + v[0] * mass;
    r[2] = y + v[1] * mass;
    r[3] = v[2] * mass + moved;
    r[4] = v[0] * x + v[1] * y + of.half * mass + c * c / (GAMMA - 1) * rang + v[2] * moved;
}

static void one_step(void)
{
    rate_of_change(change, step_s);
    size_t end_of_slab = at(planes, 0, 0);
    for (size_t p = at(0, 0, 0); p < end_of_slab; p++)
        to_waves(u[p], change[p]);
    lines_of_slab(0, solve);
    for (size_t p = at(0, 0, 0); p < end_of_slab; p++)
        x_to_y(change[p]);
    lines_of_slab(1, solve);
    for (size_t p = at(0, 0, 0); p < end_of_slab; p++)
        y_to_z(change[p]);
    turn(change, turned);
    lines_along_z(solve);
    for (size_t p = 0; p < wide * (size_t) rows; p++)
        from_waves(turned_u[p], turned[p]);
    add_turned();
}

static const double COUNTED[] = {881.174, -4683.91, 11484.5, -19272.4};

static void check(Report *report)
{
    compare_norms(report, SIZES[report->size].left, SIZES[report->size].off);
}

int main(int argc, char **argv)
{
    Report report = {.kernel = "sp", .tolerance = 1e-8, .size = begin(argc, argv)};
    make_grid(SIZES[report.size].n, SIZES[report.size].step_s);
    make_turned();
    band = array((size_t) n, sizeof *band);
    along = array((size_t) n, sizeof *along);
    sound = array((size_t) n, sizeof *sound);
    spread = array((size_t) n, sizeof *spread);
    run(&report, (Application) {SIZES[report.size].steps, start_turned, one_step, check, COUNTED});
    return end(&report);
}
