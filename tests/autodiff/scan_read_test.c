/* RANKS: 2 */
/* scan_read_test: gradients of a scan go through what is read of it alone: what is carried and nobody reads is, to them, as if it was
 * not there: it brings no NaN, and no work. In scans, in scans in scans, in conditions, and in parts that are computed again.
 */
#include "pairs.h"
#include "weft/program.h"

static const weft_dim batch = {"batch", 5}, steps = {"steps", 4}, turns = {"turns", 3};

/* Every element of every output is a number: what is no number is no maximum of any comparison. */
static void check_read(const char *name, void (*build)(weft_oracle_build *), int places)
{
    const weft_oracle_case what = {.name = name, .build = build};
    weft_oracle_result r;
    weft_error error = {0};
    check_pairs(&what, places);
    if (!CHECK_OK(weft_oracle_run(oracle.alone, &what, NULL, &r, &error), error)) return;
    for (int o = 0; o < r.n_outputs; o++)
        for (int64_t k = 0; k < r.count[o]; k++)
            if (!CHECK(isfinite(r.data[o][k]))) fprintf(stderr, "%s, output %d\n", name, o);
    weft_oracle_free(&r);
}

/* NaN where x is below 1, as all of it is; so is its gradient. */
static weft_value no_number(weft_value x)
{
    return weft_sqrt(weft_shift(x, -1.0));
}

static weft_value square_sum(weft_value x)
{
    return weft_sum(WEFT_SCALAR, weft_square(x));
}

typedef struct net {
    weft_value xs, a0, w;
} net;

static net net_of(weft_oracle_build *b)
{
    return (net){weft_oracle_input(b, WEFT_F64, WEFT_DIMS(steps, turns, batch), 0.1, 0.9),
                 weft_oracle_input(b, WEFT_F64, WEFT_DIMS(batch), 0.1, 0.9),
                 weft_oracle_input(b, WEFT_F64, WEFT_DIMS(batch), 0.1, 0.9)};
}

typedef weft_value (*losing)(const net *n, bool has_dead);

/* A loss with a dead carry and one without, and the gradients of both. */
static void output_both(weft_oracle_build *b, losing loss_of)
{
    const net n = net_of(b);
    weft_value with[3], without[3];
    const weft_value loss = loss_of(&n, true), same = loss_of(&n, false);
    weft_gradients(loss, WEFT_VALUES(n.xs, n.a0, n.w), with, 0);
    weft_gradients(same, WEFT_VALUES(n.xs, n.a0, n.w), without, 0);
    weft_oracle_output(b, loss);
    weft_oracle_output(b, same);
    for (int i = 0; i < 3; i++) {
        weft_oracle_output(b, with[i]);
        weft_oracle_output(b, without[i]);
    }
}
#define BUILD_BOTH(loss)                                                                           \
    static void build_##loss(weft_oracle_build *b)                                                 \
    {                                                                                              \
        output_both(b, loss);                                                                      \
    }

/* ---- one scan -------------------------------------------------------------------------------------- */

/* What is dead is carried from another dead one, which is carried round. */
static weft_value plain(const net *n, bool has_dead)
{
    const weft_value first = no_number(n->a0);
    const weft_value trip = weft_scan_begin(n->xs.graph, steps.size), a = weft_scan_carry(n->a0);
    const weft_value x = weft_sum(WEFT_DIMS(batch), weft_scan_each(n->xs, steps));
    if (has_dead) {
        const weft_value b = weft_scan_carry(first), c = weft_scan_carry(n->a0);
        weft_scan_next(b, weft_add(c, no_number(weft_scale(x, 0.1))));
        weft_scan_next(c, weft_mul(weft_add(b, a), n->w));
    }
    weft_scan_next(a, weft_add(weft_mul(a, n->w), x));
    weft_scan_end(trip);
    return square_sum(weft_scan_last(a));
}
BUILD_BOTH(plain)

/* Nobody reads what it begins with: each trip sets it anew. */
static weft_value beginning(const net *n, bool has_dead)
{
    const weft_value first = has_dead ? no_number(n->a0) : weft_scale(n->w, 0.5);
    const weft_value trip = weft_scan_begin(n->xs.graph, steps.size), a = weft_scan_carry(first);
    const weft_value x = weft_sum(WEFT_DIMS(batch), weft_scan_each(n->xs, steps));
    weft_scan_next(a, weft_mul(x, weft_mul(n->w, n->a0)));
    weft_scan_end(trip);
    return square_sum(weft_scan_last(a));
}
BUILD_BOTH(beginning)

/* The row of a table of what JAX gives: a' = .7 a + e, b' = sqrt(e - 1), the loss the last a. */
static void build_example(weft_oracle_build *b)
{
    static const double e[3] = {0.5, 2, 0.3}, by_hand[3] = {0.49, 0.7, 1};
    const weft_value zero = weft_constant(b->graph, WEFT_F64, WEFT_SCALAR, 0.0);
    weft_value es = weft_constant(b->graph, WEFT_F64, WEFT_DIMS(turns), 0.0), hand = es, by[1];
    const weft_value at = weft_iota(b->graph, WEFT_I32, turns);
    for (int i = 0; i < 3; i++) {
        const weft_value here = weft_equal(at, weft_constant(b->graph, WEFT_I32, WEFT_SCALAR, i));
        es = weft_where(here, weft_constant(b->graph, WEFT_F64, WEFT_SCALAR, e[i]), es);
        hand = weft_where(here, weft_constant(b->graph, WEFT_F64, WEFT_SCALAR, by_hand[i]), hand);
    }
    const weft_value trip = weft_scan_begin(b->graph, turns.size);
    const weft_value a = weft_scan_carry(zero), c = weft_scan_carry(zero);
    const weft_value one = weft_scan_each(es, turns);
    weft_scan_next(a, weft_add(weft_scale(a, 0.7), one));
    weft_scan_next(c, no_number(one));
    weft_scan_end(trip);
    weft_gradients(weft_scan_last(a), WEFT_VALUES(es), by, 0);
    weft_oracle_output(b, by[0]);
    weft_oracle_output(b, hand);
}

static void test_what_nobody_reads_brings_no_nan(void)
{
    check_read("example", build_example, 4);
    check_read("plain", build_plain, 8);
    check_read("beginning", build_beginning, 8);
}

/* ---- in each other ----------------------------------------------------------------------------------- */

/* The inner scan's dead carry begins with the outer one's, and goes back into it; what the inner one begins with is set anew. */
static weft_value nested(const net *n, bool has_dead)
{
    const weft_value first = no_number(n->w);
    const weft_value outer = weft_scan_begin(n->xs.graph, steps.size), a = weft_scan_carry(n->a0);
    const weft_value dead = has_dead ? weft_scan_carry(first) : n->w;
    const weft_value chunk = weft_scan_each(n->xs, steps);
    const weft_value trip = weft_scan_begin(n->xs.graph, turns.size), g = weft_scan_carry(a);
    const weft_value h = weft_scan_carry(dead), x = weft_scan_each(chunk, turns);
    const weft_value inner_dead = has_dead ? weft_scan_carry(dead) : dead;
    weft_scan_next(g, weft_add(weft_mul(g, n->w), x));
    weft_scan_next(h, weft_mul(g, x));
    if (has_dead) weft_scan_next(inner_dead, no_number(weft_mul(inner_dead, x)));
    weft_scan_end(trip);
    if (has_dead)
        weft_scan_next(dead, weft_add(weft_scan_last(inner_dead), no_number(weft_scan_last(g))));
    weft_scan_next(a, weft_add(weft_scale(weft_scan_last(g), 0.3), weft_scan_last(h)));
    weft_scan_end(outer);
    return square_sum(weft_scan_last(a));
}
BUILD_BOTH(nested)

/* A condition in the body, whose first body has a scan; and what it gives that is dead. */
static weft_value conditional(const net *n, bool has_dead)
{
    const weft_value outer = weft_scan_begin(n->xs.graph, steps.size), a = weft_scan_carry(n->a0);
    const weft_value dead = has_dead ? weft_scan_carry(n->w) : n->w;
    const weft_value x = weft_sum(WEFT_DIMS(batch), weft_scan_each(n->xs, steps));
    const weft_value even =
        weft_equal(weft_mod(outer, weft_constant(n->xs.graph, WEFT_I32, WEFT_SCALAR, 2.0)),
                   weft_constant(n->xs.graph, WEFT_I32, WEFT_SCALAR, 0.0));
    const weft_value yes = weft_cond_begin(even);
    const weft_value g = weft_scan_carry(a), own = has_dead ? weft_scan_carry(dead) : dead;
    const weft_value p = weft_mul(a, n->w), p_dead = no_number(own);
    weft_scan_next(g, weft_mul(g, x));
    if (has_dead) weft_scan_next(own, no_number(own));
    const weft_value no = weft_cond_else(yes), q = weft_mul(a, x), q_dead = no_number(dead);
    weft_cond_end(no);
    weft_scan_next(a, weft_add(weft_cond(p, q), weft_scan_last(g)));
    if (has_dead) weft_scan_next(dead, weft_add(weft_cond(p_dead, q_dead), weft_scan_last(own)));
    weft_scan_end(outer);
    return square_sum(weft_scan_last(a));
}
BUILD_BOTH(conditional)

/* Parts in the body and around the scan. */
static weft_value again(const net *n, bool has_dead)
{
    const weft_value first = weft_tanh(weft_recompute_begin(n->a0)), first_dead = no_number(first);
    const weft_value trip = weft_scan_begin(n->xs.graph, steps.size), a = weft_scan_carry(first);
    const weft_value dead = has_dead ? weft_scan_carry(first_dead) : n->w;
    const weft_value x = weft_sum(WEFT_DIMS(batch), weft_scan_each(n->xs, steps));
    const weft_value part = weft_recompute_begin(weft_mul(a, n->w)), sum = weft_add(part, x);
    const weft_value next_dead = weft_add(no_number(part), dead);
    const weft_value next = weft_recompute_end(weft_sin(sum));
    weft_scan_next(a, next);
    if (has_dead) weft_scan_next(dead, next_dead);
    weft_scan_end(trip);
    return square_sum(weft_recompute_end(weft_exp(weft_scan_last(a))));
}
BUILD_BOTH(again)

/* Of a scan that may end at once, what is left is what it began with. */
static weft_value while_some(const net *n, bool has_dead)
{
    const weft_value first = weft_square(n->a0);
    const weft_value trip = weft_scan_begin(n->xs.graph, steps.size), a = weft_scan_carry(first);
    const weft_value dead = has_dead ? weft_scan_carry(n->w) : n->w;
    const weft_value x = weft_sum(WEFT_DIMS(batch), weft_scan_each(n->xs, steps));
    weft_scan_while(weft_less(trip, weft_constant(n->xs.graph, WEFT_I32, WEFT_SCALAR, 0.0)));
    weft_scan_next(a, weft_mul(n->w, x));
    if (has_dead) weft_scan_next(dead, no_number(x));
    weft_scan_end(trip);
    const weft_value all = weft_scale(weft_add(square_sum(n->w), square_sum(n->xs)), 0.1);
    return weft_add(square_sum(weft_scan_last(a)), all);
}
BUILD_BOTH(while_some)

static void test_in_scans_conditions_and_parts(void)
{
    check_read("nested", build_nested, 8);
    check_read("conditional", build_conditional, 8);
    check_read("again", build_again, 8);
    check_read("while", build_while_some, 8);
}

/* ---- what it costs, and what is asked ------------------------------------------------------------------ */

static double flops_of(bool has_dead)
{
    static const weft_dim m = {"m", 64}, k = {"k", 64}, n = {"n", 64};
    weft_error error = WEFT_NO_ERROR;
    weft_usage usage = {0};
    weft_program *program = NULL;
    weft_graph *graph = weft_graph_create(1);
    weft_value es = weft_input(graph, "es", WEFT_F64, WEFT_DIMS(turns)), by[1];
    const weft_value square = weft_input(graph, "square", WEFT_F64, WEFT_DIMS(m, n));
    const weft_value zero = weft_constant(graph, WEFT_F64, WEFT_SCALAR, 0.0);
    const weft_value trip = weft_scan_begin(graph, turns.size), a = weft_scan_carry(zero);
    const weft_value e = weft_scan_each(es, turns);
    weft_scan_next(a, weft_add(weft_scale(a, 0.7), e));
    if (has_dead) {
        const weft_value dead = weft_scan_carry(square);
        const weft_value left = weft_rename(dead, n, k), right = weft_rename(dead, m, k);
        weft_scan_next(dead, weft_mul(weft_einsum(WEFT_DIMS(m, n), left, right), e));
    }
    weft_scan_end(trip);
    weft_gradients(weft_scan_last(a), WEFT_VALUES(es), by, 0);
    CHECK_OK(weft_compile(oracle.alone, NULL, WEFT_VALUES(by[0]), &once, &program, &error), error);
    CHECK_OK(weft_plan_usage(program, 0, &usage, &error), error);
    (void)!weft_program_destroy(&program);
    weft_graph_destroy(&graph);
    return usage.flops;
}

static void test_a_dead_carry_costs_nothing(void)
{
    const double without = flops_of(false);
    CHECK(without > 0);
    CHECK(flops_of(true) == without);
}

/* What nobody reads does not depend, and is not trained. */
static void test_what_nobody_reads_is_not_trained(void)
{
    weft_graph *graph = weft_graph_create(1);
    const weft_value w =
        weft_variable(graph, "w", WEFT_F64, WEFT_DIMS(batch), weft_constant_of(1.0));
    const weft_value u =
        weft_variable(graph, "u", WEFT_F64, WEFT_DIMS(batch), weft_constant_of(1.0));
    const weft_value trip = weft_scan_begin(graph, steps.size);
    const weft_value a = weft_scan_carry(w), dead = weft_scan_carry(u);
    weft_value by[2], found[2];
    weft_scan_next(a, weft_scale(a, 0.5));
    weft_scan_next(dead, weft_add(dead, a));
    weft_scan_end(trip);
    const weft_value loss = square_sum(weft_scan_last(a));
    CHECK_EQ_INT(weft_trainable(loss, found, 2), 1);
    CHECK_EQ_INT(found[0].id, w.id);
    CHECK(weft_gradients(loss, WEFT_VALUES(w), by, 0).id != 0);
    CHECK(weft_gradients(loss, WEFT_VALUES(w, u), by, WEFT_ZEROS_ALLOWED).id != 0);
    CHECK_EQ_INT(weft_gradients(loss, WEFT_VALUES(u), by, 0).id, 0);
    CHECK_TEXT(weft_graph_error(graph)->message, "does not depend, through floats, on u");
    weft_graph_destroy(&graph);
}

int main(void)
{
    static const char *const meshes[] = {"data:2", "data:3", "data:2,model:2"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 3, &error), error)) {
        RUN(test_what_nobody_reads_brings_no_nan);
        RUN(test_in_scans_conditions_and_parts);
        RUN(test_a_dead_carry_costs_nothing);
        RUN(test_what_nobody_reads_is_not_trained);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
