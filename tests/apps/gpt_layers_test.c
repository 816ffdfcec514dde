/* RANKS: 2 4 */
/* gpt_layers_test: a scan through the layers, whose weights are stacked, trains as the layers written down: the same losses under any
 * layout, with blocks computed again, in parts of a batch too. Its plan is as long however many layers there are.
 */
#include "gpt_training.h"
#include "weft/research/plan.h"

#include <math.h>

enum { STEPS = 4 };

typedef struct layers_case {
    const char *mesh, *layout;
    int zero, parts;
    bool recomputes, scans;
    double dropout;
    int64_t unroll, layers; /* 0: three */
} layers_case;

static weft_oracle oracle;

static weft_status open_case(weft_mesh *mesh, const layers_case *c, training *t, weft_error *error)
{
    gpt_shape shape = trained_shape();
    const training_way way = {c->layout, c->zero, c->parts, NULL, c->unroll};
    shape.layers = c->layers > 0 ? c->layers : 3;
    shape.dropout = c->dropout;
    shape.recomputes = c->recomputes, shape.scans = c->scans;
    return open_training(mesh, &shape, &way, t, error);
}

static bool run_case(weft_mesh *mesh, const layers_case *c, double found[2][STEPS])
{
    weft_error error = {0};
    training t;
    const bool is_run = CHECK_OK(open_case(mesh, c, &t, &error), error) &&
                        CHECK_OK(train(&t, STEPS, found[0], found[1], &error), error);
    close_training(&t);
    return is_run;
}

/* Losses and norms of the gradient as `expected`, where there is such a mesh. */
static void check_case(const layers_case *c, double expected[2][STEPS])
{
    weft_mesh *mesh = trained_mesh(&oracle, c->mesh);
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
    const bool is_open = CHECK_OK(open_case(trained_mesh(&oracle, c->mesh), c, &t, &error), error);
    const uint32_t n = is_open ? weft_plan_n_steps(t.program) : 0;
    close_training(&t);
    return n;
}

/* But for small exchanges, of which as many are joined as there is memory for. */
static void test_a_plan_is_as_long_however_many_layers_there_are(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        layers_case few = cases[i], many;
        if (trained_mesh(&oracle, few.mesh) == NULL) continue;
        few.scans = true, few.unroll = 1, few.dropout = 0.1, few.layers = 3;
        many = few, many.layers = 12;
        const double n = steps_of(&few);
        CHECK(n > 50.0 && fabs(n - steps_of(&many)) <= 0.15 * n);
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
