/* RANKS: 2 4 */
/* adafactor_test: the rule against a plain one in C, element by element, in f64 and f32, under layouts and all stages of
 * ZeRO; and where its slots of rows and columns live.
 */
#include <float.h>
#include <stdlib.h>

#include "oracle.h"
#include "test.h"
#include "weft/optim.h"

static weft_oracle oracle;

static const weft_dim stack = {"stack", 2}, in = {"in", 5}, out = {"out", 7}, batch = {"batch", 4};

/* The variables: a matrix, a vector, a stack of matrices, a scalar. Gradients are inputs. */
enum { N = 4, STEPS = 10, LARGEST = 70 };
static const int counts[N] = {35, 7, 70, 1};
/* As [stacks, rows, columns]; 1 row: not a matrix. */
static const int extents[N][3] = {{1, 5, 7}, {1, 1, 7}, {2, 5, 7}, {1, 1, 1}};

typedef struct options {
    double epsilon, decay;
    bool is_f32;
} options;

static double gradient_at(int k, int step, int64_t i)
{
    return (weft_oracle_unit(10 * k + step, i) - 0.4) * (k == 2 ? 1e-3 : 3.0);
}

/* ---- in plain C: Shazeer and Stern 2018, algorithm 4 with 5 and 6, as PyTorch has it --------- */

typedef struct state {
    double p[LARGEST], row[LARGEST], column[LARGEST], v[LARGEST];
} state;

static double rms_of(const double *x, int count)
{
    double sum = 0.0;
    for (int i = 0; i < count; i++)
        sum += x[i] * x[i];
    return sqrt(sum / count);
}

/* g^2 on average, for one matrix of a stack: the product of row means and column means over the mean of row means. */
static void factored(const double *g, double *row, double *column, int rows, int columns,
                     double weight, double epsilon, double *moment)
{
    double mean = 0.0;
    for (int r = 0; r < rows; r++) {
        double fresh = 0.0;
        for (int c = 0; c < columns; c++)
            fresh += g[r * columns + c] * g[r * columns + c] / columns;
        row[r] += weight * (fresh - row[r]);
        mean += row[r] / rows;
    }
    for (int c = 0; c < columns; c++) {
        double fresh = 0.0;
        for (int r = 0; r < rows; r++)
            fresh += g[r * columns + c] * g[r * columns + c] / rows;
        column[c] += weight * (fresh - column[c]);
    }
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++)
            moment[r * columns + c] = row[r] * column[c] / fmax(mean, epsilon);
}

static void plain_step(state *s, int k, int t, const options *o)
{
    const int stacks = extents[k][0], rows = extents[k][1], columns = extents[k][2],
              count = counts[k];
    const double weight = pow(t, -0.8), rate = fmin(1e-2, 1.0 / sqrt(t));
    const double precision = o->is_f32 ? FLT_EPSILON : DBL_EPSILON;
    const double epsilon = o->epsilon > 0.0 ? o->epsilon : precision;
    double g[LARGEST], moment[LARGEST], step[LARGEST];
    for (int i = 0; i < count; i++)
        g[i] = gradient_at(k, t - 1, i);
    for (int m = 0; m < stacks && rows > 1; m++)
        factored(g + m * rows * columns, s->row + m * rows, s->column + m * columns, rows, columns,
                 weight, epsilon, moment + m * rows * columns);
    for (int i = 0; i < count && rows == 1; i++)
        moment[i] = s->v[i] += weight * (g[i] * g[i] - s->v[i]);
    for (int i = 0; i < count; i++)
        step[i] = g[i] / sqrt(fmax(moment[i], epsilon * epsilon));
    const double pace = fmax(1e-3, rms_of(s->p, count)) * rate / fmax(1.0, rms_of(step, count));
    const double keep = rows > 1 ? 1.0 - 1e-2 * o->decay : 1.0;
    for (int i = 0; i < count; i++)
        s->p[i] = s->p[i] * keep - pace * step[i];
}

/* ---- in Weft --------------------------------------------------------------------------------- */

typedef struct trained {
    weft_graph *graph;
    weft_value variables[N], gradients[N], update;
} trained;

static trained make(const options *o)
{
    const weft_dtype dtype = o->is_f32 ? WEFT_F32 : WEFT_F64;
    const weft_shape shapes[N] = {WEFT_DIMS(in, out), WEFT_DIMS(out), WEFT_DIMS(stack, in, out),
                                  WEFT_SCALAR};
    trained t = {.graph = weft_graph_create(5)};
    /* somebody has to have the dim whose axes shard storage */
    weft_value x = weft_constant(t.graph, dtype, WEFT_DIMS(batch), 0.0);
    for (int k = 0; k < N; k++) {
        char name[8];
        snprintf(name, sizeof name, "v%d", k);
        t.variables[k] = weft_variable(t.graph, name, dtype, shapes[k], weft_formula(0.5, 0.7));
        snprintf(name, sizeof name, "g%d", k);
        t.gradients[k] = weft_input(t.graph, name, dtype, shapes[k]);
    }
    weft_place(t.variables[2], "out:data?");
    weft_optimizer_options options = {.epsilon = o->epsilon,
                                      .weight_decay = o->decay,
                                      .variables = {t.variables, N},
                                      .gradients = {t.gradients, N}};
    weft_value loss = weft_sum(WEFT_SCALAR, x);
    t.update = weft_group(t.graph, WEFT_VALUES(weft_adafactor(loss, &options), loss));
    return t;
}

static weft_status compile(const trained *t, weft_mesh *mesh, const char *text, int stage,
                           weft_program **program, weft_error *error)
{
    weft_layout *layout = NULL;
    WEFT_TRY(weft_layout_create(text, &layout, error));
    weft_status status = weft_layout_store(layout, stage, "batch", error);
    if (status == WEFT_OK)
        status = weft_compile(mesh, layout, WEFT_VALUES(t->update), NULL, program, error);
    weft_layout_destroy(&layout);
    return status;
}

static weft_status train(const trained *t, weft_program *program, weft_error *error)
{
    for (int step = 0; step < STEPS; step++) {
        for (int k = 0; k < N; k++) {
            double g[LARGEST];
            for (int i = 0; i < counts[k]; i++)
                g[i] = gradient_at(k, step, i);
            WEFT_TRY(weft_oracle_write(program, t->gradients[k], g, error));
        }
        WEFT_TRY(weft_run(program, error));
    }
    return WEFT_OK;
}

/* What the program has against what the plain rule gives. */
static void compare(const trained *t, weft_program *program, const options *o)
{
    weft_error error = {0};
    for (int k = 0; k < N; k++) {
        state s = {0};
        double *found = NULL;
        for (int i = 0; i < counts[k]; i++)
            s.p[i] = o->is_f32 ? (float)(0.5 * cos(0.7 * i)) : 0.5 * cos(0.7 * i);
        for (int step = 1; step <= STEPS; step++)
            plain_step(&s, k, step, o);
        if (!CHECK_OK(weft_oracle_read(program, t->variables[k], &found, &error), error)) return;
        for (int i = 0; i < counts[k]; i++)
            CHECK(fabs(found[i] - s.p[i]) <= (o->is_f32 ? 2e-6 : 1e-14));
        free(found);
    }
}

static const char *const layouts[] = {"",
                                      "batch:data?",
                                      "batch:data?+model?",
                                      "batch:data?,out:model?",
                                      "in:model?,batch:data?",
                                      "stack:data?,in:model?,batch:model?"};

static void test_every_step_is_the_plain_rules(void)
{
    static const options all[] = {
        {0.0, 0.0, false}, {0.0, 0.3, false}, {1e-3, 0.0, false}, {0.0, 0.1, true}};
    for (int m = -1; m < oracle.n_meshes; m++)
        for (int l = 0; l < 6; l++)
            for (int stage = 0; stage <= 3; stage++) {
                const options *o = &all[(l + stage + m + 1) % 4];
                trained t = make(o);
                weft_program *program = NULL;
                weft_error error = {0};
                weft_mesh *mesh = m < 0 ? oracle.alone : oracle.meshes[m];
                if (CHECK_OK(compile(&t, mesh, layouts[l], stage, &program, &error), error) &&
                    CHECK_OK(train(&t, program, &error), error))
                    compare(&t, program, o);
                weft_program_destroy(&program);
                weft_graph_destroy(&t.graph);
            }
}

/* ---- where slots with dims of their own live ------------------------------------------------- */

/* The box of a slot on the plan of a mesh, as text "[a,b) [c,d)". */
static void print_box(const weft_program *program, weft_value slot, int rank, char *text,
                      size_t bytes)
{
    weft_box box;
    int used = 0;
    weft_box_of(program, slot, rank, &box);
    text[0] = '\0';
    for (int d = 0; d < weft_shape_of(slot)->n_dims; d++)
        used += snprintf(text + used, bytes - (size_t)used, "%s[%d,%d)", d > 0 ? " " : "",
                         (int)box.begin[d], (int)box.end[d]);
}

static const struct {
    const char *layout, *slot;
    int stage;
    const char *box; /* of rank 1 of data:2,model:2: data 0, model 1 */
} homes[] = {
    {"out:model", "v0/column", 0, "[4,7)"}, /* by its own dim's rule */
    {"out:model", "v0/row", 0, "[0,5)"},    /* which row has not */
    {"in:model,out:model", "v0/column", 0,
     "[4,7)"}, /* v0 has in:model only; column is without in */
    {"batch:data", "v0/row", 0, "[0,5)"},
    {"batch:data", "v0/row", 1, "[0,3)"}, /* sharded over the axes of batch, by its own size */
    {"batch:data", "v0/column", 2, "[0,4)"},
    {"batch:model", "v0/column", 3, "[4,7)"},
    {"batch:data,out:model", "v0/column", 1, "[4,6)"}, /* innermost on the dim that model splits */
    {"batch:model", "v2/row", 0,
     "[0,2) [0,5)"}, /* its variable is placed out:data, which row has not */
    {"batch:model,in:data", "v2/row", 0, "[0,2) [0,5)"}, /* and no rule says anything else */
    {"", "v2/column", 0, "[0,2) [0,4)"}, /* column has: the placement of its variable */
    {"batch:model", "v2/column", 1, "[1,2) [0,4)"},
    {"batch:model", "v1/v", 1, "[4,7)"},
};

static void test_slots_live_by_their_own_dims(void)
{
    static const options o = {0.0, 0.0, false};
    weft_mesh *mesh = NULL;
    weft_error error = {0};
    CHECK_OK(weft_mesh_plan("data:2,model:2", &mesh, &error), error);
    for (size_t i = 0; i < sizeof homes / sizeof homes[0]; i++) {
        trained t = make(&o);
        weft_program *program = NULL;
        char text[100];
        if (CHECK_OK(compile(&t, mesh, homes[i].layout, homes[i].stage, &program, &error), error)) {
            const weft_value slot = weft_find(program, homes[i].slot, &error);
            CHECK_OK(error.status, error);
            CHECK(weft_is_slot(slot));
            print_box(program, slot, 1, text, sizeof text);
            if (!CHECK(strcmp(text, homes[i].box) == 0))
                printf("%s under %s, stage %d: %s, not %s\n", homes[i].slot, homes[i].layout,
                       homes[i].stage, text, homes[i].box);
        }
        weft_program_destroy(&program);
        weft_graph_destroy(&t.graph);
    }
    weft_mesh_destroy(&mesh);
}

/* They are counted as slots: 5 + 7, 7, 10 + 14 and 1 numbers; with storage split, each rank has its part. */
static void test_they_count_as_slots(void)
{
    static const options o = {0.0, 0.0, false};
    weft_mesh *mesh = NULL;
    weft_error error = {0};
    CHECK_OK(weft_mesh_plan("data:2", &mesh, &error), error);
    for (int stage = 0; stage < 2; stage++) {
        trained t = make(&o);
        weft_program *program = NULL;
        weft_usage usage = {0};
        if (CHECK_OK(compile(&t, mesh, "batch:data", stage, &program, &error), error))
            CHECK_OK(weft_plan_usage(program, 0, &usage, &error), error);
        /* v2/column is split by its variable's placement already; v2/row [2, 5] by its largest dim: 3 of 5 */
        const int64_t whole = 5 + 7 + 7 + 10 + 2 * 4 + 1, part = 3 + 4 + 4 + 2 * 3 + 2 * 4 + 1;
        CHECK_EQ_INT(usage.slot_bytes, 8 * (stage == 0 ? whole : part));
        CHECK_EQ_INT(usage.variable_bytes, 8 * (35 + 7 + 2 * 5 * 4 + 1));
        weft_program_destroy(&program);
        weft_graph_destroy(&t.graph);
    }
    weft_mesh_destroy(&mesh);
}

int main(void)
{
    static const char *const meshes[] = {"data:2", "model:2",        "data:3",
                                         "data:4", "data:2,model:2", "model:2,data:2"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 6, &error), error)) {
        RUN(test_every_step_is_the_plain_rules);
        RUN(test_slots_live_by_their_own_dims);
        RUN(test_they_count_as_slots);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
