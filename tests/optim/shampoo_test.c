/* RANKS: 2 4 */
/* shampoo_test: ten steps against plain arithmetic in f64, whose roots come of eigenvalues, on one rank and under layouts and all
 * stages of ZeRO; and of a dim that is too long for a matrix.
 */
#include "handed.h"

static weft_oracle oracle;

enum { STEPS = 10, SIDES = 3, LONG = 1030, EVERY = 3 };
static const double BETA1 = 0.9, BETA2 = 0.999, EPSILON = 1e-8, RATE = 1e-3, DECAY = 0.01;

/* ---- in plain C ------------------------------------------------------------------------------- */

/* A variable of n_sides dims, its slots, and along each of them the mean and the root, [n, n] or [n]. */
typedef struct plain {
    int n_sides, count, n[SIDES], stride[SIDES];
    double *p, *m, *v, *mean[SIDES], *root[SIDES];
} plain;

static double *zeros(int count)
{
    double *data = calloc((size_t)count, sizeof *data);
    if (data == NULL) exit(2);
    return data;
}

static bool is_matrix(const plain *x, int d)
{
    return x->n[d] <= 1024;
}

static plain plain_make(int n_sides, const int *n)
{
    plain x = {.n_sides = n_sides, .count = 1};
    for (int d = n_sides - 1; d >= 0; d--) {
        x.n[d] = n[d], x.stride[d] = x.count, x.count *= n[d];
        x.mean[d] = zeros(is_matrix(&x, d) ? n[d] * n[d] : n[d]);
        x.root[d] = zeros(is_matrix(&x, d) ? n[d] * n[d] : n[d]);
    }
    x.p = zeros(x.count), x.m = zeros(x.count), x.v = zeros(x.count);
    for (int i = 0; i < x.count; i++)
        x.p[i] = begins_at(i);
    return x;
}

static void plain_free(plain *x)
{
    for (int d = 0; d < x->n_sides; d++)
        free(x->mean[d]), free(x->root[d]);
    free(x->p), free(x->m), free(x->v);
}

static double length_of(const double *x, int count)
{
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += x[i] * x[i];
    return sqrt(sum);
}

/* Columns i and j of x, and rows too where `both`, by an angle. */
static void rotate(double *x, int n, int i, int j, double c, double s, bool both)
{
    for (int k = 0; k < n; k++) {
        const double a = x[k * n + i], b = x[k * n + j];
        x[k * n + i] = c * a - s * b, x[k * n + j] = s * a + c * b;
    }
    for (int k = 0; k < n && both; k++) {
        const double a = x[i * n + k], b = x[j * n + k];
        x[i * n + k] = c * a - s * b, x[j * n + k] = s * a + c * b;
    }
}

/* root = (matrix / |matrix| + 1e-6)^(-1/power): Jacobi's rotations make the matrix diagonal. */
static void root_of(double *root, const double *matrix, int n, int power)
{
    double *x = zeros(n * n), *vectors = zeros(n * n);
    const double norm = length_of(matrix, n * n);
    for (int i = 0; i < n * n; i++)
        x[i] = matrix[i] / norm, root[i] = 0;
    for (int i = 0; i < n; i++)
        x[i * n + i] += 1e-6, vectors[i * n + i] = 1;
    for (int sweep = 0; sweep < 40; sweep++)
        for (int i = 0; i < n; i++)
            for (int j = i + 1; j < n; j++) {
                const double angle = 0.5 * atan2(2 * x[i * n + j], x[j * n + j] - x[i * n + i]);
                rotate(x, n, i, j, cos(angle), sin(angle), true);
                rotate(vectors, n, i, j, cos(angle), sin(angle), false);
            }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            for (int k = 0; k < n; k++)
                root[i * n + j] +=
                    vectors[i * n + k] * vectors[j * n + k] * pow(x[k * n + k], -1.0 / power);
    free(x), free(vectors);
}

/* Element i with coordinate k along d. */
static int moved(const plain *x, int i, int d, int k)
{
    return i + (k - i / x->stride[d] % x->n[d]) * x->stride[d];
}

static void learn_side(plain *x, int d, const double *g, bool is_time)
{
    const int n = x->n[d], size = is_matrix(x, d) ? n * n : n;
    for (int i = 0; i < size; i++)
        x->mean[d][i] *= BETA2;
    for (int i = 0; i < x->count; i++) {
        const int at = i / x->stride[d] % n;
        if (!is_matrix(x, d)) x->mean[d][at] += (1 - BETA2) * g[i] * g[i];
        for (int k = 0; k < n && is_matrix(x, d); k++)
            x->mean[d][at * n + k] += (1 - BETA2) * g[i] * g[moved(x, i, d, k)];
    }
    if (is_matrix(x, d) && is_time) root_of(x->root[d], x->mean[d], n, 2 * x->n_sides);
    const double norm = length_of(x->mean[d], size);
    for (int i = 0; i < n && !is_matrix(x, d); i++)
        x->root[d][i] = pow(x->mean[d][i] / norm + 1e-6, -0.5 / x->n_sides);
}

static void multiply_side(const plain *x, int d, double *step)
{
    double *made = zeros(x->count);
    for (int i = 0; i < x->count; i++) {
        const int n = x->n[d], at = i / x->stride[d] % n;
        if (!is_matrix(x, d)) made[i] = x->root[d][at] * step[i];
        for (int k = 0; k < n && is_matrix(x, d); k++)
            made[i] += x->root[d][at * n + k] * step[moved(x, i, d, k)];
    }
    memcpy(step, made, (size_t)x->count * sizeof *step);
    free(made);
}

static void plain_step(plain *x, const double *g, int t)
{
    double *adam = zeros(x->count), *step = zeros(x->count);
    for (int i = 0; i < x->count; i++) {
        x->m[i] = BETA1 * x->m[i] + (1 - BETA1) * g[i];
        x->v[i] = BETA2 * x->v[i] + (1 - BETA2) * g[i] * g[i];
        adam[i] =
            RATE * x->m[i] / (1 - pow(BETA1, t)) / (sqrt(x->v[i] / (1 - pow(BETA2, t))) + EPSILON);
        step[i] = x->m[i];
    }
    for (int d = 0; d < x->n_sides && x->n_sides > 1; d++) {
        learn_side(x, d, g, (t - 1) % EVERY == 0);
        multiply_side(x, d, step);
    }
    const double by = length_of(adam, x->count) / length_of(step, x->count);
    for (int i = 0; i < x->count; i++) {
        x->p[i] *= x->n_sides > 1 ? 1 - RATE * DECAY : 1;
        x->p[i] -= x->n_sides > 1 ? by * step[i] : adam[i];
    }
    free(adam), free(step);
}

/* ---- against Weft ------------------------------------------------------------------------------ */

static const weft_optimizer_options said = {.rate = 1e-3,
                                            .beta1 = 0.9,
                                            .beta2 = 0.999,
                                            .epsilon = 1e-8,
                                            .weight_decay = 0.01,
                                            .every = EVERY};
static const int sides[N][SIDES] = {{5, 7}, {7}, {2, 5, 7}, {0}, {5, 7}, {7, 5}};

static void compare(const double *found, const plain *x, const char *where)
{
    char text[300];
    double most = 0;
    for (int i = 0; i < x->count; i++) {
        const double off = fabs(found[i] - x->p[i]);
        if (!(off <= most)) most = off; /* keeps a NaN */
    }
    snprintf(text, sizeof text, "%s: off by %g", where, most);
    weft_test_check(most <= 1e-10, __FILE__, __LINE__, text);
}

static void compare_all(const trained *t, weft_program *program, const char *where)
{
    weft_error error = {0};
    for (int k = 0; k < N; k++) {
        double *found = NULL, g[LARGEST];
        char text[240];
        if (!CHECK_OK(weft_oracle_read(program, t->variables[k], &found, &error), error)) return;
        for (int which = 0; which < extents[k][0]; which++) {
            plain x = plain_make(n_dims[k], sides[k]);
            for (int step = 1; step <= STEPS; step++) {
                for (int i = 0; i < x.count; i++)
                    g[i] = gradient_at(k, step - 1, which * x.count + i);
                plain_step(&x, g, step);
            }
            snprintf(text, sizeof text, "variable %d %s", k, where);
            compare(found + which * x.count, &x, text);
            plain_free(&x);
        }
        free(found);
    }
}

static void check_on(weft_mesh *mesh, const char *layout, int stage)
{
    weft_program *program = NULL;
    weft_error error = {0};
    char where[200];
    trained t = make("shampoo", said);
    snprintf(where, sizeof where, "on %s under \"%s\", stage %d", weft_mesh_text(mesh), layout,
             stage);
    if (CHECK_OK(compile(&t, mesh, layout, stage, &program, &error), error) &&
        CHECK_OK(train(&t, program, STEPS, &error), error))
        compare_all(&t, program, where);
    weft_program_destroy(&program);
    weft_graph_destroy(&t.graph);
}

static void test_ten_steps_are_the_plain_rule(void)
{
    check_on(oracle.alone, "", 0);
    for (int m = 0; m < oracle.n_meshes; m++)
        for (int l = 0; l < N_LAYOUTS; l++)
            check_on(oracle.meshes[m], layouts[l], (m + l) % 4);
    for (int m = 0; m < oracle.n_meshes; m++)
        check_on(oracle.meshes[m], "batch:data?,shampoo_a:model?,shampoo_b:data?", m % 4);
}

/* ---- a long dim --------------------------------------------------------------------------------- */

static void test_of_a_long_dim_there_is_the_diagonal(void)
{
    const weft_dim high = {"high", LONG}, wide = {"wide", 3};
    weft_error error = {0};
    weft_program *program = NULL;
    weft_graph *graph = weft_graph_create(1);
    const weft_value w = weft_variable(graph, "w", WEFT_F64, WEFT_DIMS(high, wide),
                                       weft_formula(0.5, 0.7)),
                     g = weft_input(graph, "g", WEFT_F64, WEFT_DIMS(high, wide)), none = {NULL, 0};
    weft_optimizer_options options = said;
    options.variables = (weft_values){&w, 1}, options.gradients = (weft_values){&g, 1};
    const weft_value token = weft_shampoo(none, &options);
    plain x = plain_make(2, (const int[]){LONG, 3});
    double *data = zeros(x.count), *found = NULL;
    bool is_right = CHECK_OK(
        weft_compile(oracle.alone, NULL, WEFT_VALUES(token), NULL, &program, &error), error);
    for (int step = 1; step <= 2 && is_right; step++) {
        for (int i = 0; i < x.count; i++)
            data[i] = gradient_at(0, step, i);
        plain_step(&x, data, step);
        is_right = CHECK_OK(weft_oracle_write(program, g, data, &error), error) &&
                   CHECK_OK(weft_run(program, &error), error);
    }
    if (is_right && CHECK_OK(weft_oracle_read(program, w, &found, &error), error))
        compare(found, &x, "a long dim");
    free(found), free(data);
    plain_free(&x);
    weft_program_destroy(&program);
    weft_graph_destroy(&graph);
}

/* ---- small gradients in f32 ---------------------------------------------------------------------- */

enum { HIGH = 8, WIDE = 16 };

/* The weights after four steps. */
static weft_status learn_from(double scale, float *found, weft_error *error)
{
    const weft_dim high = {"high", HIGH}, wide = {"wide", WIDE};
    float data[HIGH * WIDE];
    weft_program *program = NULL;
    weft_graph *graph = weft_graph_create(1);
    const weft_value w = weft_variable(graph, "w", WEFT_F32, WEFT_DIMS(high, wide),
                                       weft_formula(0.5, 0.7)),
                     g = weft_input(graph, "g", WEFT_F32, WEFT_DIMS(high, wide)), none = {NULL, 0};
    weft_optimizer_options options = said;
    options.epsilon = scale < 1e-20 ? 1e-8 : 1e-30;
    options.variables = (weft_values){&w, 1}, options.gradients = (weft_values){&g, 1};
    const weft_value token = weft_shampoo(none, &options);
    weft_status status =
        weft_compile(oracle.alone, NULL, WEFT_VALUES(token), NULL, &program, error);
    for (int step = 1; step <= 4 && status == WEFT_OK; step++) {
        for (int i = 0; i < HIGH * WIDE; i++)
            data[i] = (float)((weft_oracle_unit(step, i) - 0.4) * scale);
        status = weft_write(program, g, WEFT_F32, data, sizeof data, error);
        if (status == WEFT_OK) status = weft_run(program, error);
    }
    if (status == WEFT_OK) status = weft_read(program, w, WEFT_F32, found, sizeof data, error);
    weft_program_destroy(&program);
    weft_graph_destroy(&graph);
    return status;
}

/* A step is as long whatever the gradients' size; from about 1e-22 on a square is 0 in f32, and nothing can be said but that weights
 * stay where they were. */
static void test_small_gradients_lead_where_large_ones_do(void)
{
    static const int powers[] = {34, 17, -10, -27, -37, -43, -75, -200};
    float expected[HIGH * WIDE], found[HIGH * WIDE];
    weft_error error = {0};
    if (!CHECK_OK(learn_from(1.0, expected, &error), error)) return;
    for (size_t k = 0; k < sizeof powers / sizeof *powers; k++) {
        char text[100];
        double most = 0;
        if (!CHECK_OK(learn_from(ldexp(1.0, powers[k]), found, &error), error)) continue;
        for (int i = 0; i < HIGH * WIDE; i++) {
            const double off = fabs((double)found[i] - (double)expected[i]);
            if (!(off <= most)) most = off; /* keeps a NaN */
        }
        snprintf(text, sizeof text, "gradients of 2^%d: off by %g", powers[k], most);
        weft_test_check(most <= (powers[k] < -60 ? 0.01 : 1e-5), __FILE__, __LINE__, text);
    }
}

int main(void)
{
    static const char *const meshes[] = {"data:2", "model:2", "data:2,model:2", "model:4"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 4, &error), error)) {
        RUN(test_ten_steps_are_the_plain_rule);
        RUN(test_of_a_long_dim_there_is_the_diagonal);
        RUN(test_small_gradients_lead_where_large_ones_do);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
