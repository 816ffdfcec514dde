/* RANKS: 2 4 */
/* recompute_test: a part that is computed again gives the numbers that it gives without, to the bit on one rank, under
 * placements too: with random numbers, in parts, in bodies of scans, around scans, in gradients of gradients. What it spares and
 * costs is what follows from the model; wrong calls have their sentence.
 */
#include "again.h"
#include "apps/gpt/model.h"
#include "weft/optim.h"
#include "wrong_calls.h"

static const weft_dim steps = {"steps", 4};

/* ---- against the same program without parts ------------------------------------------------------ */

static void build_layers(weft_oracle_build *b)
{
    const net n = net_of(b);
    weft_value x = n.x;
    for (int i = 0; i < 3; i++)
        x = end(b, layer(&n, begin(b, x)));
    give(b, weft_sum(WEFT_SCALAR, weft_square(x)), &n);
}

static void test_layers(void)
{
    check("layers", build_layers, NULL, 48, 0);
    check("layers, by names", build_layers, "batch:data?,hidden:model?", 8, 0);
}

static void build_nested(weft_oracle_build *b)
{
    const net n = net_of(b);
    weft_value x = begin(b, n.x);
    for (int i = 0; i < 2; i++) {
        x = begin(b, x);
        x = layer(&n, end(b, layer(&n, begin(b, x))));
        x = weft_sin(end(b, x));
    }
    give(b, weft_sum(WEFT_SCALAR, weft_square(end(b, x))), &n);
}

static void test_parts_in_parts(void)
{
    check("nested", build_nested, NULL, 24, 0);
}

/* A part may hand out several values, and read what others have. */
static void build_several(weft_oracle_build *b)
{
    const net n = net_of(b);
    const weft_value x = begin(b, n.x), inner = weft_exp(layer(&n, x)), y = weft_tanh(inner);
    const weft_value z = weft_mul(end(b, y), inner), t = begin(b, z);
    const weft_value s = end(b, weft_mul(weft_sin(weft_mul(t, inner)), weft_square(y)));
    give(b, weft_sum(WEFT_SCALAR, weft_mul(s, weft_add(y, inner))), &n);
}

static void test_parts_that_hand_out_several_values(void)
{
    check("several", build_several, NULL, 24, 0);
}

static void build_second(weft_oracle_build *b)
{
    const net n = net_of(b);
    weft_value first[2];
    const weft_value y = end(b, weft_tanh(layer(&n, begin(b, n.x))));
    const weft_value z = end(b, layer(&n, begin(b, y)));
    weft_gradients(weft_sum(WEFT_SCALAR, weft_square(z)), WEFT_VALUES(n.x, n.w), first, 0);
    give(b,
         weft_add(weft_sum(WEFT_SCALAR, weft_square(first[0])),
                  weft_sum(WEFT_SCALAR, weft_square(first[1]))),
         &n);
}

static void test_gradients_of_gradients(void)
{
    check("second", build_second, NULL, 12, 1e-13);
}

/* The part's last node is the graph's, and the seed is older. */
static void build_seeded(weft_oracle_build *b)
{
    const net n = net_of(b);
    weft_value by[2];
    const weft_value seed = weft_exp(n.x), y = end(b, layer(&n, begin(b, n.x)));
    weft_gradients_seeded(WEFT_VALUES(y), WEFT_VALUES(seed), WEFT_VALUES(n.x, n.w), by, 0);
    weft_oracle_output(b, by[0]);
    weft_oracle_output(b, by[1]);
}

static void test_gradients_by_a_seed(void)
{
    check("seeded", build_seeded, NULL, 12, 0);
}

/* Two losses of one part, each with a walk of its own. */
static void build_losses(weft_oracle_build *b)
{
    const net n = net_of(b);
    weft_value first[1];
    const weft_value y = end(b, weft_tanh(layer(&n, begin(b, n.x))));
    weft_gradients(weft_sum(WEFT_SCALAR, weft_exp(y)), WEFT_VALUES(n.w), first, 0);
    weft_oracle_output(b, first[0]);
    give(b, weft_sum(WEFT_SCALAR, weft_square(y)), &n);
}

static void test_two_losses(void)
{
    check("losses", build_losses, NULL, 12, 0);
}

/* ---- with scans ---------------------------------------------------------------------------------- */

static weft_value trips(weft_oracle_build *b)
{
    return weft_oracle_input(b, WEFT_F64, WEFT_DIMS(steps, batch, in), -1.0, 1.0);
}

static void build_in_a_body(weft_oracle_build *b)
{
    const net n = net_of(b);
    const weft_value xs = trips(b), trip = weft_scan_begin(b->graph, steps.size);
    const weft_value h = weft_scan_carry(n.x), x = weft_scan_each(xs, steps);
    const weft_value first = end(b, layer(&n, begin(b, weft_add(h, x))));
    const weft_value next = end(b, weft_tanh(layer(&n, weft_mul(begin(b, first), x))));
    weft_scan_next(h, next);
    weft_scan_end(trip);
    const weft_value all = weft_scan_stack(first, steps), last = weft_scan_last(h);
    give(b,
         weft_add(weft_sum(WEFT_SCALAR, weft_square(all)), weft_sum(WEFT_SCALAR, weft_exp(last))),
         &n);
}

static void test_parts_in_a_body(void)
{
    check("in a body", build_in_a_body, NULL, 12, 1e-13);
    check("in a body, by names", build_in_a_body, "batch:data?,hidden:model?", 8, 1e-13);
}

static void build_around(weft_oracle_build *b)
{
    const net n = net_of(b);
    const weft_value xs = trips(b), x0 = weft_exp(begin(b, n.x));
    const weft_value trip = weft_scan_begin(b->graph, steps.size), h = weft_scan_carry(x0);
    const weft_value part = begin(b, weft_add(h, weft_scan_each(xs, steps)));
    weft_scan_next(h, weft_mul(end(b, weft_tanh(layer(&n, part))), x0));
    weft_scan_end(trip);
    const weft_value y = end(b, layer(&n, weft_scan_last(h)));
    give(b, weft_sum(WEFT_SCALAR, weft_square(y)), &n);
}

static void test_parts_around_scans(void)
{
    check("around", build_around, NULL, 12, 1e-13);
}

/* Gradients taken in the body, summed over the trips. */
static void build_accumulated(weft_oracle_build *b)
{
    const net n = net_of(b);
    weft_value by[1];
    const weft_value xs = trips(b);
    const weft_value none = weft_constant(b->graph, WEFT_F64, WEFT_DIMS(in, hidden), 0.0);
    const weft_value trip = weft_scan_begin(b->graph, steps.size), sum = weft_scan_carry(none);
    const weft_value y = end(b, layer(&n, begin(b, weft_scan_each(xs, steps))));
    weft_gradients(weft_sum(WEFT_SCALAR, weft_square(y)), WEFT_VALUES(n.w), by, 0);
    weft_scan_next(sum, weft_add(sum, by[0]));
    weft_scan_end(trip);
    weft_oracle_output(b, weft_scan_last(sum));
}

static void test_gradients_in_a_body(void)
{
    check("accumulated", build_accumulated, NULL, 12, 0);
}

/* ---- what it spares, what it costs --------------------------------------------------------------- */

static weft_usage usage_of(const char *mesh_text, const char *rules, int layers, bool recomputes)
{
    const gpt_shape shape = {.batch = 8,
                             .seq = 32,
                             .layers = layers,
                             .width = 32,
                             .heads = 4,
                             .hidden = 128,
                             .vocab = 32,
                             .dropout = 0.1,
                             .dtype = WEFT_F64,
                             .recomputes = recomputes};
    weft_graph *graph = weft_graph_create(1);
    weft_mesh *mesh = NULL;
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    weft_usage usage = {0};
    weft_error error = {0};
    gpt_model model;
    const weft_value loss = gpt_loss(&shape, graph, &model);
    const weft_value update = weft_sgd(loss, &(weft_optimizer_options){.rate = 0.1});
    CHECK_OK(weft_mesh_plan(mesh_text, &mesh, &error), error);
    CHECK_OK(weft_layout_create(rules, &layout, &error), error);
    if (CHECK_OK(weft_compile(mesh, layout, WEFT_VALUES(loss, update), NULL, &program, &error),
                 error))
        CHECK_OK(weft_plan_usage(program, 0, &usage, &error), error);
    weft_program_destroy(&program);
    weft_layout_destroy(&layout);
    weft_mesh_destroy(&mesh);
    weft_graph_destroy(&graph);
    return usage;
}

/* Of each block one value is kept, what enters it; while one is gone through, what it makes lives beside them. */
static void check_gpt(const char *mesh, const char *rules, int64_t rows)
{
    const weft_usage kept = usage_of(mesh, rules, 8, false), few = usage_of(mesh, rules, 4, true);
    const weft_usage again = usage_of(mesh, rules, 8, true);
    const int64_t enters = rows * 32 * 8;
    CHECK_EQ_INT(again.kept_bytes - few.kept_bytes, 4 * enters);
    CHECK_EQ_INT(again.kept_bytes + again.spared_bytes, kept.kept_bytes);
    CHECK(again.kept_bytes * 5 < kept.kept_bytes);
    const int64_t gradients = again.variable_bytes - few.variable_bytes; /* small ones wait */
    CHECK(again.arena_bytes - few.arena_bytes <= 4 * enters + gradients);
    CHECK(again.arena_bytes * 2 < kept.arena_bytes);
    CHECK(kept.again_flops == 0 && kept.spared_bytes == 0);
    CHECK_CLOSE(again.flops - kept.flops, again.again_flops, 1e-6 * kept.flops);
    CHECK_CLOSE(again.again_flops, 2 * few.again_flops, 1e-6 * kept.flops);
}

static void test_gpt_keeps_what_enters_each_block(void)
{
    check_gpt("data:1", "", 8 * 32);
    check_gpt("data:4", "batch:data", 2 * 32);
}

/* What is kept is decided anew: here weights are gathered for the way back too. */
static void test_a_split_model_keeps_little_too(void)
{
    static const char rules[] = "batch:data,hidden:model,heads:model,vocab:model";
    const weft_usage kept = usage_of("data:2,model:2", rules, 8, false);
    const weft_usage again = usage_of("data:2,model:2", rules, 8, true);
    CHECK(again.kept_bytes * 4 < kept.kept_bytes);
    CHECK(again.arena_bytes * 2 < kept.arena_bytes);
}

/* All products of a block but the last, whose result nobody reads on the way back. */
static void test_flops_are_those_of_the_blocks(void)
{
    const weft_usage again = usage_of("data:1", "", 8, true);
    const double products = 8 * 2.0 * (8 * 32) * (4 * 32 * 32 + 32 * 128);
    CHECK(again.again_flops > products && again.again_flops < 1.5 * products);
}

/* ---- wrong calls --------------------------------------------------------------------------------- */

static void around_nothing(weft_graph *g)
{
    const weft_value x = weft_exp(small(g));
    weft_recompute_begin(x);
    weft_recompute_end(x);
}
static void around_itself(weft_graph *g)
{
    weft_recompute_end(weft_recompute_begin(small(g)));
}
static void end_of_none(weft_graph *g)
{
    weft_recompute_end(weft_exp(small(g)));
}
static void update_in_it(weft_graph *g)
{
    const weft_value v = small(g);
    weft_assign(v, weft_exp(weft_recompute_begin(v)));
}
static void gradients_before_the_end(weft_graph *g)
{
    const weft_value v = small(g), y = weft_exp(weft_recompute_begin(v));
    weft_value d[1];
    weft_gradients(weft_sum(WEFT_SCALAR, y), WEFT_VALUES(v), d, 0);
}
static void scan_ends_before(weft_graph *g)
{
    const weft_value v = small(g), trip = weft_scan_begin(g, 2);
    weft_exp(weft_recompute_begin(v));
    weft_scan_end(trip);
}
static void ends_in_a_scan(weft_graph *g)
{
    const weft_value v = weft_recompute_begin(small(g));
    weft_scan_begin(g, 2);
    weft_recompute_end(weft_exp(v));
}

static void test_wrong_calls_have_their_sentence(void)
{
    static const wrong_call wrongs[] = {
        {around_nothing, "was not made in the part of recompute_begin at recompute_test.c:"},
        {around_itself, "so there is nothing to compute again; pass what the part has made"},
        {end_of_none, "recompute_end at recompute_test.c:"},
        {end_of_none, "no part is open; begin one with weft_recompute_begin"},
        {update_in_it, "nothing is updated in a part that is computed again"},
        {gradients_before_the_end, "has not ended; call weft_recompute_end before"},
        {scan_ends_before, "has not ended; call weft_recompute_end before"},
        {ends_in_a_scan, "is not of the scan's body that is open; call weft_scan_end before"},
    };
    check_wrong_calls(wrongs, sizeof wrongs / sizeof *wrongs, "recompute_test.c");
}

/* What was built before a wrong call stays, and a part that was open is open still. */
static void test_a_part_goes_on_after_an_error(void)
{
    weft_graph *g = weft_graph_create(1);
    weft_value d[1];
    const weft_value v = small(g), x = weft_exp(weft_recompute_begin(v));
    weft_recompute_end(v);
    CHECK_EQ_INT(weft_graph_error(g)->status, WEFT_USAGE);
    weft_graph_clear_error(g);
    const weft_value y = weft_recompute_end(weft_sin(x));
    weft_gradients(weft_sum(WEFT_SCALAR, y), WEFT_VALUES(v), d, 0);
    CHECK_EQ_INT(weft_graph_error(g)->status, WEFT_OK);
    weft_graph_destroy(&g);
}

static void test_an_open_part_is_not_compiled(void)
{
    weft_graph *g = weft_graph_create(1);
    check_not_compiled(weft_exp(weft_recompute_begin(small(g))),
                       "has not ended; call weft_recompute_end");
    weft_graph_destroy(&g);
}

int main(void)
{
    static const char *const meshes[] = {"data:2", "data:3", "model:2", "data:4", "data:2,model:2"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 5, &error), error)) {
        RUN(test_layers);
        RUN(test_parts_in_parts);
        RUN(test_parts_that_hand_out_several_values);
        RUN(test_gradients_of_gradients);
        RUN(test_gradients_by_a_seed);
        RUN(test_two_losses);
        RUN(test_parts_in_a_body);
        RUN(test_parts_around_scans);
        RUN(test_gradients_in_a_body);
        RUN(test_gpt_keeps_what_enters_each_block);
        RUN(test_a_split_model_keeps_little_too);
        RUN(test_flops_are_those_of_the_blocks);
        RUN(test_wrong_calls_have_their_sentence);
        RUN(test_a_part_goes_on_after_an_error);
        RUN(test_an_open_part_is_not_compiled);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
