/* bucket_test: small exchanges that are ready together are one, as many as a person would count, and the plan says why;
 * large ones stay alone. (That the numbers are the same to the bit, and nothing grows: fuse_test.)
 */
#include "weft/autodiff.h"
#include "weft/optim.h"
#include "weft/research/plan.h"

#include <string.h>

#include "apps/gpt/model.h"
#include "test.h"

/* The all_reduces of a plan: how many, of how many tensors, and how many tensors are too large to be joined. */
typedef struct reductions {
    int n, n_tensors, n_large;
    const char *reason; /* of the largest joined one */
    int most;
} reductions;

static void count_reductions(const weft_program *program, reductions *r)
{
    *r = (reductions){0};
    for (int s = 0; s < weft_plan_n_steps(program); s++) {
        weft_planned_step step;
        weft_error error = {0};
        if (!CHECK_OK(weft_plan_step_at(program, s, 0, &step, &error), error)) return;
        if (step.kind != WEFT_STEP_CONVERT || step.collective != WEFT_ALL_REDUCE) continue;
        CHECK_EQ_INT(step.n_in, step.n_out);
        r->n++;
        r->n_tensors += step.n_in;
        /* packed and unpacked at four times a link's speed, it takes a latency */
        r->n_large += step.wire_bytes * 2 / WEFT_COPIES_PER_BYTE >= WEFT_LATENCY && step.n_in == 1;
        if (step.n_in <= r->most) continue;
        r->most = step.n_in;
        r->reason = step.reason;
    }
}

static bool compile_for(weft_values values, const char *mesh_text, const char *layout_text,
                        const weft_compile_options *options, weft_mesh **mesh,
                        weft_program **program)
{
    weft_error error = {0};
    weft_layout *layout = NULL;
    bool is_well = CHECK_OK(weft_mesh_plan(mesh_text, mesh, &error), error) &&
                   CHECK_OK(weft_layout_create(layout_text, &layout, &error), error) &&
                   CHECK_OK(weft_compile(*mesh, layout, values, options, program, &error), error);
    weft_layout_destroy(&layout);
    return is_well;
}

static void count_gpt(const weft_compile_options *options, reductions *r, char *reason, size_t room)
{
    const gpt_shape shape = {16, 64, 4, 128, 4, 512, 256, .dropout = 0.1, .dtype = WEFT_F32};
    weft_graph *graph = weft_graph_create(1234);
    weft_mesh *mesh = NULL;
    weft_program *program = NULL;
    gpt_model model;
    const weft_value loss = gpt_loss(&shape, graph, &model);
    const weft_value update =
        weft_adamw(loss, &(weft_optimizer_options){.rate = 3e-3, .clip = 0.5});
    if (compile_for(WEFT_VALUES(loss, update), "data:2", "batch:data", options, &mesh, &program))
        count_reductions(program, r);
    snprintf(reason, room, "%s", r->reason ? r->reason : "");
    weft_program_destroy(&program);
    weft_graph_destroy(&graph);
    weft_mesh_destroy(&mesh);
}

/* By hand, of four layers: of each, two scales and two biases of layer norms and two biases of the feed-forward; the two
 * of the last layer norm. Products' weights, places and words are 32 KiB or more: they stay alone, and so does the loss,
 * which belongs to the forward phase. */
static void test_small_gradients_of_gpt_are_one_exchange(void)
{
    char reason[400];
    reductions r;
    count_gpt(NULL, &r, reason, sizeof reason);
    CHECK_EQ_INT(r.most, 4 * 6 + 2);
    CHECK_EQ_INT(r.n, r.n_large + 2);
    CHECK_EQ_INT(r.n_tensors, r.n_large + 26 + 1);
    CHECK_TEXT(reason, "one exchange instead of 26 that are ready together: saves 25 latencies, "
                       "each of 16384 bytes");
}

/* Where beginning an exchange costs next to nothing, each is alone; where it costs much, large ones go together too. */
static void test_what_is_small_follows_the_cost_function(void)
{
    char reason[400];
    reductions usual, cheap, dear;
    count_gpt(NULL, &usual, reason, sizeof reason);
    const weft_cost next_to_nothing = {.latency = 1e-3}, much = {.latency = 1e9};
    count_gpt(&(weft_compile_options){.cost = &next_to_nothing}, &cheap, reason, sizeof reason);
    CHECK_EQ_INT(cheap.n, cheap.n_tensors);
    CHECK_EQ_INT(cheap.n_tensors, usual.n_tensors);
    count_gpt(&(weft_compile_options){.cost = &much}, &dear, reason, sizeof reason);
    CHECK(dear.n < usual.n);
    CHECK_EQ_INT(dear.n_tensors, usual.n_tensors);
}

static void test_a_latency_is_a_number(void)
{
    static const double wrong[] = {-1, -1e300};
    weft_graph *graph = weft_graph_create(1);
    const weft_value x = weft_input(graph, "x", WEFT_F32, WEFT_DIMS({"row", 4}));
    for (int i = 0; i < 2; i++) {
        const weft_cost cost = {.latency = wrong[i]};
        const weft_compile_options options = {.cost = &cost};
        weft_error error = {0};
        weft_mesh *mesh = NULL;
        weft_program *program = NULL;
        CHECK_OK(weft_mesh_plan("data:2", &mesh, &error), error);
        CHECK_EQ_INT(
            weft_compile(mesh, NULL, WEFT_VALUES(weft_relu(x)), &options, &program, &error),
            WEFT_USAGE);
        CHECK_TEXT(error.message, "latency of the cost function is");
        weft_mesh_destroy(&mesh);
    }
    weft_graph_destroy(&graph);
}

/* Sums that need each other cannot be one: the second is of what the first has made. */
static void test_one_that_needs_the_other_comes_after_it(void)
{
    weft_graph *graph = weft_graph_create(1);
    weft_mesh *mesh = NULL;
    weft_program *program = NULL;
    reductions r;
    const weft_dim row = {"row", 64}, column = {"column", 64};
    const weft_value x = weft_input(graph, "x", WEFT_F32, WEFT_DIMS(row, column));
    const weft_value mean = weft_sum(WEFT_DIMS(column), x); /* three that are ready together ... */
    const weft_value squares = weft_sum(WEFT_DIMS(column), weft_square(x));
    const weft_value cubes = weft_sum(WEFT_DIMS(column), weft_mul(x, weft_square(x)));
    const weft_value centred =
        weft_sum(WEFT_DIMS(column), weft_square(weft_sub(x, mean))); /* ... and one that is not */
    if (compile_for(WEFT_VALUES(mean, squares, cubes, centred), "data:2", "row:data", NULL, &mesh,
                    &program)) {
        count_reductions(program, &r);
        CHECK_EQ_INT(r.n_tensors, 4);
        CHECK_EQ_INT(r.n, 2);
        CHECK_EQ_INT(r.most, 3);
    }
    weft_program_destroy(&program);
    weft_graph_destroy(&graph);
    weft_mesh_destroy(&mesh);
}

int main(void)
{
    RUN(test_small_gradients_of_gpt_are_one_exchange);
    RUN(test_what_is_small_follows_the_cost_function);
    RUN(test_a_latency_is_a_number);
    RUN(test_one_that_needs_the_other_comes_after_it);
    return weft_test_report();
}
