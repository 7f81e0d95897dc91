/* CG: the smallest eigenvalue of a sparse matrix by the inverse power method, each step of which solves a
   linear system by 25 steps of conjugate gradients. NAS-95-020, kernel CG.

   The processes form a grid of R rows and C columns, C = R or 2 R, and each has that block of the matrix.
   A vector is cut into R C pieces. Process (r, c) works on piece c R + r; so the processes of a column have
   what their columns of the matrix are multiplied with, and what the processes of a row have summed up is
   pieces r C to r C + C - 1, each of which then goes to the process that works on it. */
#include "common.h"

#define INNER 25
#define RCOND 0.1                           /* the generator's condition number is 1 / RCOND */

static const struct {int n, filled, steps; double shift, zeta;} SIZES[] = {
    /* rows, nonzeros of each generating vector, iterations, shift, published zeta: A's and B's are in
       NAS-95-020, the others' came with NPB 2 and 3 */
    {1400, 7, 15, 10, 8.5971775078648},
    {7000, 8, 15, 12, 10.362595087124},
    {14000, 11, 15, 20, 17.130235054029},
    {75000, 13, 75, 60, 22.712745482631},
    {150000, 15, 75, 110, 28.973605592845}};

typedef struct {int64_t *start; int *column; double *value;} Matrix;

static int n, filled, rows, columns, row, column;   /* of the matrix; of the process grid; our place */
static int piece;                           /* elements of a piece of a vector */
static int first_row, first_column, row_count, column_count;    /* of our block of the matrix */
static int gives_to, takes_from, number;    /* pieces of a product; the piece that is ours */
static MPI_Comm in_row, in_column;
static Matrix A;
static double *wide, *tall, *part;          /* of column_count, row_count and piece elements */

static void place(void)
{
    for (rows = 1; rows * rows * 4 <= ranks_; rows *= 2)
        ;
    columns = ranks_ / rows;
    row = rank_ / columns;
    column = rank_ % columns;
    piece = (n + ranks_ - 1) / ranks_;      /* what is past n stays zero */
    row_count = piece * columns;
    column_count = piece * rows;
    first_row = row * row_count;
    first_column = column * column_count;
    number = column * rows + row;
    /* the product's piece k lies at process k; it belongs to (k % rows, k / rows) */
    gives_to = rank_ % rows * columns + rank_ / rows;
    takes_from = number;
    MPI_Comm_split(MPI_COMM_WORLD, row, column, &in_row);
    MPI_Comm_split(MPI_COMM_WORLD, column, row, &in_column);
}

/* A random vector of `filled` nonzeros at places of their own, with 1/2 at place i; how many these are. */
static int generating_vector(uint64_t *x, int i, int *at, double *value)
{
    int count = 0, range = 1;
    while (range < n)
        range *= 2;
    while (count < filled) {
        double drawn = draw(x);
        int where = (int) (range * draw(x)), known = where >= n;
        for (int j = 0; j < count; j++)
            known |= at[j] == where;
        if (!known) {
            at[count] = where;
            value[count++] = drawn;
        }
    }
    for (int j = 0; j < count; j++)
        if (at[j] == i) {
            value[j] = 0.5;
            return count;
        }
    at[count] = i;
    value[count] = 0.5;
    return count + 1;
}

/* Walks over the sum of the weighted outer products, as far as it lies in our block: with `fill` null it
   counts each row's terms in start[row + 1], else it puts them at fill[row]. */
static void outer_products(Matrix *m, int64_t *fill)
{
    int at[32];
    double value[32], weight = 1, ratio = pow(RCOND, 1.0 / n);
    uint64_t x = after(USUAL_SEED, 1);
    for (int i = 0; i < n; i++, weight *= ratio) {
        int count = generating_vector(&x, i, at, value);
        for (int j = 0; j < count; j++) {
            int r = at[j] - first_row;
            if (r < 0 || r >= row_count)
                continue;
            for (int k = 0; k < count; k++) {
                int c = at[k] - first_column;
                if (c < 0 || c >= column_count)
                    continue;
                if (!fill) {
                    m->start[r + 1]++;
                    continue;
                }
                m->column[fill[r]] = c;
                m->value[fill[r]++] = weight * value[j] * value[k];
            }
        }
    }
}

static int by_number(const void *a, const void *b)
{
    return *(const int *) a - *(const int *) b;
}

/* One row with its terms of the same column summed up, columns ascending, from `to` on; where it ends. */
static int64_t merge(Matrix *m, int64_t from, int64_t until, int64_t to, double *sum, char *seen)
{
    int64_t end = to;
    for (int64_t i = from; i < until; i++) {
        int c = m->column[i];
        sum[c] += m->value[i];
        if (!seen[c]) {
            seen[c] = 1;
            m->column[end++] = c;
        }
    }
    qsort(m->column + to, (size_t) (end - to), sizeof *m->column, by_number);
    for (int64_t i = to; i < end; i++) {
        int c = m->column[i];
        m->value[i] = sum[c];
        sum[c] = 0;
        seen[c] = 0;
    }
    return end;
}

/* Our block of the sum of the outer products + (RCOND - shift) I. */
static void make_matrix(double shift)
{
    A.start = array((size_t) row_count + 1, sizeof *A.start);
    outer_products(&A, NULL);
    int64_t *fill = array((size_t) row_count, sizeof *fill), end = 0;
    for (int i = 0; i < row_count; i++)
        fill[i] = A.start[i + 1] += A.start[i];
    for (int i = row_count - 1; i >= 0; i--)
        fill[i] = A.start[i];
    A.column = array((size_t) A.start[row_count], sizeof *A.column);
    A.value = array((size_t) A.start[row_count], sizeof *A.value);
    outer_products(&A, fill);
    double *sum = array((size_t) column_count, sizeof *sum);
    char *seen = array((size_t) column_count, 1);
    for (int i = 0; i < row_count; i++) {
        int64_t from = A.start[i];
        A.start[i] = end;
        end = merge(&A, from, fill[i], end, sum, seen);
        for (int64_t j = A.start[i]; j < end; j++)
            if (A.column[j] + first_column == i + first_row)    /* each has a term of its own vector */
                A.value[j] += RCOND - shift;
    }
    A.start[row_count] = end;
    free(fill);
    free(sum);
    free(seen);
}

/* y = A x, pieces both. */
static void multiply(const double *x, double *y)
{
    MPI_Allgather(x, piece, MPI_DOUBLE, wide, piece, MPI_DOUBLE, in_column);
    for (int i = 0; i < row_count; i++) {
        double sum = 0;
        for (int64_t j = A.start[i]; j < A.start[i + 1]; j++)
            sum += A.value[j] * wide[A.column[j]];
        tall[i] = sum;
    }
    MPI_Reduce_scatter_block(tall, part, piece, MPI_DOUBLE, MPI_SUM, in_row);
    MPI_Sendrecv(part, piece, MPI_DOUBLE, gives_to, 0, y, piece, MPI_DOUBLE, takes_from, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static double dot(const double *x, const double *y)
{
    double sum = 0, all;
    for (int i = 0; i < piece; i++)
        sum += x[i] * y[i];
    MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

/* Solves A z = x from zero by INNER steps; the norm of what remains. r, p, q are scratch. */
static double solve(const double *x, double *z, double *r, double *p, double *q)
{
    for (int i = 0; i < piece; i++) {
        z[i] = 0;
        r[i] = p[i] = x[i];
    }
    double rho = dot(r, r);
    for (int k = 0; k < INNER; k++) {
        multiply(p, q);
        double alpha = rho / dot(p, q);
        for (int i = 0; i < piece; i++) {
            z[i] += alpha * p[i];
            r[i] -= alpha * q[i];
        }
        double next = dot(r, r), beta = next / rho;
        rho = next;
        for (int i = 0; i < piece; i++)
            p[i] = r[i] + beta * p[i];
    }
    multiply(z, q);
    for (int i = 0; i < piece; i++)
        r[i] = x[i] - q[i];
    return sqrt(dot(r, r));
}

static void ones(double *x)
{
    for (int i = 0; i < piece; i++)
        x[i] = number * piece + i < n;
}

static int size;
static double *vector[5], zeta, remains;

/* A step of the power method, which makes x the next one. */
static void step(void)
{
    double *x = vector[0], *z = vector[1];
    remains = solve(x, z, vector[2], vector[3], vector[4]);
    zeta = SIZES[size].shift + 1 / dot(x, z);
    double length = sqrt(dot(z, z));
    for (int j = 0; j < piece; j++)
        x[j] = z[j] / length;
}

static void start(void)
{
    ones(vector[0]);
    step();                                 /* memory is touched, connections are there */
    ones(vector[0]);
}

static void timed(Report *report)
{
    for (int i = 0; i < SIZES[size].steps; i++) {
        double began = MPI_Wtime();
        step();
        step_done(report, began);
    }
}

static void check(Report *report)
{
    compare(report, zeta, SIZES[size].zeta);
    report->value[report->values++] = remains;
}

int main(int argc, char **argv)
{
    Report report = {.kernel = "cg", .tolerance = 1e-10, .size = begin(argc, argv)};
    size = report.size;
    n = SIZES[size].n;
    filled = SIZES[size].filled;
    place();
    make_matrix(SIZES[size].shift);
    for (int i = 0; i < 5; i++)
        vector[i] = array((size_t) piece, sizeof **vector);
    wide = array((size_t) column_count, sizeof *wide);
    tall = array((size_t) row_count, sizeof *tall);
    part = array((size_t) piece, sizeof *part);
    /* of additions and multiplications, as NPB counts */
    double terms = filled * (filled + 1);
    report.operations = 2.0 * SIZES[size].steps * n * (3 + terms + INNER * (5.0 + terms) + 3);
    repeat(&report, (Run) {start, timed, check});
    return end(&report);
}
