/* links_test: over links that are said to be slower, weights are gathered earlier; the usual speed, stated, is the usual plan;
 * an axis may be slower than another; and what is no speed is refused with a sentence.
 */
#include "weft/autodiff.h"
#include "weft/optim.h"
#include "weft/research/plan.h"

#include <string.h>

#include "apps/gpt/model.h"
#include "ops/run/program.h"
#include "test.h"

typedef struct stated {
    double beside;   /* flops beside gathers, of each by itself */
    double price[2]; /* of all that goes over data; over model */
    uint64_t digest;
} stated;

static const char *mesh_text = "data:2,model:2";

static weft_status plan_with(const char *link, stated *s, weft_error *error)
{
    const gpt_shape shape = {16, 64, 4, 256, 4, 1024, 256, .dtype = WEFT_F32};
    const weft_compile_options options = {.link = link};
    weft_mesh *mesh = NULL;
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    weft_graph *graph = weft_graph_create(1);
    weft_error wrong = {0};
    gpt_model model;
    *s = (stated){0};
    const weft_value loss = gpt_loss(&shape, graph, &model);
    const weft_value update = weft_adamw(loss, &(weft_optimizer_options){.rate = 1e-3});
    CHECK_OK(weft_mesh_plan(mesh_text, &mesh, &wrong), wrong);
    CHECK_OK(weft_layout_create("batch:data,hidden:model?,heads:model?", &layout, &wrong), wrong);
    CHECK_OK(weft_layout_store(layout, 3, "batch", &wrong), wrong);
    const weft_status status =
        weft_compile(mesh, layout, WEFT_VALUES(loss, update), &options, &program, error);
    for (uint32_t i = 0; program && i < program->plan->n_steps; i++) {
        weft_exchange exchange;
        weft_planned_step step;
        CHECK_OK(weft_plan_step_at(program, (int)i, 0, &step, &wrong), wrong);
        if (step.collective == WEFT_ALL_GATHER) s->beside += step.beside_flops;
        if (weft_step_exchange(program->plan, &program->plan->steps[i], 0, &exchange))
            s->price[exchange.axes == 2] +=
                weft_exchange_price(program->plan, &(weft_cost){0}, &exchange) /
                exchange.link_bytes;
    }
    if (program) s->digest = weft_plan_digest(program->plan);
    (void)!weft_program_destroy(&program);
    weft_graph_destroy(&graph);
    weft_layout_destroy(&layout);
    (void)!weft_mesh_destroy(&mesh);
    return status;
}

static void test_weights_are_gathered_earlier_over_slower_links(void)
{
    stated usual, same, slow;
    weft_error error = {0};
    mesh_text = "data:2"; /* there is room to gather ahead */
    CHECK_OK(plan_with(NULL, &usual, &error), error);
    CHECK_OK(plan_with("3GB+5461.333333ns", &same, &error), error);
    CHECK_OK(plan_with("data:1GB", &slow, &error), error);
    CHECK(usual.digest != 0 && usual.digest == same.digest && usual.digest != slow.digest);
    CHECK(slow.beside > usual.beside);
    mesh_text = "data:2,model:2";
}

static void test_each_axis_has_its_own_speed(void)
{
    stated usual, slow, both;
    weft_error error = {0};
    CHECK_OK(plan_with("", &usual, &error), error);
    CHECK_OK(plan_with("6GB,data:1.5GB", &slow, &error), error);
    CHECK_OK(plan_with("30MB", &both, &error), error);
    CHECK(usual.price[0] > 0 && usual.price[1] > 0);
    CHECK(slow.price[0] > usual.price[0] && slow.price[1] < usual.price[1]);
    CHECK(both.price[0] > 50 * usual.price[0] && both.price[1] > 50 * usual.price[1]);
}

static void test_what_is_no_speed_is_refused(void)
{
    static const char *const wrong[] = {
        "fast", "1",    "0GB",   "-1GB",   "1GB+",    "1GB+5",   "1GB+0us", "infGB",   "nanGB",
        "1GB,", ",1GB", "data:", "data:1", "data1GB", "1e308TB", "1e-320B", "1GB +1us"};
    stated s;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        weft_error error = {0};
        CHECK_EQ_INT(plan_with(wrong[i], &s, &error), WEFT_USAGE);
        CHECK_TEXT(error.message, "bytes a second");
    }
    weft_error error = {0};
    CHECK_EQ_INT(plan_with("dat:1GB", &s, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "did you mean data?");
}

int main(void)
{
    RUN(test_weights_are_gathered_earlier_over_slower_links);
    RUN(test_each_axis_has_its_own_speed);
    RUN(test_what_is_no_speed_is_refused);
    return weft_test_report();
}
