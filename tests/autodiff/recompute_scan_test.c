/* RANKS: 2 4 */
/* recompute_scan_test: a scan in a part is made again, with the same random numbers, conditions and scans in it: gradients are those
 * without the part, and of a scan in chunks, each a part, what is kept is what enters them.
 */
#include "again.h"

static const weft_dim turns = {"turns", 3}, steps = {"steps", 4}, both = {"both", 12};
static const weft_compile_options once = {.unroll = 1}, unrolled = {.unroll = INT64_MAX};

static void check_both(const char *name, void (*build)(weft_oracle_build *), int places)
{
    check_as(name, build, NULL, places, 1e-12, &once);
    check_as(name, build, NULL, places, 1e-12, &unrolled);
}

static weft_value square_sum(weft_value x)
{
    return weft_sum(WEFT_SCALAR, weft_square(x));
}

static weft_value trips(weft_oracle_build *b)
{
    return weft_oracle_input(b, WEFT_F64, WEFT_DIMS(turns, steps, batch, in), -1.0, 1.0);
}

/* Trips in chunks: a scan over chunks whose body is a part around a scan over the trips of one. Of each the trips are stacked
 * too, and the part has ops of its own before and behind. */
static void build_chunks(weft_oracle_build *b)
{
    const net n = net_of(b);
    const weft_value xs = trips(b), outer = weft_scan_begin(b->graph, turns.size);
    const weft_value h = weft_scan_carry(n.x), chunk = weft_scan_each(xs, turns);
    const weft_value entering = weft_tanh(begin(b, h)), gain = weft_exp(entering);
    const weft_value trip = weft_scan_begin(b->graph, steps.size);
    const weft_value g = weft_scan_carry(entering);
    const weft_value next =
        weft_tanh(weft_mul(layer(&n, weft_add(g, weft_scan_each(chunk, steps))), gain));
    weft_scan_next(g, next);
    weft_scan_end(trip);
    const weft_value made = weft_scan_stack(next, steps);
    weft_scan_next(h, end(b, weft_mul(weft_scan_last(g), weft_sin(gain))));
    weft_scan_end(outer);
    const weft_value all = weft_scan_stack(made, turns), last = weft_scan_last(h);
    give(b, weft_add(square_sum(all), weft_sum(WEFT_SCALAR, weft_exp(last))), &n);
}

static void test_a_scan_in_chunks(void)
{
    check_both("chunks", build_chunks, 8);
    check_as("chunks, by names", build_chunks, "batch:data?,hidden:model?", 8, 1e-12, &once);
}

/* The same where nothing is around the part. */
static void build_alone(weft_oracle_build *b)
{
    const net n = net_of(b);
    const weft_value xs = trips(b), x0 = weft_sin(begin(b, n.x));
    const weft_value trip = weft_scan_begin(b->graph, turns.size), h = weft_scan_carry(x0);
    const weft_value x = weft_sum(WEFT_DIMS(batch, in), weft_scan_each(xs, turns));
    weft_scan_next(h, weft_mul(layer(&n, weft_add(h, x)), x0));
    weft_scan_end(trip);
    give(b, square_sum(end(b, weft_tanh(weft_scan_last(h)))), &n);
}

static void test_a_part_around_a_scan(void)
{
    check_both("alone", build_alone, 8);
}

/* A part around scans in scans, with parts in their bodies, and a condition. */
static void build_deep(weft_oracle_build *b)
{
    const net n = net_of(b);
    const weft_value xs = trips(b), most = weft_constant(b->graph, WEFT_I32, WEFT_SCALAR, 3.0);
    const weft_value x0 = weft_sin(begin(b, n.x));
    const weft_value outer = weft_scan_begin(b->graph, turns.size), h = weft_scan_carry(x0);
    const weft_value chunk = weft_scan_each(xs, turns), g0 = weft_mul(h, x0);
    const weft_value trip = weft_scan_begin(b->graph, steps.size), g = weft_scan_carry(g0);
    weft_scan_while(weft_less(trip, most));
    const weft_value x = weft_add(g, weft_scan_each(chunk, steps));
    const weft_value next = end(b, weft_tanh(layer(&n, weft_mul(begin(b, x), h))));
    weft_scan_next(g, next);
    weft_scan_end(trip);
    const weft_value made = weft_scan_stack(next, steps);
    weft_scan_next(h, weft_tanh(weft_scan_last(g)));
    weft_scan_end(outer);
    const weft_value all = weft_scan_stack(made, turns);
    give(b, square_sum(end(b, weft_mul(weft_sum(WEFT_DIMS(batch, in), all), weft_scan_last(h)))),
         &n);
}

static void test_parts_around_scans_in_scans(void)
{
    check_both("deep", build_deep, 8);
}

/* Gradients of gradients, through the scan that was made again. */
static void build_second(weft_oracle_build *b)
{
    const net n = net_of(b);
    const weft_value xs = trips(b), outer = weft_scan_begin(b->graph, turns.size);
    const weft_value h = weft_scan_carry(n.x), chunk = weft_scan_each(xs, turns);
    const weft_value entering = begin(b, h), trip = weft_scan_begin(b->graph, steps.size);
    const weft_value g = weft_scan_carry(entering), x = weft_scan_each(chunk, steps);
    const weft_value mixed = weft_einsum(WEFT_DIMS(batch, hidden), weft_add(g, x), n.w);
    const weft_value next =
        weft_mul(weft_tanh(weft_einsum(WEFT_DIMS(batch, in), weft_sin(mixed), n.u)), n.gain);
    weft_scan_next(g, weft_dropout(next, 0.2));
    weft_scan_end(trip);
    weft_scan_next(h, end(b, weft_tanh(weft_scan_last(g))));
    weft_scan_end(outer);
    weft_value first[2];
    weft_gradients(square_sum(weft_scan_last(h)), WEFT_VALUES(n.x, n.w), first, 0);
    give(b, weft_add(square_sum(first[0]), square_sum(first[1])), &n);
}

static void test_gradients_of_gradients(void)
{
    check_both("second", build_second, 8);
}

/* A scan over a dim, whose random numbers are those of the whole. */
static void build_over(weft_oracle_build *b)
{
    const weft_dim rows = {"both", 3};
    const weft_value x = weft_oracle_input(b, WEFT_F64, WEFT_DIMS(both, in), 0.5, 1.0);
    const weft_value y = weft_sin(begin(b, x));
    const weft_value xs = weft_reshape(y, WEFT_DIMS(rows, steps, in));
    const weft_value trip = weft_scan_begin_over(b->graph, steps.size, both);
    const weft_value part = weft_square(weft_dropout(weft_scan_each(xs, steps), 0.4));
    weft_scan_end(trip);
    const weft_value z = end(b, weft_scan_stack(part, steps));
    weft_value d[1];
    weft_oracle_output(b, weft_gradients(square_sum(z), WEFT_VALUES(x), d, 0));
}

static void test_a_scan_over_a_dim_is_made_again(void)
{
    check_both("over", build_over, 8);
}

/* ---- what it spares ------------------------------------------------------------------------------- */

/* `chunks` chunks of as many trips, each through several layers. */
static weft_usage usage_of(int64_t chunks, bool recomputes)
{
    const weft_dim outer_dim = {"outer", chunks}, inner_dim = {"inner", chunks};
    weft_oracle_build b = {.graph = weft_graph_create(1), .argument = &recomputes};
    weft_usage usage = {0};
    weft_error error = {0};
    weft_program *program = NULL;
    weft_value d[1];
    const weft_value xs =
        weft_oracle_input(&b, WEFT_F64, WEFT_DIMS(outer_dim, inner_dim, batch, in), -1.0, 1.0);
    const weft_value x0 = weft_oracle_input(&b, WEFT_F64, WEFT_DIMS(batch, in), -1.0, 1.0);
    const weft_value outer = weft_scan_begin(b.graph, chunks), h = weft_scan_carry(x0);
    const weft_value chunk = weft_scan_each(xs, outer_dim),
                     entering = weft_scale(begin(&b, h), 2.0);
    const weft_value trip = weft_scan_begin(b.graph, chunks), g = weft_scan_carry(entering);
    weft_value y = weft_add(g, weft_scan_each(chunk, inner_dim));
    for (int i = 0; i < 4; i++)
        y = weft_mul(weft_sin(y), weft_exp(y));
    weft_scan_next(g, weft_tanh(y));
    weft_scan_end(trip);
    weft_scan_next(h, end(&b, weft_scale(weft_scan_last(g), 0.5)));
    weft_scan_end(outer);
    weft_gradients(square_sum(weft_scan_last(h)), WEFT_VALUES(x0), d, 0);
    if (CHECK_OK(weft_compile(oracle.alone, NULL, WEFT_VALUES(d[0]), &once, &program, &error),
                 error))
        CHECK_OK(weft_plan_usage(program, 0, &usage, &error), error);
    weft_program_destroy(&program);
    weft_graph_destroy(&b.graph);
    return usage;
}

/* One value of a chunk is kept in place of all those of each of its trips. */
static void test_of_a_chunk_what_enters_it_is_kept(void)
{
    const int64_t chunks = 16, one = batch.size * in.size * 8;
    const weft_usage kept = usage_of(chunks, false), again = usage_of(chunks, true);
    CHECK(kept.arena_bytes > 5 * chunks * chunks * one);
    CHECK(again.arena_bytes < 20 * chunks * one);
    CHECK(again.again_flops > 0 && kept.again_flops == 0);
}

int main(void)
{
    static const char *const meshes[] = {"data:2", "data:3", "model:2", "data:4", "data:2,model:2"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 5, &error), error)) {
        RUN(test_a_scan_in_chunks);
        RUN(test_a_part_around_a_scan);
        RUN(test_parts_around_scans_in_scans);
        RUN(test_gradients_of_gradients);
        RUN(test_a_scan_over_a_dim_is_made_again);
        RUN(test_of_a_chunk_what_enters_it_is_kept);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
