/* RANKS: 2 4 */
/* cond_test: one of two bodies is done, and its gradient taken: what a choice between both gives, in scans and in each other,
 * under placements; trips that a flag leaves out leave what is carried as it is.
 */
#include "pairs.h"

static const weft_dim batch = {"batch", 5}, hidden = {"hidden", 4}, to = {"to", 4};
static const weft_dim steps = {"steps", 5};

typedef struct net {
    weft_value xs, h0, u, flags;
} net;

static net net_of(weft_oracle_build *b)
{
    return (net){weft_oracle_input(b, WEFT_F64, WEFT_DIMS(steps, batch, hidden), 0.5, 1.0),
                 weft_oracle_input(b, WEFT_F64, WEFT_DIMS(batch, hidden), -1.0, 1.0),
                 weft_oracle_input(b, WEFT_F64, WEFT_DIMS(hidden, to), -1.0, 1.0),
                 weft_oracle_input(b, WEFT_I32, WEFT_DIMS(steps), 0, 2)};
}

static void output_pair(weft_oracle_build *b, weft_value x, weft_value y)
{
    weft_oracle_output(b, x);
    weft_oracle_output(b, y);
}

/* Pairs of two losses, and of their gradients. */
static void output_losses(weft_oracle_build *b, const net *n, weft_value loss, weft_value same)
{
    weft_value da[3], dm[3];
    weft_gradients(loss, WEFT_VALUES(n->xs, n->h0, n->u), da, 0);
    weft_gradients(same, WEFT_VALUES(n->xs, n->h0, n->u), dm, 0);
    output_pair(b, loss, same);
    for (int i = 0; i < 3; i++)
        output_pair(b, da[i], dm[i]);
}

static weft_value square_sum(weft_value h)
{
    return weft_sum(WEFT_SCALAR, weft_square(h));
}

/* Two ways on: one with a product, whose operands are exchanged, and one without. */
static weft_value one_way(weft_value h, weft_value x, weft_value u)
{
    const weft_value mixed = weft_rename(weft_einsum(WEFT_DIMS(batch, to), h, u), to, hidden);
    return weft_tanh(weft_add(mixed, x));
}
static weft_value other_way(weft_value h, weft_value x)
{
    return weft_mul(weft_scale(h, 0.5), weft_log(x)); /* no slope where x is 0 */
}

static weft_value chosen(weft_value flag, weft_value h, weft_value x, weft_value u)
{
    const weft_value yes = weft_cond_begin(flag), a = one_way(h, x, u);
    const weft_value no = weft_cond_else(yes), b = other_way(h, x);
    weft_cond_end(no);
    return weft_cond(a, b);
}

/* ---- one condition ------------------------------------------------------------------------------- */

static void build_one(weft_oracle_build *b)
{
    const net n = net_of(b);
    const weft_value x = element_of(n.xs, steps, 1);
    const weft_value limit =
        weft_constant(b->graph, WEFT_F64, WEFT_SCALAR, *(const double *)b->argument);
    const weft_value flag = weft_less(limit, square_sum(n.h0));
    const weft_value y = chosen(flag, n.h0, x, n.u);
    const weft_value same = weft_where(flag, one_way(n.h0, x, n.u), other_way(n.h0, x));
    /* all depends on all, whichever way it goes */
    const weft_value all = weft_scale(weft_add(square_sum(n.u), square_sum(n.xs)), 0.1);
    output_losses(b, &n, weft_add(square_sum(y), all), weft_add(square_sum(same), all));
    output_pair(b, y, same);
}

static void test_one_of_two_bodies_is_done(void)
{
    static const double below = 0.1, above = 1e3;
    check_pairs(&(weft_oracle_case){"the first", build_one, &below}, 10);
    check_pairs(&(weft_oracle_case){"the second", build_one, &above}, 10);
    check_pairs(&(weft_oracle_case){"by batch", build_one, &below, "batch:data?,hidden:model?"}, 8);
}

static void build_kept(weft_oracle_build *b)
{
    const net n = net_of(b);
    weft_value y = n.h0, same = n.h0;
    for (int t = 0; t < 3; t++) {
        const weft_value flag = element_of(n.flags, steps, t);
        const weft_value yes = weft_cond_begin(flag),
                         a = one_way(y, element_of(n.xs, steps, t), n.u);
        weft_cond_end(yes);
        y = weft_cond(a, y);
        same = weft_where(flag, one_way(same, element_of(n.xs, steps, t), n.u), same);
    }
    output_losses(b, &n, square_sum(y), square_sum(same));
}

/* The second body's in place of the first's: where the flag is 0. */
static void build_swapped(weft_oracle_build *b)
{
    const net n = net_of(b);
    weft_value y = n.h0, same = n.h0;
    for (int t = 0; t < 3; t++) {
        const weft_value flag = element_of(n.flags, steps, t);
        const weft_value yes = weft_cond_begin(flag), no = weft_cond_else(yes);
        const weft_value c = one_way(y, element_of(n.xs, steps, t), n.u);
        weft_cond_end(no);
        y = weft_cond(y, c);
        same = weft_where(flag, same, one_way(same, element_of(n.xs, steps, t), n.u));
    }
    output_losses(b, &n, square_sum(y), square_sum(same));
}

static void test_a_value_around_stands_for_a_body(void)
{
    check_pairs(&(weft_oracle_case){.name = "kept", .build = build_kept}, 8);
    check_pairs(&(weft_oracle_case){.name = "swapped", .build = build_swapped}, 8);
}

/* ---- in scans ------------------------------------------------------------------------------------- */

static void build_scanned(weft_oracle_build *b)
{
    const net n = net_of(b);
    const weft_value trip = weft_scan_begin(b->graph, steps.size), h = weft_scan_carry(n.h0);
    weft_scan_next(h, chosen(weft_scan_each(n.flags, steps), h, weft_scan_each(n.xs, steps), n.u));
    weft_scan_end(trip);
    const weft_value hs = weft_scan_stack(h, steps);
    weft_value hw = n.h0, loss = {0};
    for (int64_t t = 0; t < steps.size; t++) {
        const weft_value x = element_of(n.xs, steps, t), flag = element_of(n.flags, steps, t);
        loss = t == 0 ? square_sum(hw) : weft_add(loss, square_sum(hw));
        hw = weft_where(flag, one_way(hw, x, n.u), other_way(hw, x));
    }
    output_losses(b, &n, weft_add(square_sum(hs), square_sum(weft_scan_last(h))),
                  weft_add(loss, square_sum(hw)));
}

static void test_each_trip_goes_its_own_way(void)
{
    check_pairs(&(weft_oracle_case){.name = "scanned", .build = build_scanned}, 10);
}

/* A condition in a body of another, and a scan in it. */
static weft_value inner(weft_value flag, weft_value h, weft_value x, weft_value u)
{
    const weft_value yes = weft_cond_begin(flag), trip = weft_scan_begin(h.graph, 2);
    const weft_value g = weft_scan_carry(h);
    weft_scan_next(g, chosen(trip, g, x, u));
    weft_scan_end(trip);
    const weft_value a = weft_scan_last(g), no = weft_cond_else(yes);
    const weft_value c = other_way(h, x);
    weft_cond_end(no);
    return weft_cond(a, c);
}

static void build_nested(weft_oracle_build *b)
{
    const net n = net_of(b);
    weft_value y = n.h0, same = n.h0;
    for (int t = 0; t < 3; t++) {
        const weft_value x = element_of(n.xs, steps, t);
        const weft_value flag = element_of(n.flags, steps, t);
        y = inner(flag, y, x, n.u);
        same = weft_where(flag, one_way(other_way(same, x), x, n.u), other_way(same, x));
    }
    output_losses(b, &n, square_sum(y), square_sum(same));
}

static void test_conditions_stand_in_each_other(void)
{
    check_pairs(&(weft_oracle_case){.name = "nested", .build = build_nested}, 8);
}

/* ---- trips left out ------------------------------------------------------------------------------- */

static void build_left_out(weft_oracle_build *b)
{
    const net n = net_of(b);
    const weft_value trip = weft_scan_begin(b->graph, steps.size), h = weft_scan_carry(n.h0);
    weft_scan_if(weft_scan_each(n.flags, steps));
    const weft_value x = weft_scan_each(n.xs, steps), next = one_way(h, x, n.u);
    const weft_value side = other_way(h, x);
    weft_scan_next(h, next);
    weft_scan_end(trip);
    weft_value hw = n.h0;
    weft_value loss = weft_constant(b->graph, WEFT_F64, WEFT_SCALAR, 0.0), none = loss;
    for (int64_t t = 0; t < steps.size; t++) {
        const weft_value xw = element_of(n.xs, steps, t), flag = element_of(n.flags, steps, t);
        loss = weft_add(loss, weft_where(flag, square_sum(other_way(hw, xw)), none));
        hw = weft_where(flag, one_way(hw, xw, n.u), hw);
    }
    output_losses(b, &n,
                  weft_add(square_sum(weft_scan_stack(side, steps)), square_sum(weft_scan_last(h))),
                  weft_add(loss, square_sum(hw)));
}

static void test_trips_are_left_out(void)
{
    check_pairs(&(weft_oracle_case){.name = "left out", .build = build_left_out}, 10);
}

int main(void)
{
    static const char *const meshes[] = {"data:2", "data:3", "model:2", "data:4", "data:2,model:2"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 5, &error), error)) {
        RUN(test_one_of_two_bodies_is_done);
        RUN(test_a_value_around_stands_for_a_body);
        RUN(test_each_trip_goes_its_own_way);
        RUN(test_conditions_stand_in_each_other);
        RUN(test_trips_are_left_out);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
