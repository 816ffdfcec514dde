/* RANKS: 2 4 */
/* rules_test: ten steps of every rule against plain scalar arithmetic in f64 (adafactor, shampoo: tests of their own), on one rank and
 * under layouts and all stages of ZeRO, with weight decay and without; and each element-wise rule in one loop.
 */
#include "handed.h"
#include "weft/research/plan.h"

static weft_oracle oracle;

enum { STEPS = 10 };

/* ---- in plain C: one variable, one step ------------------------------------------------------ */

typedef struct plain {
    const weft_optimizer_options *o; /* the numbers, defaults filled in */
    int t, count, rows, columns, n_dims;
    double p[LARGEST], a[LARGEST], b[LARGEST]; /* the variable, its slots */
} plain;

static double decay_of(const plain *v)
{
    return v->n_dims >= 2 ? fmax(v->o->weight_decay, 0.0) : 0.0;
}

static void move(plain *v, int i, double step)
{
    v->p[i] = v->p[i] * (1.0 - v->o->rate * decay_of(v)) - v->o->rate * step;
}

static void plain_sgd(plain *v, const double *g)
{
    for (int i = 0; i < v->count; i++)
        move(v, i, g[i]);
}

static void plain_momentum(plain *v, const double *g)
{
    for (int i = 0; i < v->count; i++) {
        v->a[i] = v->o->momentum * v->a[i] + g[i];
        move(v, i, v->a[i]);
    }
}

static void plain_nesterov(plain *v, const double *g)
{
    for (int i = 0; i < v->count; i++) {
        v->a[i] = v->o->momentum * v->a[i] + g[i];
        move(v, i, g[i] + v->o->momentum * v->a[i]);
    }
}

static void plain_adagrad(plain *v, const double *g)
{
    for (int i = 0; i < v->count; i++) {
        v->a[i] += g[i] * g[i];
        move(v, i, g[i] / (sqrt(v->a[i]) + v->o->epsilon));
    }
}

static void plain_adadelta(plain *v, const double *g)
{
    const double keep = v->o->beta2, e = v->o->epsilon;
    for (int i = 0; i < v->count; i++) {
        v->a[i] = keep * v->a[i] + (1 - keep) * g[i] * g[i];
        const double step = sqrt(v->b[i] + e) / sqrt(v->a[i] + e) * g[i];
        v->b[i] = keep * v->b[i] + (1 - keep) * step * step;
        move(v, i, step);
    }
}

static void plain_rmsprop(plain *v, const double *g)
{
    for (int i = 0; i < v->count; i++) {
        v->a[i] = v->o->beta2 * v->a[i] + (1 - v->o->beta2) * g[i] * g[i];
        v->b[i] = v->o->momentum * v->b[i] + g[i] / (sqrt(v->a[i]) + v->o->epsilon);
        move(v, i, v->b[i]);
    }
}

static double adam_step(plain *v, int i, double g)
{
    const double b1 = v->o->beta1, b2 = v->o->beta2;
    v->a[i] = b1 * v->a[i] + (1 - b1) * g;
    v->b[i] = b2 * v->b[i] + (1 - b2) * g * g;
    const double mean = v->a[i] / (1 - pow(b1, v->t)), square = v->b[i] / (1 - pow(b2, v->t));
    return mean / (sqrt(square) + v->o->epsilon);
}

static void plain_adam(plain *v, const double *g)
{
    for (int i = 0; i < v->count; i++)
        move(v, i, adam_step(v, i, g[i]));
}

static void plain_adamax(plain *v, const double *g)
{
    const double b1 = v->o->beta1;
    for (int i = 0; i < v->count; i++) {
        v->a[i] = b1 * v->a[i] + (1 - b1) * g[i];
        v->b[i] = fmax(v->o->beta2 * v->b[i], fabs(g[i]) + v->o->epsilon);
        move(v, i, v->a[i] / (1 - pow(b1, v->t)) / v->b[i]);
    }
}

static double norm_of(const double *x, int count)
{
    double sum = 0.0;
    for (int i = 0; i < count; i++)
        sum += x[i] * x[i];
    return sqrt(sum);
}

static void plain_lamb(plain *v, const double *g)
{
    double step[LARGEST] = {0};
    for (int i = 0; i < v->count; i++)
        step[i] = adam_step(v, i, g[i]) + decay_of(v) * v->p[i];
    const double size = norm_of(v->p, v->count), length = norm_of(step, v->count);
    const double trust = size > 0 && length > 0 ? size / length : 1.0;
    for (int i = 0; i < v->count; i++)
        v->p[i] -= v->o->rate * trust * step[i];
}

static void plain_lion(plain *v, const double *g)
{
    const double b1 = v->o->beta1, b2 = v->o->beta2;
    for (int i = 0; i < v->count; i++) {
        const double mean = b1 * v->a[i] + (1 - b1) * g[i];
        v->a[i] = b2 * v->a[i] + (1 - b2) * g[i];
        move(v, i, (mean > 0) - (mean < 0));
    }
}

/* x = a x + b x x' x + c x x' x x' x, with x' the transpose: products from the left, whatever the shape. */
static void newton_schulz(double *x, int rows, int columns)
{
    double gram[7 * 7], y[LARGEST] = {0}, z[LARGEST] = {0};
    for (int r = 0; r < rows; r++)
        for (int s = 0; s < rows; s++) {
            gram[r * rows + s] = 0.0;
            for (int c = 0; c < columns; c++)
                gram[r * rows + s] += x[r * columns + c] * x[s * columns + c];
        }
    for (int r = 0; r < rows; r++)
        for (int s = 0; s < rows; s++)
            for (int c = 0; c < columns; c++)
                y[r * columns + c] += gram[r * rows + s] * x[s * columns + c];
    for (int r = 0; r < rows; r++)
        for (int s = 0; s < rows; s++)
            for (int c = 0; c < columns; c++)
                z[r * columns + c] += gram[r * rows + s] * y[s * columns + c];
    for (int i = 0; i < rows * columns; i++)
        x[i] = 3.4445 * x[i] - 4.7750 * y[i] + 2.0315 * z[i];
}

static void plain_muon(plain *v, const double *g)
{
    double step[LARGEST] = {0};
    const double mu = v->o->momentum;
    if (v->n_dims != 2) {
        plain_adam(v, g);
        return;
    }
    for (int i = 0; i < v->count; i++) {
        v->a[i] = mu * v->a[i] + (1 - mu) * g[i];
        step[i] = mu * v->a[i] + (1 - mu) * g[i];
    }
    const double norm = fmax(norm_of(step, v->count), 1e-7);
    for (int i = 0; i < v->count; i++)
        step[i] /= norm;
    for (int round = 0; round < 5; round++)
        newton_schulz(step, v->rows, v->columns);
    for (int i = 0; i < v->count; i++)
        move(v, i, 0.2 * sqrt(fmax(v->rows, v->columns)) * step[i]);
}

/* ---- what is tried --------------------------------------------------------------------------- */

/* The header's table once more: what stands where an option is 0. */
static const struct {
    const char *name;
    void (*step)(plain *v, const double *g);
    weft_optimizer_options defaults;
    int n_loops; /* in which a matrix is updated, on one rank; 0: not element by element */
} rules[] = {
    {"sgd", plain_sgd, {.rate = 0.1}, 1},
    {"momentum", plain_momentum, {.rate = 0.1, .momentum = 0.9}, 1},
    {"nesterov", plain_nesterov, {.rate = 0.1, .momentum = 0.9}, 1},
    {"adagrad", plain_adagrad, {.rate = 1e-2, .epsilon = 1e-10}, 1},
    {"adadelta", plain_adadelta, {.rate = 1, .beta2 = 0.9, .epsilon = 1e-6}, 1},
    {"rmsprop", plain_rmsprop, {.rate = 1e-2, .beta2 = 0.99, .epsilon = 1e-8}, 1},
    {"adam", plain_adam, {.rate = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8}, 1},
    {"adamw",
     plain_adam,
     {.rate = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .weight_decay = 0.01},
     1},
    {"adamax", plain_adamax, {.rate = 2e-3, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8}, 1},
    {"lamb",
     plain_lamb,
     {.rate = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-6, .weight_decay = 0.01},
     0},
    {"lion", plain_lion, {.rate = 1e-4, .beta1 = 0.9, .beta2 = 0.99}, 1},
    {"muon",
     plain_muon,
     {.rate = 1e-3,
      .momentum = 0.95,
      .beta1 = 0.9,
      .beta2 = 0.999,
      .epsilon = 1e-8,
      .weight_decay = 0.1},
     0},
};
enum { N_RULES = sizeof rules / sizeof rules[0] };

/* What a user says: nothing; a decay; all else. */
static const weft_optimizer_options said[] = {
    {0},
    {.weight_decay = 0.3},
    {.rate = 0.02,
     .momentum = 0.8,
     .beta1 = 0.7,
     .beta2 = 0.95,
     .epsilon = 1e-4,
     .weight_decay = -1},
};
enum { N_SAID = sizeof said / sizeof said[0] };

static weft_optimizer_options filled(weft_optimizer_options o, const weft_optimizer_options *d)
{
    double *const to[] = {&o.rate, &o.momentum, &o.beta1, &o.beta2, &o.epsilon, &o.weight_decay};
    const double from[] = {d->rate, d->momentum, d->beta1, d->beta2, d->epsilon, d->weight_decay};
    for (int i = 0; i < 6; i++)
        if (*to[i] == 0.0) *to[i] = from[i];
    return o;
}

/* ---- against Weft ---------------------------------------------------------------------------- */

/* Variable k, number `which` of those that it stands for, after all steps. */
static void train_plain(plain *v, int rule, const weft_optimizer_options *o, int k, int which)
{
    const int count = count_of(k);
    *v = (plain){.o = o,
                 .count = count,
                 .rows = extents[k][1],
                 .columns = extents[k][2],
                 .n_dims = n_dims[k]};
    for (int i = 0; i < count; i++)
        v->p[i] = begins_at(i);
    for (v->t = 1; v->t <= STEPS; v->t++) {
        double g[LARGEST];
        for (int i = 0; i < count; i++)
            g[i] = gradient_at(k, v->t - 1, which * count + i);
        rules[rule].step(v, g);
    }
}

static void compare(const trained *t, weft_program *program, int rule,
                    const weft_optimizer_options *o, const char *where)
{
    weft_error error = {0};
    for (int k = 0; k < N; k++) {
        double *found = NULL;
        if (!CHECK_OK(weft_oracle_read(program, t->variables[k], &found, &error), error)) return;
        for (int which = 0; which < extents[k][0]; which++) {
            plain v;
            char text[300];
            double most = 0.0;
            train_plain(&v, rule, o, k, which);
            for (int i = 0; i < v.count; i++)
                most = fmax(most, fabs(found[which * v.count + i] - v.p[i]));
            snprintf(text, sizeof text, "%s: variable %d is off by %g", where, k, most);
            weft_test_check(most <= 1e-13, __FILE__, __LINE__, text);
        }
        free(found);
    }
}

static void check_rule(int rule, int m, int l, int stage)
{
    const int say = (rule + m + 1 + l + stage) % N_SAID;
    const weft_optimizer_options o = filled(said[say], &rules[rule].defaults);
    weft_mesh *mesh = m < 0 ? oracle.alone : oracle.meshes[m];
    weft_program *program = NULL;
    weft_error error = {0};
    char where[200];
    trained t = make(rules[rule].name, said[say]);
    snprintf(where, sizeof where, "%s, options %d, on %s under \"%s\", stage %d", rules[rule].name,
             say, weft_mesh_text(mesh), layouts[l], stage);
    if (CHECK_OK(compile(&t, mesh, layouts[l], stage, &program, &error), error) &&
        CHECK_OK(train(&t, program, STEPS, &error), error))
        compare(&t, program, rule, &o, where);
    weft_program_destroy(&program);
    weft_graph_destroy(&t.graph);
}

static void test_ten_steps_are_the_plain_rules(void)
{
    for (int rule = 0; rule < N_RULES; rule++)
        for (int m = -1; m < oracle.n_meshes; m++)
            for (int l = 0; l < N_LAYOUTS; l++)
                check_rule(rule, m, l, (rule + m + 1 + l) % 4);
}

/* Of all that there is, so that a new rule needs its line here. */
static void test_every_rule_is_tried(void)
{
    for (int i = 0; i < weft_n_optimizers; i++) {
        int n = strcmp(weft_optimizers[i].name, "adafactor") == 0 ||
                strcmp(weft_optimizers[i].name, "shampoo") == 0;
        for (int rule = 0; rule < N_RULES; rule++)
            n += strcmp(weft_optimizers[i].name, rules[rule].name) == 0;
        CHECK_EQ_INT(n, 1);
    }
}

/* ---- one pass over memory -------------------------------------------------------------------- */

/* Of the steps of the update, how many write a tensor of as many elements as the matrix has? */
static int steps_of_size(const weft_program *program, int64_t count)
{
    weft_error error = {0};
    int n = 0;
    for (int s = 0; s < weft_plan_n_steps(program); s++) {
        weft_planned_step step = {0};
        weft_planned_tensor tensor = {0};
        CHECK_OK(weft_plan_step_at(program, s, 0, &step, &error), error);
        if (step.phase != WEFT_UPDATE || step.n_out == 0) continue;
        CHECK_OK(weft_plan_tensor_at(program, step.out[0], 0, &tensor, &error), error);
        n += weft_shape_count(tensor.shape) == count;
    }
    return n;
}

/* How many steps write what is as large as a matrix, to update it and, if so, its average? */
static int steps_of_rule(int rule, bool is_averaged)
{
    weft_error error = {0};
    weft_program *program = NULL;
    weft_graph *graph = weft_graph_create(1);
    weft_value w = weft_variable(graph, "w", WEFT_F32, WEFT_DIMS(in, out), weft_normal(0.0, 1.0));
    weft_value g = weft_input(graph, "g", WEFT_F32, WEFT_DIMS(in, out));
    const weft_optimizer_options options = {.weight_decay = 0.1,
                                            .clip = 0.5,
                                            .clip_by = "value",
                                            .variables = {&w, 1},
                                            .gradients = {&g, 1}};
    weft_value token =
        weft_optimizer_find(rules[rule].name, NULL)->build((weft_value){0}, &options);
    if (is_averaged) token = weft_average(token, NULL);
    CHECK_OK(weft_compile(oracle.alone, NULL, WEFT_VALUES(token), NULL, &program, &error), error);
    const int n = program != NULL ? steps_of_size(program, 35) : -1;
    weft_program_destroy(&program);
    weft_graph_destroy(&graph);
    return n;
}

static void test_what_goes_element_by_element_is_one_loop(void)
{
    for (int rule = 0; rule < N_RULES; rule++)
        for (int is_averaged = 0; is_averaged < 2 && rules[rule].n_loops > 0; is_averaged++) {
            char text[100];
            const int n = steps_of_rule(rule, is_averaged);
            snprintf(text, sizeof text, "%s%s is done in %d steps", rules[rule].name,
                     is_averaged ? " with averages" : "", n);
            weft_test_check(n == rules[rule].n_loops, __FILE__, __LINE__, text);
        }
}

int main(void)
{
    static const char *const meshes[] = {"data:2", "model:2",        "data:3",
                                         "data:4", "data:2,model:2", "model:2,data:2"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 6, &error), error)) {
        RUN(test_ten_steps_are_the_plain_rules);
        RUN(test_every_rule_is_tried);
        RUN(test_what_goes_element_by_element_is_one_loop);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
