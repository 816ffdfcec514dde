/* RANKS: 2 4 8 */
/* gpt_stages_test: layers in stages, through which micro-batches go one behind the other, train as the layers at once: the same
 * losses as without stages on one rank, under any layout, scans written down or compiled once. What a tick sends is what stands
 * at the border between stages, the plan's work is that of all ticks, and the head's is shared.
 */
#include "gpt_training.h"

#include <math.h>
#include <stdlib.h>

enum { STEPS = 4 };

typedef struct stages_case {
    const char *mesh, *layout;
    int stages, micro, zero, parts;
    bool recomputes;
    double dropout;
    const char *optimizer; /* NULL: adamw */
    int turns;
} stages_case;

static weft_oracle oracle;

static gpt_shape small_shape(const stages_case *c)
{
    gpt_shape shape = trained_shape();
    shape.layers = 4;
    shape.dropout = c->dropout;
    shape.stages = c->stages, shape.micro = c->micro, shape.turns = c->turns;
    shape.recomputes = c->recomputes;
    return shape;
}

static training_way way_of(const stages_case *c, int64_t unroll)
{
    return (training_way){c->layout, c->zero, c->parts, c->optimizer, unroll};
}

/* ---- the same numbers ---------------------------------------------------------------------------- */

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
    const training_way way = way_of(c, unroll);
    weft_error error = {0};
    training t;
    const bool is_run = CHECK_OK(open_training(mesh, &shape, &way, &t, &error), error) &&
                        CHECK_OK(train(&t, STEPS, losses, norms, &error), error);
    if (is_run) check_traffic(mesh, t.program);
    close_training(&t);
    return is_run;
}

/* As `expected`, where there is such a mesh. */
static void check_case(const stages_case *c, int64_t unroll, double expected[2][STEPS])
{
    weft_mesh *mesh = trained_mesh(&oracle, c->mesh);
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
    const training_way way = way_of(&c, 1);
    const int64_t activations = TRAINED_BATCH / MICRO * TRAINED_SEQ * shape.width * 8;
    weft_error error = {0};
    weft_mesh *mesh = NULL;
    training t = {0};
    if (CHECK_OK(weft_mesh_plan(c.mesh, &mesh, &error), error) &&
        CHECK_OK(open_training(mesh, &shape, &way, &t, &error), error))
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
