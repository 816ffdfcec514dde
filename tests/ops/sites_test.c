/* sites_test: ops that are alike are decided once, and as each would be by itself; candidates that begin from the same beliefs are
 * placed once. */
#include "ops/compile/place.h"

#include <string.h>

#include "gpt_plan.h"
#include "weft/scan.h"

/* Linked with --wrap. */
static int n_choices, n_decided, n_placings;
weft_status __real_weft_choose(const weft_choice_in *in, weft_choice *choice, weft_error *error);
weft_status __wrap_weft_choose(const weft_choice_in *in, weft_choice *choice, weft_error *error);
weft_status __real_weft_decide(weft_sites *sites, weft_choice_in *in, weft_decided **decided,
                               weft_error *error);
weft_status __wrap_weft_decide(weft_sites *sites, weft_choice_in *in, weft_decided **decided,
                               weft_error *error);
void __real_weft_place_scans_anew(weft_placing *p);
void __wrap_weft_place_scans_anew(weft_placing *p);

weft_status __wrap_weft_choose(const weft_choice_in *in, weft_choice *choice, weft_error *error)
{
    n_choices++;
    return __real_weft_choose(in, choice, error);
}

weft_status __wrap_weft_decide(weft_sites *sites, weft_choice_in *in, weft_decided **decided,
                               weft_error *error)
{
    n_decided++;
    return __real_weft_decide(sites, in, decided, error);
}

void __wrap_weft_place_scans_anew(weft_placing *p)
{
    n_placings++;
    __real_weft_place_scans_anew(p);
}

/* A recurrence of so many trips, all written down, with gradients. */
static weft_plan *recurrence(weft_mesh *mesh, weft_graph *graph, int64_t trips, bool explain)
{
    static const weft_dim batch = {"batch", 6}, hidden = {"hidden", 4}, to = {"to", 4};
    const weft_dim time = {"time", trips};
    weft_error error = {0};
    weft_layout *layout = NULL;
    weft_plan *plan = NULL;
    const weft_value x = weft_input(graph, "x", WEFT_F32, WEFT_DIMS(time, batch, hidden));
    const weft_value w =
        weft_variable(graph, "w", WEFT_F32, WEFT_DIMS(hidden, to), weft_normal(0, 1));
    const weft_value initial = weft_constant(graph, WEFT_F32, WEFT_DIMS(batch, hidden), 0);
    const weft_value trip = weft_scan_begin(graph, trips), h = weft_scan_carry(initial);
    const weft_value both = weft_add(h, weft_scan_each(x, time));
    weft_scan_next(h,
                   weft_rename(weft_tanh(weft_einsum(WEFT_DIMS(batch, to), both, w)), to, hidden));
    weft_scan_end(trip);
    const weft_value loss = weft_mean(weft_square(weft_scan_last(h)));
    const weft_value update = weft_sgd(loss, &(weft_optimizer_options){.rate = 0.1});
    const weft_compile_options options = {.unroll = trips, .explain = explain};
    CHECK_OK(weft_layout_create("batch:data,hidden:model", &layout, &error), error);
    n_choices = n_decided = n_placings = 0;
    CHECK_OK(weft_plan_build(mesh, layout, WEFT_VALUES(loss, update), &options, &plan, &error),
             error);
    weft_layout_destroy(&layout);
    return plan;
}

static void test_trips_are_decided_once(void)
{
    weft_error error = {0};
    weft_mesh *mesh = NULL;
    weft_graph *graph = weft_graph_create(1);
    CHECK_OK(weft_mesh_plan("data:2,model:2", &mesh, &error), error);
    weft_plan *plan = recurrence(mesh, graph, 32, false);
    printf("# %d choices for %d decisions\n", n_choices, n_decided);
    CHECK(n_choices > 0 &&
          4 * n_choices < n_decided); /* slices and shares differ from trip to trip */
    weft_plan_destroy(&plan);
    weft_graph_destroy(&graph);
    weft_mesh_destroy(&mesh);
}

/* Who asks to see what was decided has each op decided by itself. */
static void test_each_is_decided_as_by_itself(void)
{
    weft_error error = {0};
    weft_mesh *mesh = NULL;
    weft_graph *graphs[] = {weft_graph_create(1), weft_graph_create(1)};
    CHECK_OK(weft_mesh_plan("data:2,model:2", &mesh, &error), error);
    weft_plan *kept = recurrence(mesh, graphs[0], 12, false);
    const int n_kept = n_choices;
    weft_plan *shown = recurrence(mesh, graphs[1], 12, true);
    CHECK(n_choices > n_kept);
    if (kept && shown) CHECK_EQ_INT(weft_plan_digest(kept), weft_plan_digest(shown));
    weft_plan_destroy(&kept);
    weft_plan_destroy(&shown);
    weft_graph_destroy(&graphs[0]);
    weft_graph_destroy(&graphs[1]);
    weft_mesh_destroy(&mesh);
}

static void test_same_beliefs_are_placed_once(void)
{
    const gpt_shape shape = {8, 12, 2, 24, 4, 40, 32, .dtype = WEFT_F32};
    gpt_plan p;
    n_placings = 0;
    gpt_plan_open(&shape, "data:4", "batch:data", 1, &p);
    if (!p.plan) return;
    CHECK(p.plan->n_candidates > 1);
    for (int i = 1; i < p.plan->n_candidates; i++) {
        CHECK(p.plan->candidates[i].total == p.plan->candidates[0].total);
        CHECK_EQ_INT(p.plan->candidates[i].peak_bytes, p.plan->candidates[0].peak_bytes);
        CHECK(strcmp(p.plan->candidates[i].name, p.plan->candidates[0].name) != 0);
    }
    CHECK(n_placings < 1 + p.plan->n_candidates);
    gpt_plan_close(&p);
}

int main(void)
{
    RUN(test_trips_are_decided_once);
    RUN(test_each_is_decided_as_by_itself);
    RUN(test_same_beliefs_are_placed_once);
    return weft_test_report();
}
