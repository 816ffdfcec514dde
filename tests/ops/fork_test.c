/* fork_test: a plan that has begun ends in several ways. Each is the plan that is made anew, in whatever order they end, and lives on when
 * the others are destroyed.
 */
#include "gpt_plan.h"
#include "weft/research/predict.h"

static const gpt_shape small = {
    .batch = 8, .seq = 8, .layers = 2, .width = 16, .heads = 4, .hidden = 32, .vocab = 32};

/* What a plan is made of, and the plans by prices and by seconds, made anew. */
typedef struct ends {
    gpt_plan begun; /* its own plan is not used */
    weft_layout *layout;
    weft_value values[2];
    weft_compile_options options;
    weft_plan_request request;
    weft_pricing pricings[2];
    weft_plan *anew[2];
} ends;

static void open_ends(ends *e, int exchange, const weft_machine_model *model)
{
    weft_error error = {0};
    gpt_model made;
    *e = (ends){.pricings = {{0}, {.machine = model}}};
    e->begun.graph = weft_graph_create(1);
    const weft_value loss = gpt_loss(&small, e->begun.graph, &made);
    const weft_value update = weft_adamw(loss, &(weft_optimizer_options){.rate = 1e-3, .clip = 1});
    CHECK_OK(weft_mesh_plan(gpt_exchanges[exchange].mesh, &e->begun.mesh, &error), error);
    CHECK_OK(weft_layout_create(gpt_exchanges[exchange].rules, &e->layout, &error), error);
    CHECK_OK(weft_layout_store(e->layout, gpt_exchanges[exchange].zero, "batch", &error), error);
    e->values[0] = loss;
    e->values[1] = update;
    e->request = (weft_plan_request){e->begun.mesh, e->layout, {e->values, 2}, &e->options};
    for (int i = 0; i < 2; i++)
        CHECK_OK(weft_plan_make(&e->request, &e->pricings[i], &e->anew[i], &error), error);
}

static void close_ends(ends *e)
{
    for (int i = 0; i < 2; i++)
        weft_plan_destroy(&e->anew[i]);
    weft_layout_destroy(&e->layout);
    gpt_plan_close(&e->begun);
}

static void check_same(const weft_plan *plan, const weft_plan *anew)
{
    CHECK(weft_plan_digest(plan) == weft_plan_digest(anew));
    CHECK_EQ_INT(plan->packed.arena_bytes, anew->packed.arena_bytes);
    CHECK_EQ_INT(plan->n_steps, anew->n_steps);
    CHECK_EQ_INT(plan->n_queues, anew->n_queues);
    CHECK_EQ_INT(plan->n_traffic, anew->n_traffic);
    for (uint32_t s = 0; s < plan->n_steps && s < anew->n_steps; s++)
        CHECK_EQ_INT(plan->steps[s].until, anew->steps[s].until);
    for (uint32_t id = 1; id < plan->n_placed && id < anew->n_placed; id++) {
        CHECK_EQ_INT(plan->packed.offset[id], anew->packed.offset[id]);
        CHECK_EQ_INT(plan->placed[id].first_step, anew->placed[id].first_step);
        CHECK_EQ_INT(plan->placed[id].last_step, anew->placed[id].last_step);
    }
}

/* `first` of the two pricings ends first; what has trials gives them to the other. */
static void end_both(const ends *e, int first)
{
    weft_error error = {0};
    weft_plan *plans[2] = {NULL, NULL};
    CHECK_OK(weft_plan_begin(&e->request, &e->pricings[first], &plans[first], &error), error);
    CHECK((plans[!first] = weft_plan_fork(plans[first])) != NULL);
    CHECK_OK(weft_plan_end(plans[first], &e->pricings[first], plans[!first], &error), error);
    CHECK_OK(weft_plan_end(plans[!first], &e->pricings[!first], NULL, &error), error);
    check_same(plans[first], e->anew[first]);
    weft_plan_destroy(&plans[first]);
    check_same(plans[!first], e->anew[!first]);
    weft_plan_destroy(&plans[!first]);
}

static void test_each_end_is_the_plan_made_anew(void)
{
    weft_error error = {0};
    weft_machine_model *model = NULL;
    int n_others = 0;
    CHECK_OK(weft_machine_model_read("a100x8", &model, &error), error);
    for (int e = 0; e < GPT_EXCHANGES; e++) {
        ends all;
        open_ends(&all, e, model);
        n_others += weft_plan_digest(all.anew[0]) != weft_plan_digest(all.anew[1]);
        end_both(&all, 0);
        end_both(&all, 1);
        close_ends(&all);
    }
    CHECK(n_others > 0); /* seconds order some of them otherwise */
    weft_machine_model_destroy(&model);
}

static void test_a_fork_that_never_ends_is_destroyed(void)
{
    weft_error error = {0};
    ends all;
    weft_plan *plan = NULL, *forks[2];
    open_ends(&all, 0, NULL);
    CHECK_OK(weft_plan_begin(&all.request, &all.pricings[0], &plan, &error), error);
    for (int i = 0; i < 2; i++)
        forks[i] = weft_plan_fork(plan);
    weft_plan_destroy(&forks[0]);
    CHECK_OK(weft_plan_end(plan, &all.pricings[0], NULL, &error), error);
    check_same(plan, all.anew[0]);
    weft_plan_destroy(&plan);
    weft_plan_destroy(&forks[1]);
    close_ends(&all);
}

int main(void)
{
    RUN(test_each_end_is_the_plan_made_anew);
    RUN(test_a_fork_that_never_ends_is_destroyed);
    return weft_test_report();
}
