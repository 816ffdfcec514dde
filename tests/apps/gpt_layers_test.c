/* RANKS: 2 4 */
/* gpt_layers_test: a scan through the layers, whose weights are stacked, trains as the layers written down: the same losses under any
 * layout, with blocks computed again, in parts of a batch too. Its plan is as long however many layers there are.
 */
#include "apps/gpt/model.h"
#include "oracle.h"
#include "weft/optim.h"
#include "weft/research/plan.h"

#include <math.h>

#include "test.h"

enum { STEPS = 4, BATCH = 12, SEQ = 10, VOCAB = 29, MOST_VARIABLES = 64 };

typedef struct layers_case {
    const char *mesh, *layout;
    int zero, parts;
    bool recomputes, scans;
    double dropout;
    int64_t unroll, layers; /* 0: three */
} layers_case;

typedef struct training {
    weft_graph *graph;
    weft_program *program;
    gpt_model model;
    weft_value loss, norm, variables[MOST_VARIABLES], gradients[MOST_VARIABLES];
} training;

static weft_oracle oracle;

static gpt_shape small_shape(const layers_case *c)
{
    return (gpt_shape){.batch = BATCH,
                       .seq = SEQ,
                       .layers = c->layers > 0 ? c->layers : 3,
                       .width = 24,
                       .heads = 3,
                       .hidden = 40,
                       .vocab = VOCAB,
                       .dropout = c->dropout,
                       .recomputes = c->recomputes,
                       .scans = c->scans,
                       .dtype = WEFT_F64};
}

static weft_status open_training(weft_mesh *mesh, const layers_case *c, training *t,
                                 weft_error *error)
{
    const gpt_shape shape = small_shape(c);
    const int n = c->parts > 1 ? gpt_n_variables(&shape) : 0;
    const weft_compile_options options = {.unroll = c->unroll};
    weft_layout *layout = NULL;
    *t = (training){.graph = weft_graph_create(1234)};
    t->loss = c->parts > 1 ? gpt_accumulate(&shape, c->parts, c->zero >= 2, t->graph, &t->model,
                                            t->variables, t->gradients)
                           : gpt_loss(&shape, t->graph, &t->model);
    const weft_value update =
        weft_adamw(t->loss, &(weft_optimizer_options){.rate = 3e-3,
                                                      .weight_decay = 0.1,
                                                      .clip = 0.5,
                                                      .gradient_norm = &t->norm,
                                                      .variables = {t->variables, n},
                                                      .gradients = {t->gradients, n}});
    WEFT_TRY(weft_layout_create(c->layout, &layout, error));
    WEFT_TRY(weft_layout_store(layout, c->zero, "batch", error));
    const weft_status status = weft_compile(mesh, layout, WEFT_VALUES(t->loss, t->norm, update),
                                            &options, &t->program, error);
    weft_layout_destroy(&layout);
    return status;
}

static void close_training(training *t)
{
    weft_program_destroy(&t->program);
    weft_graph_destroy(&t->graph);
}

static weft_status train(const training *t, double found[2][STEPS], weft_error *error)
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
        WEFT_TRY(weft_read_scalar(t->program, t->loss, &found[0][step], error));
        WEFT_TRY(weft_read_scalar(t->program, t->norm, &found[1][step], error));
    }
    return WEFT_OK;
}

static bool run_case(weft_mesh *mesh, const layers_case *c, double found[2][STEPS])
{
    weft_error error = {0};
    training t;
    const bool is_run = CHECK_OK(open_training(mesh, c, &t, &error), error) &&
                        CHECK_OK(train(&t, found, &error), error);
    close_training(&t);
    return is_run;
}

static weft_mesh *mesh_of(const char *text)
{
    for (int m = 0; m < oracle.n_meshes; m++)
        if (strcmp(weft_mesh_text(oracle.meshes[m]), text) == 0) return oracle.meshes[m];
    return strcmp(text, "data:1") == 0 ? oracle.alone : NULL;
}

/* Losses and norms of the gradient as `expected`, where there is such a mesh. */
static void check_case(const layers_case *c, double expected[2][STEPS])
{
    weft_mesh *mesh = mesh_of(c->mesh);
    double found[2][STEPS];
    if (mesh == NULL || !run_case(mesh, c, found)) return;
    for (int k = 0; k < 2; k++)
        for (int step = 0; step < STEPS; step++) {
            char text[240];
            const double within = (k == 0 ? 1e-10 : 1e-8) * fabs(expected[k][step]);
            snprintf(text, sizeof text, "%s \"%s\" zero %d parts %d unroll %lld%s: %s %d", c->mesh,
                     c->layout, c->zero, c->parts, (long long)c->unroll,
                     c->recomputes ? ", recomputed" : "", k == 0 ? "loss" : "norm", step);
            weft_test_check(fabs(found[k][step] - expected[k][step]) <= within, __FILE__, __LINE__,
                            text);
        }
}

#define MODEL "hidden:model,heads:model,vocab:model"
#define TWO   "batch:data," MODEL

static const layers_case cases[] = {
    {"data:1", "", 0, 1, false},           {"data:1", "", 0, 1, true},
    {"data:1", "", 0, 3, false},           {"data:2", "batch:data", 0, 1, false},
    {"data:2", "batch:data", 1, 1, true},  {"data:2", "batch:data", 2, 3, false},
    {"data:2", "batch:data", 3, 1, false}, {"data:2", "batch:data", 3, 2, true},
    {"model:2", MODEL, 0, 1, false},       {"model:2", "seq:model", 0, 1, true},
    {"data:2,model:2", TWO, 0, 1, false},  {"data:2,model:2", TWO, 1, 1, false},
    {"data:2,model:2", TWO, 2, 2, true},   {"data:2,model:2", TWO, 3, 1, true},
};

/* With and without dropout: masks are others than where layers are written down by the program, but not by the compiler. */
static void check_all(const layers_case *written)
{
    double expected[2][STEPS];
    if (!run_case(oracle.alone, written, expected)) return;
    CHECK(expected[0][0] > 1.0 && expected[0][1] != expected[0][0]);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        layers_case c = cases[i];
        c.scans = true;
        c.dropout = written->dropout;
        c.unroll = 1;
        check_case(&c, expected);
        if (i % 3 != 0) continue;
        c.unroll = INT64_MAX;
        check_case(&c, expected);
    }
}

static void test_a_scan_through_the_layers_trains_as_the_layers(void)
{
    check_all(&(layers_case){"data:1", "", 0, 1, false});
}

static void test_dropout_is_the_same_compiled_once_and_written_down(void)
{
    check_all(&(layers_case){"data:1", "", 0, 1, false, .scans = true, .dropout = 0.2,
                             .unroll = INT64_MAX});
}

/* ---- the plan ------------------------------------------------------------------------------------ */

static uint32_t steps_of(const layers_case *c)
{
    weft_error error = {0};
    training t;
    const bool is_open = CHECK_OK(open_training(mesh_of(c->mesh), c, &t, &error), error);
    const uint32_t n = is_open ? weft_plan_n_steps(t.program) : 0;
    close_training(&t);
    return n;
}

/* But for small exchanges, of which as many are joined as there is memory for. */
static void test_a_plan_is_as_long_however_many_layers_there_are(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        layers_case few = cases[i], many;
        if (mesh_of(few.mesh) == NULL) continue;
        few.scans = true, few.unroll = 1, few.dropout = 0.1, few.layers = 3;
        many = few, many.layers = 12;
        const double n = steps_of(&few);
        CHECK(n > 100.0 && fabs(n - steps_of(&many)) <= 0.1 * n);
    }
}

int main(void)
{
    static const char *const meshes[] = {"data:2", "model:2", "data:2,model:2"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 3, &error), error)) {
        RUN(test_a_scan_through_the_layers_trains_as_the_layers);
        RUN(test_dropout_is_the_same_compiled_once_and_written_down);
        RUN(test_a_plan_is_as_long_however_many_layers_there_are);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
