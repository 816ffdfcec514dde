/* RANKS: 2 4 8 */
/* gpt_stages_test: layers in stages, through which micro-batches go one behind the other, train as the layers at once: the same
 * losses as without stages on one rank, under any layout, scans written down or compiled once. What a tick sends is what stands
 * at the border between stages, the plan's work is that of all ticks, and the head's is shared.
 */
#include "apps/gpt/model.h"
#include "oracle.h"
#include "weft/optim.h"

#include <math.h>
#include <stdlib.h>

#include "test.h"

enum { STEPS = 4, BATCH = 12, SEQ = 10, VOCAB = 29, MOST_VARIABLES = 64 };

typedef struct stages_case {
    const char *mesh, *layout;
    int stages, micro, zero, parts;
    bool recomputes;
    double dropout;
    const char *optimizer; /* NULL: adamw */
    int turns;
} stages_case;

typedef struct training {
    weft_graph *graph;
    weft_program *program;
    gpt_model model;
    weft_value loss, norm, variables[MOST_VARIABLES], gradients[MOST_VARIABLES];
} training;

static weft_oracle oracle;

static gpt_shape small_shape(const stages_case *c)
{
    return (gpt_shape){.batch = BATCH,
                       .seq = SEQ,
                       .layers = 4,
                       .width = 24,
                       .heads = 3,
                       .hidden = 40,
                       .vocab = VOCAB,
                       .dropout = c->dropout,
                       .stages = c->stages,
                       .micro = c->micro,
                       .turns = c->turns,
                       .recomputes = c->recomputes,
                       .dtype = WEFT_F64};
}

static weft_status open_training(weft_mesh *mesh, const stages_case *c, const gpt_shape *shape,
                                 const weft_compile_options *options, training *t,
                                 weft_error *error)
{
    weft_layout *layout = NULL;
    const int n = c->parts > 1 ? gpt_n_variables(shape) : 0;
    *t = (training){.graph = weft_graph_create(1234)};
    t->loss = c->parts > 1 ? gpt_accumulate(shape, c->parts, c->zero >= 2, t->graph, &t->model,
                                            t->variables, t->gradients)
                           : gpt_loss(shape, t->graph, &t->model);
    const weft_optimizer *optimizer =
        weft_optimizer_find(c->optimizer != NULL ? c->optimizer : "adamw", error);
    const weft_value update =
        optimizer->build(t->loss, &(weft_optimizer_options){.rate = 3e-3,
                                                            .weight_decay = 0.1,
                                                            .clip = 0.5,
                                                            .gradient_norm = &t->norm,
                                                            .variables = {t->variables, n},
                                                            .gradients = {t->gradients, n}});
    WEFT_TRY(weft_layout_create(c->layout, &layout, error));
    WEFT_TRY(weft_layout_store(layout, c->zero, "batch", error));
    const weft_status status = weft_compile(mesh, layout, WEFT_VALUES(t->loss, t->norm, update),
                                            options, &t->program, error);
    weft_layout_destroy(&layout);
    return status;
}

static void close_training(training *t)
{
    weft_program_destroy(&t->program);
    weft_graph_destroy(&t->graph);
}

/* ---- the same numbers ---------------------------------------------------------------------------- */

static weft_status train(const training *t, double losses[STEPS], double norms[STEPS],
                         weft_error *error)
{
    double tokens[BATCH * SEQ], targets[BATCH * SEQ];
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < BATCH * SEQ; i++) {
            tokens[i] = (i * i + 7 * i + 3 * step) % VOCAB;
            targets[i] = (3 * i + i / 5 + step) % VOCAB;
        }
        WEFT_TRY(weft_oracle_write(t->program, t->model.tokens, tokens, error));
        WEFT_TRY(weft_oracle_write(t->program, t->model.targets, targets, error));
        WEFT_TRY(weft_run(t->program, error));
        WEFT_TRY(weft_read_scalar(t->program, t->loss, &losses[step], error));
        WEFT_TRY(weft_read_scalar(t->program, t->norm, &norms[step], error));
    }
    return WEFT_OK;
}

/* What goes over ranks is what was planned, to the byte. */
static void check_traffic(weft_mesh *mesh, const weft_program *program)
{
    enum { ROOM = 64 };
    const int first = weft_mesh_first_local(mesh);
    for (int rank = first; rank < first + weft_mesh_n_local(mesh); rank++) {
        weft_traffic planned[ROOM], measured[ROOM];
        const int n = weft_plan_traffic(program, rank, planned, ROOM);
        CHECK(n <= ROOM && weft_measured_traffic(program, rank, measured, ROOM) == n);
        for (int i = 0; i < n && i < ROOM; i++)
            CHECK(planned[i].kind == measured[i].kind && planned[i].count == measured[i].count &&
                  planned[i].bytes == measured[i].bytes);
    }
}

static bool run_case(weft_mesh *mesh, const stages_case *c, int64_t unroll, double losses[STEPS],
                     double norms[STEPS])
{
    const gpt_shape shape = small_shape(c);
    weft_error error = {0};
    training t;
    const bool is_run =
        CHECK_OK(
            open_training(mesh, c, &shape, &(weft_compile_options){.unroll = unroll}, &t, &error),
            error) &&
        CHECK_OK(train(&t, losses, norms, &error), error);
    if (is_run) check_traffic(mesh, t.program);
    close_training(&t);
    return is_run;
}

static weft_mesh *mesh_of(const char *text)
{
    for (int m = 0; m < oracle.n_meshes; m++)
        if (strcmp(weft_mesh_text(oracle.meshes[m]), text) == 0) return oracle.meshes[m];
    return strcmp(text, "pipe:1") == 0 ? oracle.alone : NULL;
}

/* As `expected`, where there is such a mesh. */
static void check_case(const stages_case *c, int64_t unroll, double expected[2][STEPS])
{
    weft_mesh *mesh = mesh_of(c->mesh);
    double found[2][STEPS];
    if (mesh == NULL || !run_case(mesh, c, unroll, found[0], found[1])) return;
    for (int k = 0; k < 2; k++)
        for (int step = 0; step < STEPS; step++) {
            const double within = (k == 0 ? 1e-10 : 1e-8) * fabs(expected[k][step]);
            char text[240];
            snprintf(text, sizeof text,
                     "%s \"%s\" stages %d micro %d in %d zero %d unroll %lld: %s %d", c->mesh,
                     c->layout, c->stages, c->micro, c->turns, c->zero, (long long)unroll,
                     k == 0 ? "loss" : "norm", step);
            weft_test_check(fabs(found[k][step] - expected[k][step]) <= within, __FILE__, __LINE__,
                            text);
        }
}

#define PIPE "stage:pipe"
#define TWO  "hidden:model,heads:model,vocab:model,stage:pipe"

static const stages_case cases[] = {
    {"pipe:1", "", 2, 1, 0, 1, false},
    {"pipe:1", "", 4, 3, 0, 1, true},
    {"pipe:2", PIPE, 2, 4, 0, 1, false},
    {"pipe:2", PIPE, 4, 3, 0, 1, true},
    {"pipe:2", PIPE, 2, 2, 0, 2, false}, /* a batch in parts, each through the stages */
    {"pipe:3", PIPE, 4, 4, 0, 1, false}, /* a rank without a stage */
    {"pipe:4", PIPE, 4, 6, 0, 1, false}, /* micro-batches that the stages do not divide */
    {"pipe:4", PIPE, 2, 3, 0, 1, false}, /* two ranks without a stage */
    {"pipe:4", PIPE, 4, 1, 0, 1, false},
    {"data:2,pipe:2", "batch:data," PIPE, 4, 2, 0, 1, false},
    {"data:2,pipe:2", "batch:data," PIPE, 2, 4, 1, 1, true},
    {"data:2,pipe:2", "batch:data," PIPE, 2, 4, 3, 1, false},
    {"pipe:2,model:2", TWO, 2, 3, 0, 1, false},
    {"pipe:2,model:2", "seq:model,stage:pipe", 2, 3, 0, 1, false},
    {"data:2,pipe:2,model:2", "batch:data," TWO, 4, 3, 0, 1, false},
    /* halves of micro-batches in turn */
    {"pipe:1", "", 2, 3, 0, 1, false, 0, NULL, 2},
    {"pipe:2", PIPE, 4, 2, 0, 1, true, 0, NULL, 2},
    {"pipe:2", PIPE, 2, 3, 0, 2, false, 0, NULL, 2},
    {"pipe:4", PIPE, 4, 3, 0, 1, false, 0, NULL, 2},
    {"data:2,pipe:2", "batch:data," PIPE, 2, 3, 1, 1, false, 0, NULL, 2},
    {"pipe:2,model:2", TWO, 2, 1, 0, 1, false, 0, NULL, 2},
    {"data:2,pipe:2,model:2", "batch:data," TWO, 2, 6, 3, 1, true},
};

static void test_stages_train_as_the_layers_at_once(void)
{
    double expected[2][STEPS];
    if (!run_case(oracle.alone, &(stages_case){"pipe:1", "", 1, 1, 0, 1}, 0, expected[0],
                  expected[1]))
        return;
    CHECK(expected[0][0] > 1.0 && expected[0][1] != expected[0][0]);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check_case(&cases[i], 0, expected);
        check_case(&cases[i], 1, expected);
    }
}

/* Masks are others than without stages, and the same under every layout. */
static void test_dropout_is_the_same_under_every_layout(void)
{
    double expected[2][STEPS];
    stages_case c = {"pipe:1", "", 2, 3, 0, 1, false, 0.2};
    if (!run_case(oracle.alone, &c, 0, expected[0], expected[1])) return;
    static const char *const places[][2] = {{"pipe:1", ""},
                                            {"pipe:2", PIPE},
                                            {"pipe:4", PIPE},
                                            {"data:2,pipe:2", "batch:data," PIPE},
                                            {"data:2,pipe:2,model:2", "batch:data," TWO}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        c.mesh = places[i][0], c.layout = places[i][1];
        check_case(&c, 0, expected);
        check_case(&c, 1, expected);
        c.recomputes = !c.recomputes;
    }
}

static void test_each_layer_is_updated_for_itself(void)
{
    for (int i = 0; i < weft_n_optimizers; i++) {
        const char *name = weft_optimizers[i].name;
        double expected[2][STEPS];
        const stages_case one = {"pipe:1", "", 1, 1, 0, 1, false, 0, name};
        if (!run_case(oracle.alone, &one, 0, expected[0], expected[1])) return;
        check_case(&(stages_case){"pipe:1", "", 4, 2, 0, 1, false, 0, name}, 0, expected);
        check_case(&(stages_case){"pipe:2", PIPE, 2, 2, 0, 1, false, 0, name}, 0, expected);
    }
}

/* In each tick, on the way there and back, every rank sends one micro-batch's activations: to the next one, or from the last to
 * the first, which has what leaves. */
static void test_a_tick_sends_what_stands_at_the_border(void)
{
    enum { MICRO = 6, TICKS = MICRO + 4 - 1, ROOM = 64 };
    const stages_case c = {"pipe:4", PIPE, 4, MICRO, 0, 1};
    const gpt_shape shape = small_shape(&c);
    const int64_t activations = BATCH / MICRO * SEQ * shape.width * 8;
    weft_error error = {0};
    weft_mesh *mesh = NULL;
    training t = {0};
    if (CHECK_OK(weft_mesh_plan(c.mesh, &mesh, &error), error) &&
        CHECK_OK(open_training(mesh, &c, &shape, &(weft_compile_options){.unroll = 1}, &t, &error),
                 error))
        for (int rank = 0; rank < 4; rank++) {
            weft_traffic traffic[ROOM];
            const int n = weft_plan_traffic(t.program, rank, traffic, ROOM);
            int64_t bytes = 0;
            for (int i = 0; i < n && i < ROOM; i++)
                if (traffic[i].kind == WEFT_BORDER) bytes += traffic[i].bytes;
            CHECK_EQ_INT(bytes, 2 * TICKS * activations);
        }
    close_training(&t);
    weft_mesh_destroy(&mesh);
}

int main(void)
{
    static const char *const meshes[] = {
        "pipe:2", "pipe:3", "pipe:4", "data:2,pipe:2", "pipe:2,model:2", "data:2,pipe:2,model:2"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 6, &error), error)) {
        RUN(test_stages_train_as_the_layers_at_once);
        RUN(test_dropout_is_the_same_under_every_layout);
        RUN(test_each_layer_is_updated_for_itself);
        RUN(test_a_tick_sends_what_stands_at_the_border);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
