/* loss_scale_test: a run whose gradients overflow f16 updates nothing and does not count. */
#include "test.h"

#include <math.h>

#include "oracle.h"
#include "weft/optim.h"

enum { N_W = 6 * 4, N_STATE = 4 * N_W };

typedef struct model {
    weft_graph *graph;
    weft_value x, w, loss, norm, rate, scale, updates, update;
    weft_program *program;
} model;

static weft_oracle oracle;

/* A layer in f16 whose weights are f32, updated by adam with a rate that rises for 8 updates. */
static bool open_model(model *m, weft_mesh *mesh, const char *rules, double first, int64_t growth)
{
    const weft_dim batch = {"batch", 10}, in = {"in", 6}, out = {"out", 4};
    weft_error error = {0};
    weft_layout *layout = NULL;
    *m = (model){.graph = weft_graph_create(3)};
    m->x = weft_input(m->graph, "x", WEFT_F32, WEFT_DIMS(batch, in));
    m->w = weft_variable(m->graph, "w", WEFT_F32, WEFT_DIMS(in, out), weft_normal(0.0, 0.5));
    weft_value y =
        weft_einsum(WEFT_DIMS(batch, out), weft_cast(m->x, WEFT_F16), weft_cast(m->w, WEFT_F16));
    m->loss = weft_mean(weft_square(weft_shift(weft_cast(y, WEFT_F32), -1.0)));
    m->scale = weft_loss_scale(m->graph, first, growth);
    m->updates = weft_graph_find(m->graph, "loss_scale.updates", NULL);
    m->rate = weft_warmup(m->graph, WEFT_F32, 0.01, 8);
    m->update = weft_adam(
        m->loss,
        &(weft_optimizer_options){.rate_value = m->rate, .clip = 1.0, .gradient_norm = &m->norm});
    m->update = weft_average(m->update, &(weft_average_options){.decay = 0.6});
    weft_status status = weft_layout_create(rules, &layout, &error);
    if (status == WEFT_OK) status = weft_layout_store(layout, *rules ? 1 : 0, "batch", &error);
    if (status == WEFT_OK)
        status =
            weft_compile(mesh, layout, WEFT_VALUES(m->loss, m->norm, m->rate, m->scale, m->update),
                         NULL, &m->program, &error);
    double x[60];
    for (int i = 0; i < 60; i++)
        x[i] = 2.0 * weft_oracle_unit(0, i) - 1.0;
    if (status == WEFT_OK) status = weft_oracle_write(m->program, m->x, x, &error);
    weft_layout_destroy(&layout);
    return CHECK_OK(status, error);
}

static void close_model(model *m)
{
    weft_program_destroy(&m->program);
    weft_graph_destroy(&m->graph);
}

static double scalar_of(model *m, weft_value value)
{
    double number = NAN;
    weft_error error = {0};
    CHECK_OK(weft_read_scalar(m->program, value, &number, &error), error);
    return number;
}

static void run(model *m, int n)
{
    weft_error error = {0};
    for (int i = 0; i < n; i++)
        CHECK_OK(weft_run(m->program, &error), error);
}

/* w, what adam keeps of it, and its average. */
static void read_state(model *m, float state[N_STATE])
{
    static const char *const names[] = {"w", "w/m", "w/v", "w/average"};
    weft_error error = {0};
    for (int k = 0; k < 4; k++)
        CHECK_OK(weft_read(m->program, weft_find(m->program, names[k], NULL), WEFT_F32,
                           state + k * N_W, N_W * (int64_t)sizeof(float), &error),
                 error);
}

/* From so high that f16 overflows, runs are skipped until it does not; from then on everything is to the bit as it is in a
 * program that begins with the scale that was left. */
static void check_skips(weft_mesh *mesh, const char *rules)
{
    model high, fit;
    float begin[N_STATE], now[N_STATE], expected[N_STATE];
    if (!open_model(&high, mesh, rules, 0x1p30, 1000)) return;
    read_state(&high, begin);
    int n_skipped = 0;
    double scale = 0x1p30;
    for (run(&high, 1); !isfinite(scalar_of(&high, high.norm)) && n_skipped < 40; run(&high, 1)) {
        n_skipped++;
        read_state(&high, now);
        CHECK(memcmp(begin, now, sizeof now) == 0);
        CHECK(scalar_of(&high, high.updates) == 0);
        CHECK_CLOSE(scalar_of(&high, high.rate), 0.01 / 8, 1e-7); /* t is still 1 */
        scale /= 2;
    }
    CHECK(n_skipped > 5 && n_skipped < 40);
    CHECK(scalar_of(&high, high.scale) == scale);
    CHECK(scalar_of(&high, high.updates) == 1);
    run(&high, 4);
    CHECK(scalar_of(&high, high.updates) == 5);
    CHECK_CLOSE(scalar_of(&high, high.rate), 0.01 * 5 / 8, 1e-7);
    read_state(&high, now);
    close_model(&high);
    if (!open_model(&fit, mesh, rules, scale, 1000)) return;
    run(&fit, 5);
    CHECK(scalar_of(&fit, fit.updates) == 5);
    read_state(&fit, expected);
    CHECK(memcmp(expected, now, sizeof now) == 0);
    CHECK(memcmp(expected, begin, sizeof now) != 0);
    close_model(&fit);
}

static void test_a_run_that_overflows_updates_nothing_and_does_not_count(void)
{
    check_skips(oracle.alone, "");
    for (int i = 0; i < oracle.n_meshes; i++)
        check_skips(oracle.meshes[i], "batch:data,out:model?");
}

static void test_the_scale_is_doubled_after_so_many_updates(void)
{
    model m;
    if (!open_model(&m, oracle.alone, "", 8.0, 3)) return;
    run(&m, 3);
    CHECK(scalar_of(&m, m.scale) == 8 * 2);
    run(&m, 6);
    CHECK(scalar_of(&m, m.scale) == 8 * 8);
    close_model(&m);
}

static void test_what_cannot_be_is_said(void)
{
    static const struct {
        double first;
        int64_t growth;
        const char *says;
    } wrong[] = {{3, 10, "a power of two"},
                 {0, 10, "a power of two"},
                 {NAN, 10, "a power of two"},
                 {INFINITY, 10, "a power of two"},
                 {8, 0, "at least 1"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        weft_graph *graph = weft_graph_create(1);
        CHECK_EQ_INT(weft_loss_scale(graph, wrong[i].first, wrong[i].growth).id, 0);
        CHECK_TEXT(weft_graph_error(graph)->message, wrong[i].says);
        weft_graph_destroy(&graph);
    }
    model m;
    if (!open_model(&m, oracle.alone, "", 8.0, 3)) return;
    CHECK_EQ_INT(weft_sgd(m.loss, NULL).id, 0);
    CHECK_TEXT(weft_graph_error(m.graph)->message, "goes by the graph's loss scale already");
    close_model(&m);
}

int main(void)
{
    static const char *const meshes[] = {"data:2", "data:3,model:2"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 2, &error), error)) {
        RUN(test_a_run_that_overflows_updates_nothing_and_does_not_count);
        RUN(test_the_scale_is_doubled_after_so_many_updates);
        RUN(test_what_cannot_be_is_said);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
