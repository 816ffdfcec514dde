/* RANKS: 2 4 */
/* gpt_experts_test: blocks of experts train under every layout as on one rank: the same losses, balance and dropped tokens, in parts of
 * a batch, with blocks computed again, and by a scan through the layers.
 */
#include "gpt_training.h"

#include <math.h>

enum { STEPS = 4 };

typedef struct experts_case {
    const char *mesh, *layout;
    int zero, parts;
    bool recomputes, scans;
} experts_case;

typedef struct outcome {
    double losses[STEPS], norms[STEPS], balance, dropped;
} outcome;

static weft_oracle oracle;

/* As of gpt_training.h, but that facts are read, too. */
static weft_status open_case(weft_mesh *mesh, const gpt_mixture *mixture, const experts_case *c,
                             training *t, weft_error *error)
{
    const training_way way = {c->layout, c->zero, c->parts, NULL, c->scans ? 1 : 0};
    gpt_shape shape = trained_shape();
    weft_layout *layout = NULL;
    shape.layers = 2;
    shape.mixture = *mixture;
    shape.recomputes = c->recomputes, shape.scans = c->scans;
    *t = (training){.graph = weft_graph_create(1234)};
    const weft_value update = build_training(&shape, &way, t, error);
    const weft_compile_options options = {.unroll = way.unroll};
    const gpt_facts *f = &t->model.facts;
    WEFT_TRY(weft_layout_create(way.layout, &layout, error));
    WEFT_TRY(weft_layout_store(layout, way.zero, "batch", error));
    const weft_status status =
        weft_compile(mesh, layout, WEFT_VALUES(t->loss, t->norm, update, f->balance, f->dropped),
                     &options, &t->program, error);
    weft_layout_destroy(&layout);
    return status;
}

static bool run_case(weft_mesh *mesh, const gpt_mixture *mixture, const experts_case *c, outcome *o)
{
    weft_error error = {0};
    training t;
    const bool is_run =
        CHECK_OK(open_case(mesh, mixture, c, &t, &error), error) &&
        CHECK_OK(train(&t, STEPS, o->losses, o->norms, &error), error) &&
        CHECK_OK(weft_read_scalar(t.program, t.model.facts.balance, &o->balance, &error), error) &&
        CHECK_OK(weft_read_scalar(t.program, t.model.facts.dropped, &o->dropped, &error), error);
    close_training(&t);
    return is_run;
}

static void check_near(const experts_case *c, const char *what, double found, double expected,
                       double within)
{
    char text[300];
    snprintf(text, sizeof text, "%s \"%s\" zero %d parts %d%s%s: %s %.17g, on one rank %.17g",
             c->mesh, c->layout, c->zero, c->parts, c->recomputes ? ", recomputed" : "",
             c->scans ? ", scanned" : "", what, found, expected);
    weft_test_check(fabs(found - expected) <= within * fabs(expected), __FILE__, __LINE__, text);
}

static void check_case(const gpt_mixture *mixture, const experts_case *c, const outcome *expected)
{
    weft_mesh *mesh = trained_mesh(&oracle, c->mesh);
    outcome found;
    if (mesh == NULL || !run_case(mesh, mixture, c, &found)) return;
    for (int step = 0; step < STEPS; step++) {
        check_near(c, "loss", found.losses[step], expected->losses[step], 1e-10);
        check_near(c, "norm", found.norms[step], expected->norms[step], 1e-8);
    }
    check_near(c, "balance", found.balance, expected->balance, 1e-10);
    check_near(c, "dropped", found.dropped, expected->dropped, 0);
}

#define MODEL "hidden:model,heads:model,vocab:model"

static const experts_case cases[] = {
    {"data:1", "", 0, 3, false, false},
    {"data:1", "", 0, 1, true, true},
    {"data:2", "batch:data,experts:data", 0, 1, false, false},
    {"data:2", "batch:data,experts:data", 1, 2, true, false},
    {"data:2", "batch:data,experts:data", 3, 1, false, true},
    {"model:2", "experts:model", 0, 1, false, false},
    {"model:2", "seq:model,experts:model", 0, 1, false, false},
    {"data:4", "batch:data,experts:data", 0, 1, false, false},
    {"data:4", "batch:data,experts:data", 3, 3, false, false},
    {"data:2,model:2", "batch:data,experts:data," MODEL, 0, 1, false, false},
    {"data:2,model:2", "batch:data,experts:data," MODEL, 1, 2, true, true},
    {"data:2,model:2", "batch:data,experts:model,heads:model,vocab:model", 0, 1, false, false},
    {"data:2,model:2", "batch:data,experts:data+model", 2, 1, false, false},
};

static void check_mixture(gpt_mixture mixture, bool drops)
{
    outcome expected;
    mixture.experts = 6, mixture.balance = 0.05;
    if (!run_case(oracle.alone, &mixture, &(experts_case){"data:1", "", 0, 1, false, false},
                  &expected))
        return;
    CHECK(expected.losses[STEPS - 1] < expected.losses[0]);
    CHECK(expected.balance >= 2.0 && expected.balance < 3.0); /* of two layers */
    CHECK(drops == (expected.dropped > 0));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_case(&mixture, &cases[i], &expected);
}

static void test_one_expert_a_token(void)
{
    check_mixture((gpt_mixture){.top_k = 1, .capacity = 1}, true);
}

static void test_two_experts_a_token(void)
{
    check_mixture((gpt_mixture){.top_k = 2, .capacity = 0.75}, true);
}

static void test_no_token_is_dropped(void)
{
    check_mixture((gpt_mixture){.top_k = 2, .capacity = 0}, false);
}

static void test_experts_choose(void)
{
    check_mixture((gpt_mixture){.top_k = 1, .capacity = 1, .experts_choose = true}, true);
}

int main(void)
{
    static const char *const meshes[] = {"data:2", "model:2", "data:4", "data:2,model:2"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 4, &error), error)) {
        RUN(test_one_expert_a_token);
        RUN(test_two_experts_a_token);
        RUN(test_no_token_is_dropped);
        RUN(test_experts_choose);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
