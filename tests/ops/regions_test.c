/* RANKS: 2 4 */
/* regions_test: a scan whose body is compiled once: its plan is as long however many trips there are, what it says of them is what a
 * run does, and thousands of trips give the numbers that they should; a variable's update and a scan keep out of each other's
 * way.
 */
#include <math.h>
#include <string.h>

#include "measured.h"
#include "oracle.h"
#include "test.h"
#include "weft/autodiff.h"
#include "weft/research/plan.h"
#include "weft/scan.h"

static weft_oracle oracle;
static const weft_dim batch = {"batch", 6}, in = {"in", 3}, hidden = {"hidden", 4}, to = {"to", 4};

/* A recurrent network of `trips` steps, its loss and its gradients. */
static void build_network(weft_oracle_build *b, int64_t trips)
{
    const weft_dim steps = {"steps", trips};
    const weft_value xs = weft_oracle_input(b, WEFT_F64, WEFT_DIMS(steps, batch, in), -1.0, 1.0);
    const weft_value w = weft_oracle_input(b, WEFT_F64, WEFT_DIMS(in, hidden), -0.5, 0.5);
    const weft_value u = weft_oracle_input(b, WEFT_F64, WEFT_DIMS(hidden, to), -0.5, 0.5);
    const weft_value none = weft_constant(b->graph, WEFT_F64, WEFT_DIMS(batch, hidden), 0.0);
    weft_value d[3];
    const weft_value trip = weft_scan_begin(b->graph, trips), h = weft_scan_carry(none);
    const weft_value mixed = weft_rename(weft_einsum(WEFT_DIMS(batch, to), h, u), to, hidden);
    const weft_value x = weft_einsum(WEFT_DIMS(batch, hidden), weft_scan_each(xs, steps), w);
    const weft_value next = weft_tanh(weft_add(x, mixed));
    weft_scan_next(h, next);
    weft_scan_end(trip);
    const weft_value hs = weft_scan_stack(next, steps);
    const weft_value loss = weft_add(weft_mean(weft_square(hs)), weft_mean(weft_scan_last(h)));
    weft_gradients(loss, WEFT_VALUES(xs, w, u), d, 0);
    weft_oracle_output(b, loss);
    for (int i = 0; i < 3; i++)
        weft_oracle_output(b, d[i]);
}

static void build_40(weft_oracle_build *b)
{
    build_network(b, 40);
}

static weft_program *compile_network(weft_mesh *mesh, int64_t trips, const char *rules,
                                     weft_oracle_build *b)
{
    weft_error error = {0};
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    *b = (weft_oracle_build){.graph = weft_graph_create(7)};
    build_network(b, trips);
    const weft_values values = {b->outputs, b->n_outputs};
    CHECK_OK(weft_layout_create(rules, &layout, &error), error);
    CHECK_OK(weft_compile(mesh, layout, values, NULL, &program, &error), error);
    weft_layout_destroy(&layout);
    return program;
}

static void destroy(weft_program **program, weft_oracle_build *b)
{
    CHECK_EQ_INT(weft_program_destroy(program), WEFT_OK);
    CHECK_EQ_INT(weft_graph_destroy(&b->graph), WEFT_OK);
}

/* ---- the plan ------------------------------------------------------------------------------------ */

static void test_a_plan_is_as_long_however_many_trips_there_are(void)
{
    weft_oracle_build few, many;
    weft_program *a = compile_network(oracle.alone, 64, NULL, &few);
    weft_program *b = compile_network(oracle.alone, 4096, NULL, &many);
    if (CHECK(a != NULL && b != NULL)) {
        CHECK(weft_plan_n_steps(a) < 100);
        CHECK_EQ_INT(weft_plan_n_steps(a), weft_plan_n_steps(b));
        CHECK(weft_program_digest(a) != weft_program_digest(b));
    }
    destroy(&a, &few);
    destroy(&b, &many);
}

/* A step of a body counts in each trip. */
static void check_trips(const weft_program *program)
{
    weft_usage plan;
    weft_error error = {0};
    CHECK_OK(weft_plan_usage(program, 0, &plan, &error), error);
    CHECK(plan.n_steps > weft_plan_n_steps(program));
}

static void test_what_is_planned_is_measured(void)
{
    static const char *const layouts[] = {NULL, "batch:data?", "hidden:model?,to:model?",
                                          "batch:data?,in:model?"};
    for (int m = -1; m < oracle.n_meshes; m++)
        for (int l = 0; l < 4; l++) {
            weft_oracle_build b;
            weft_error error = {0};
            weft_mesh *mesh = m < 0 ? oracle.alone : oracle.meshes[m];
            weft_program *program = compile_network(mesh, 40, layouts[l], &b);
            for (int run = 0; program != NULL && run < 2; run++) {
                CHECK_OK(weft_oracle_fill(&b, program, &error), error);
                CHECK_OK(weft_run(program, &error), error);
                check_measured(program);
                check_trips(program);
            }
            destroy(&program, &b);
        }
}

/* Gradients of weights are sums over all trips: of ranks that have each a part of the batch, added up once. */
static void test_sums_over_trips_are_finished_once(void)
{
    for (int m = 0; m < oracle.n_meshes; m++) {
        weft_oracle_build b;
        weft_traffic planned[64];
        int64_t count = 0;
        if (strstr(weft_mesh_text(oracle.meshes[m]), "data") == NULL) continue;
        weft_program *program = compile_network(oracle.meshes[m], 40, "batch:data?", &b);
        const int n = weft_plan_traffic(program, 0, planned, 64);
        for (int i = 0; i < n; i++)
            count += planned[i].count;
        CHECK(count > 0 && count < 40);
        destroy(&program, &b);
    }
}

/* ---- numbers ------------------------------------------------------------------------------------- */

static void test_meshes_agree(void)
{
    weft_oracle_sweep(&oracle, &(weft_oracle_case){.name = "40 trips", .build = build_40}, 12);
    weft_oracle_sweep(&oracle,
                      &(weft_oracle_case){.name = "40 trips, by batch",
                                          .build = build_40,
                                          .layout = "batch:data?,hidden:model?"},
                      4);
}

/* A scan that begins with a variable, which then becomes what the scan has left. */
static void test_a_variable_goes_through_a_scan(void)
{
    enum { TRIPS = 2000 };
    weft_error error = {0};
    weft_program *program = NULL;
    double read[6], expected[6];
    weft_graph *g = weft_graph_create(3);
    const weft_value v = weft_variable(g, "v", WEFT_F64, WEFT_DIMS(batch), weft_constant_of(1.0));
    const weft_value trip = weft_scan_begin(g, TRIPS), h = weft_scan_carry(v);
    const weft_value row = weft_cast(weft_iota(g, WEFT_I32, batch), WEFT_F64);
    const weft_value next =
        weft_add(weft_scale(h, 0.5), weft_sin(weft_add(row, weft_cast(trip, WEFT_F64))));
    weft_scan_next(h, weft_sub(next, weft_scale(v, 0.125)));
    weft_scan_end(trip);
    const weft_value update = weft_assign(v, weft_scan_last(h));
    for (int i = 0; i < 6; i++)
        expected[i] = 1.0;
    for (int run = 0; run < 2; run++)
        for (int i = 0; i < 6; i++) {
            const double old = expected[i];
            for (int t = 0; t < TRIPS; t++)
                expected[i] = expected[i] * 0.5 + sin(i + t) - old * 0.125;
        }
    for (int m = -1; m < oracle.n_meshes; m++) {
        weft_layout *layout = NULL;
        weft_mesh *mesh = m < 0 ? oracle.alone : oracle.meshes[m];
        CHECK_OK(weft_layout_create("batch:data?", &layout, &error), error);
        if (!CHECK_OK(weft_compile(mesh, layout, WEFT_VALUES(update), NULL, &program, &error),
                      error))
            return;
        for (int run = 0; run < 2; run++)
            CHECK_OK(weft_run(program, &error), error);
        CHECK_OK(weft_read(program, v, WEFT_F64, read, sizeof read, &error), error);
        for (int i = 0; i < 6; i++)
            CHECK(fabs(read[i] - expected[i]) < 1e-12);
        CHECK_EQ_INT(weft_program_destroy(&program), WEFT_OK);
        weft_layout_destroy(&layout);
    }
    weft_graph_destroy(&g);
}

int main(void)
{
    static const char *const meshes[] = {"data:2", "data:4", "model:2", "data:2,model:2"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 4, &error), error)) {
        RUN(test_a_plan_is_as_long_however_many_trips_there_are);
        RUN(test_what_is_planned_is_measured);
        RUN(test_sums_over_trips_are_finished_once);
        RUN(test_meshes_agree);
        RUN(test_a_variable_goes_through_a_scan);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
