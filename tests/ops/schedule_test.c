/* schedule_test: exchanges go on while steps compute, where a person would let them; the plan says so; the arena grows by a
 * quarter at most; and the check that they are left alone meanwhile finds what is planted. (That the numbers are the same
 * to the bit: fuse_test.)
 */
#include "weft/autodiff.h"
#include "weft/optim.h"
#include "weft/research/plan.h"

#include <string.h>

#include "apps/gpt/model.h"
#include "flights.h"
#include "gpt_plan.h"
#include "ops/run/program.h"
#include "test.h"

typedef struct plan_of_gpt {
    weft_mesh *mesh;
    weft_graph *graph;
    weft_program *program;
} plan_of_gpt;

static bool open_gpt(const char *mesh, const char *rules, int zero, bool is_synchronous,
                     plan_of_gpt *p)
{
    const gpt_shape shape = {16, 64, 4, 256, 4, 1024, 256, .dropout = 0.1, .dtype = WEFT_F32};
    const weft_compile_options options = {.synchronous = is_synchronous};
    weft_error error = {0};
    weft_layout *layout = NULL;
    gpt_model model;
    *p = (plan_of_gpt){.graph = weft_graph_create(1)};
    const weft_value loss = gpt_loss(&shape, p->graph, &model);
    const weft_value update = weft_adamw(loss, &(weft_optimizer_options){.rate = 1e-3});
    const bool is_well = CHECK_OK(weft_mesh_plan(mesh, &p->mesh, &error), error) &&
                         CHECK_OK(weft_layout_create(rules, &layout, &error), error) &&
                         CHECK_OK(weft_layout_store(layout, zero, "batch", &error), error) &&
                         CHECK_OK(weft_compile(p->mesh, layout, WEFT_VALUES(loss, update), &options,
                                               &p->program, &error),
                                  error);
    weft_layout_destroy(&layout);
    return is_well;
}

static void close_gpt(plan_of_gpt *p)
{
    weft_program_destroy(&p->program);
    weft_graph_destroy(&p->graph);
    weft_mesh_destroy(&p->mesh);
}

static bool step_at(const plan_of_gpt *p, int s, weft_planned_step *step)
{
    weft_error error = {0};
    return CHECK_OK(weft_plan_step_at(p->program, s, 0, step, &error), error);
}

/* Flops of the steps from `s` on. */
static double flops_from(const plan_of_gpt *p, int s)
{
    double flops = 0;
    for (weft_planned_step step; s < weft_plan_n_steps(p->program) && step_at(p, s, &step); s++)
        flops += step.flops;
    return flops;
}

/* What follows the last weight's gradient is the update: a few flops. All before has products to hide behind. */
static void test_gradients_are_summed_while_the_backward_pass_goes_on(void)
{
    plan_of_gpt p;
    weft_planned_step step;
    int n = 0, n_hidden = 0, n_alone = 0;
    if (open_gpt("data:2", "batch:data", 0, false, &p))
        for (int s = 0; s < weft_plan_n_steps(p.program) && step_at(&p, s, &step); s++) {
            if (step.collective != WEFT_ALL_REDUCE || step.axes == 0 || step.phase != WEFT_UPDATE)
                continue;
            n++;
            /* a matrix 256 x 256 is summed in the time of 2 Mflop, as prices are */
            n_hidden += step.beside_flops > (double)step.wire_bytes * WEFT_FLOPS_PER_BYTE;
            n_alone += step.n_beside == 0;
            CHECK(step.beside_flops <= flops_from(&p, s));
        }
    CHECK(n >= 25);
    CHECK(n_alone <= 1); /* nothing is left to do beside the last */
    CHECK(n_hidden >= n - 4);
    close_gpt(&p);
}

/* No weight is gathered more than a layer ahead: each is read within the matrices of one layer. */
static void test_gathered_weights_are_one_layer_ahead(void)
{
    plan_of_gpt p;
    weft_planned_step step;
    int n = 0, n_ahead = 0;
    if (open_gpt("data:2", "batch:data", 3, false, &p)) {
        const double layer = flops_from(&p, 0) / (3 * 4);
        for (int s = 0; s < weft_plan_n_steps(p.program) && step_at(&p, s, &step); s++) {
            if (step.collective != WEFT_ALL_GATHER || step.wire_bytes < 65536) continue;
            n++;
            n_ahead += step.beside_flops > 0;
            CHECK(step.beside_flops <= layer);
        }
    }
    CHECK(n >= 40);
    CHECK(n_ahead >= n * 9 / 10);
    close_gpt(&p);
}

static void test_the_arena_grows_by_a_quarter_at_most(void)
{
    for (int i = 0; i < GPT_EXCHANGES; i++) {
        int64_t arena[2] = {0};
        for (int is_synchronous = 0; is_synchronous < 2; is_synchronous++) {
            plan_of_gpt p;
            weft_usage usage = {0};
            weft_error error = {0};
            if (open_gpt(gpt_exchanges[i].mesh, gpt_exchanges[i].rules, gpt_exchanges[i].zero,
                         is_synchronous, &p))
                CHECK_OK(weft_plan_usage(p.program, 0, &usage, &error), error);
            arena[is_synchronous] = usage.arena_bytes;
            close_gpt(&p);
        }
        CHECK(arena[0] > 0 && arena[0] <= arena[1] + arena[1] / 4);
    }
}

static void test_synchronous_exchanges_are_over_at_once(void)
{
    plan_of_gpt p;
    weft_planned_step step;
    if (open_gpt("data:2", "batch:data", 0, true, &p))
        for (int s = 0; s < weft_plan_n_steps(p.program) && step_at(&p, s, &step); s++)
            CHECK_EQ_INT(step.n_beside, 0);
    close_gpt(&p);
}

/* Each exchange, one at a time, goes on for one step more than it may, or to the end of the run: somebody waits for nearly all,
 * and most end right before him; the others earlier, for the sake of memory. */
static void test_an_end_that_is_too_late_is_found(void)
{
    plan_of_gpt p;
    char text[200];
    int n = 0, n_awaited = 0, n_at_once = 0;
    if (open_gpt(gpt_exchanges[GPT_IN_TWO_STORED].mesh, gpt_exchanges[GPT_IN_TWO_STORED].rules, 3,
                 false, &p)) {
        weft_plan *plan = p.program->plan;
        CHECK(flights_are_left_alone(plan, 0, text, sizeof text));
        for (uint32_t s = 0; s < plan->n_steps; s++) {
            weft_exchange exchange;
            const uint32_t until = plan->steps[s].until;
            if (!weft_step_exchange(plan, &plan->steps[s], 0, &exchange) || until == plan->n_steps)
                continue;
            n++;
            plan->steps[s].until = until + 1;
            n_at_once += !flights_are_left_alone(plan, 0, text, sizeof text);
            plan->steps[s].until = plan->n_steps;
            n_awaited += !flights_are_left_alone(plan, 0, text, sizeof text);
            plan->steps[s].until = until;
        }
    }
    CHECK(n > 20);
    CHECK(n_awaited >= n - 2);
    CHECK(n_at_once >= n * 9 / 10);
    close_gpt(&p);
}

int main(void)
{
    RUN(test_gradients_are_summed_while_the_backward_pass_goes_on);
    RUN(test_gathered_weights_are_one_layer_ahead);
    RUN(test_the_arena_grows_by_a_quarter_at_most);
    RUN(test_synchronous_exchanges_are_over_at_once);
    RUN(test_an_end_that_is_too_late_is_found);
    return weft_test_report();
}
