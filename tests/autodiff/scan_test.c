/* RANKS: 2 4 */
/* scan_test: a scan is what its body is, written down once for every trip; its gradients, and theirs, are those of the
 * program written down, under placements too; random numbers are others in each trip and the same on the way back.
 */
#include "pairs.h"

static const weft_dim batch = {"batch", 5}, in = {"in", 3}, hidden = {"hidden", 4}, to = {"to", 4};
static const weft_dim steps = {"steps", 4}, turns = {"turns", 3};

/* ---- against the program written down ---------------------------------------------------------- */

/* One step of a recurrent network. */
static weft_value step(weft_value h, weft_value x, weft_value w, weft_value u)
{
    const weft_value mixed = weft_einsum(WEFT_DIMS(batch, to), h, u);
    return weft_tanh(
        weft_add(weft_einsum(WEFT_DIMS(batch, hidden), x, w), weft_rename(mixed, to, hidden)));
}

typedef struct net {
    weft_value xs, h0, w, u;
} net;

static net net_of(weft_oracle_build *b)
{
    return (net){weft_oracle_input(b, WEFT_F64, WEFT_DIMS(steps, batch, in), -1.0, 1.0),
                 weft_oracle_input(b, WEFT_F64, WEFT_DIMS(batch, hidden), -1.0, 1.0),
                 weft_oracle_input(b, WEFT_F64, WEFT_DIMS(in, hidden), -1.0, 1.0),
                 weft_oracle_input(b, WEFT_F64, WEFT_DIMS(hidden, to), -1.0, 1.0)};
}

/* The losses are of all hidden states, with weights that tell the steps apart, and of the last one. */
static weft_value loss_scanned(const net *n, weft_value *hs, weft_value *last)
{
    const weft_value trip = weft_scan_begin(n->xs.graph, steps.size);
    const weft_value h = weft_scan_carry(n->h0);
    const weft_value next = step(h, weft_scan_each(n->xs, steps), n->w, n->u);
    weft_scan_next(h, next);
    weft_scan_end(trip);
    *hs = weft_scan_stack(next, steps);
    *last = weft_scan_last(h);
    const weft_value weight = weft_cast(weft_iota(n->xs.graph, WEFT_I32, steps), WEFT_F64);
    return weft_add(weft_sum(WEFT_SCALAR, weft_mul(weft_square(*hs), weight)),
                    weft_sum(WEFT_SCALAR, weft_exp(*last)));
}

static weft_value loss_written(const net *n, weft_value *last)
{
    weft_value h = n->h0, loss = {0};
    for (int64_t t = 0; t < steps.size; t++) {
        h = step(h, element_of(n->xs, steps, t), n->w, n->u);
        const weft_value part = weft_scale(weft_sum(WEFT_SCALAR, weft_square(h)), (double)t);
        loss = t == 0 ? part : weft_add(loss, part);
    }
    *last = h;
    return weft_add(loss, weft_sum(WEFT_SCALAR, weft_exp(h)));
}

static void build_recurrent(weft_oracle_build *b)
{
    const net n = net_of(b);
    const weft_values by = WEFT_VALUES(n.xs, n.h0, n.w, n.u);
    weft_value hs, last, last_written, scanned[4], written[4];
    const weft_value loss = loss_scanned(&n, &hs, &last), same = loss_written(&n, &last_written);
    weft_gradients(loss, by, scanned, 0);
    weft_gradients(same, by, written, 0);
    weft_oracle_output(b, loss);
    weft_oracle_output(b, same);
    weft_oracle_output(b, element_of(hs, steps, steps.size - 1));
    weft_oracle_output(b, last_written);
    for (int i = 0; i < 4; i++) {
        weft_oracle_output(b, scanned[i]);
        weft_oracle_output(b, written[i]);
    }
}

static void test_a_recurrent_network_is_what_is_written_down(void)
{
    check_pairs_within(&(weft_oracle_case){.name = "recurrent", .build = build_recurrent}, 64,
                       1e-15);
    check_pairs_within(&(weft_oracle_case){.name = "recurrent, by batch",
                                           .build = build_recurrent,
                                           .layout = "batch:data?,hidden:model?"},
                       8, 1e-15);
}

/* The gradient of the gradients' squares. */
static weft_value slope(weft_value loss, const net *n, weft_value *second)
{
    weft_value first[3];
    weft_gradients(loss, WEFT_VALUES(n->xs, n->w, n->u), first, 0);
    weft_value sum = weft_sum(WEFT_SCALAR, weft_square(first[0]));
    for (int i = 1; i < 3; i++)
        sum = weft_add(sum, weft_sum(WEFT_SCALAR, weft_square(first[i])));
    return weft_gradients(sum, WEFT_VALUES(n->xs, n->h0, n->w, n->u), second, 0);
}

static void build_second(weft_oracle_build *b)
{
    const net n = net_of(b);
    weft_value hs, last, scanned[4], written[4];
    slope(loss_scanned(&n, &hs, &last), &n, scanned);
    slope(loss_written(&n, &last), &n, written);
    for (int i = 0; i < 4; i++) {
        weft_oracle_output(b, scanned[i]);
        weft_oracle_output(b, written[i]);
    }
}

static void test_second_gradients_are_those_written_down(void)
{
    check_pairs_within(&(weft_oracle_case){.name = "second", .build = build_second}, 16, 1e-15);
}

/* A scan in a scan: the inner one reads what the outer carries, what it sees of a tensor, and what is outside both. */
static weft_value inner_step(weft_value g, weft_value h, weft_value x, weft_value w)
{
    return weft_sin(weft_add(weft_mul(g, w), weft_mul(h, x)));
}

static void build_nested(weft_oracle_build *b)
{
    weft_value xs = weft_oracle_input(b, WEFT_F64, WEFT_DIMS(steps, turns, batch), -1.0, 1.0);
    weft_value h0 = weft_oracle_input(b, WEFT_F64, WEFT_DIMS(batch), -1.0, 1.0);
    weft_value w = weft_oracle_input(b, WEFT_F64, WEFT_DIMS(batch), -1.0, 1.0);
    weft_value scanned[3], written[3];

    const weft_value outer = weft_scan_begin(b->graph, steps.size);
    const weft_value h = weft_scan_carry(h0), x = weft_scan_each(xs, steps);
    const weft_value g0 = weft_exp(h), inner = weft_scan_begin(b->graph, turns.size);
    const weft_value g = weft_scan_carry(g0);
    const weft_value g_next = inner_step(g, h, weft_scan_each(x, turns), w);
    weft_scan_next(g, g_next);
    weft_scan_end(inner);
    const weft_value gs = weft_scan_stack(g_next, turns);
    weft_scan_next(h,
                   weft_add(weft_scan_last(g), weft_mean_over(WEFT_DIMS(batch), weft_square(gs))));
    weft_scan_end(outer);
    const weft_value all = weft_scan_stack(gs, steps), last = weft_scan_last(h);
    weft_gradients(weft_add(weft_sum(WEFT_SCALAR, weft_square(all)), weft_sum(WEFT_SCALAR, last)),
                   WEFT_VALUES(xs, h0, w), scanned, 0);

    weft_value hw = h0, loss = {0};
    for (int64_t t = 0; t < steps.size; t++) {
        weft_value gw = weft_exp(hw), squares = {0};
        for (int64_t k = 0; k < turns.size; k++) {
            gw = inner_step(gw, hw, element_of(element_of(xs, steps, t), turns, k), w);
            squares = k == 0 ? weft_square(gw) : weft_add(squares, weft_square(gw));
        }
        loss = t == 0 ? squares : weft_add(loss, squares);
        hw = weft_add(gw, weft_scale(squares, 1.0 / (double)turns.size));
    }
    weft_gradients(weft_add(weft_sum(WEFT_SCALAR, loss), weft_sum(WEFT_SCALAR, hw)),
                   WEFT_VALUES(xs, h0, w), written, 0);
    weft_oracle_output(b, last);
    weft_oracle_output(b, hw);
    for (int i = 0; i < 3; i++) {
        weft_oracle_output(b, scanned[i]);
        weft_oracle_output(b, written[i]);
    }
}

static void test_a_scan_in_a_scan_is_what_is_written_down(void)
{
    check_pairs(&(weft_oracle_case){.name = "nested", .build = build_nested}, 48);
}

/* Gradients taken in the body, and summed over the trips: those of the whole batch, in the memory of a part of it. */
static weft_value loss_of(weft_value x, weft_value w)
{
    return weft_sum(WEFT_SCALAR,
                    weft_square(weft_tanh(weft_einsum(WEFT_DIMS(batch, hidden), x, w))));
}

static void build_accumulated(weft_oracle_build *b)
{
    weft_value xs = weft_oracle_input(b, WEFT_F64, WEFT_DIMS(batch, steps, in), -1.0, 1.0), part[1],
               written[1];
    weft_value w = weft_oracle_input(b, WEFT_F64, WEFT_DIMS(in, hidden), -1.0, 1.0), loss = {0};
    const weft_value none = weft_constant(b->graph, WEFT_F64, WEFT_DIMS(in, hidden), 0.0);
    const weft_value trip = weft_scan_begin(b->graph, steps.size), sum = weft_scan_carry(none);
    weft_gradients(loss_of(weft_scan_each(xs, steps), w), WEFT_VALUES(w), part, 0);
    weft_scan_next(sum, weft_add(sum, part[0]));
    weft_scan_end(trip);
    for (int64_t t = 0; t < steps.size; t++) {
        const weft_value one = loss_of(element_of(xs, steps, t), w);
        loss = t == 0 ? one : weft_add(loss, one);
    }
    weft_oracle_output(b, weft_scan_last(sum));
    weft_oracle_output(b, weft_gradients(loss, WEFT_VALUES(w), written, 0));
}

static void test_gradients_in_a_body_are_summed_over_the_trips(void)
{
    check_pairs(&(weft_oracle_case){.name = "accumulated", .build = build_accumulated}, 48);
}

/* Carried values that change places, and the number of the trip. */
static void build_places(weft_oracle_build *b)
{
    weft_value a0 = weft_oracle_input(b, WEFT_F64, WEFT_DIMS(batch), -1.0, 1.0);
    weft_value c0 = weft_oracle_input(b, WEFT_F64, WEFT_DIMS(batch), -1.0, 1.0);
    const weft_value trip = weft_scan_begin(b->graph, 5);
    const weft_value a = weft_scan_carry(a0), c = weft_scan_carry(c0);
    weft_scan_next(a, c);
    weft_scan_next(c, weft_add(a, weft_mul(c, weft_cast(trip, WEFT_F64))));
    weft_scan_end(trip);
    weft_value aw = a0, cw = c0;
    for (int t = 0; t < 5; t++) {
        const weft_value next = weft_add(aw, weft_scale(cw, t));
        aw = cw;
        cw = next;
    }
    weft_oracle_output(b, weft_scan_last(a));
    weft_oracle_output(b, aw);
    weft_oracle_output(b, weft_scan_last(c));
    weft_oracle_output(b, cw);
}

static void test_all_carried_values_change_at_once(void)
{
    check_pairs(&(weft_oracle_case){.name = "places", .build = build_places}, 16);
}

/* ---- random numbers ---------------------------------------------------------------------------- */

/* The gradient of a sum by what is dropped from is the mask. */
static void build_masks(weft_oracle_build *b)
{
    const weft_dim many = {"many", 64};
    weft_value xs = weft_oracle_input(b, WEFT_F64, WEFT_DIMS(steps, many), 1.0, 2.0), d[1];
    const weft_value trip = weft_scan_begin(b->graph, steps.size);
    const weft_value y = weft_dropout(weft_scan_each(xs, steps), 0.5);
    weft_scan_end(trip);
    const weft_value ys = weft_scan_stack(y, steps);
    weft_gradients(weft_sum(WEFT_SCALAR, ys), WEFT_VALUES(xs), d, 0);
    weft_oracle_output(b, weft_mul(xs, d[0]));
    weft_oracle_output(b, ys);
}

static void test_masks_are_others_in_each_trip_and_the_same_on_the_way_back(void)
{
    weft_oracle_result r;
    weft_error error = {0};
    const weft_oracle_case what = {.name = "masks", .build = build_masks};
    check_pairs(&what, 16);
    if (!CHECK_OK(weft_oracle_run(oracle.alone, &what, NULL, &r, &error), error)) return;
    const int64_t n = r.count[0] / steps.size;
    for (int64_t t = 1; t < steps.size; t++) {
        int n_others = 0;
        for (int64_t i = 0; i < n; i++)
            n_others += (r.data[0][t * n + i] == 0.0) != (r.data[0][i] == 0.0);
        CHECK(n_others > n / 4);
    }
    weft_oracle_free(&r);
}

/* A scan over a dim: what each of its parts makes of random numbers is what the whole makes of them. A stream is drawn by the
 * op, so the whole is a program of its own. */
static const weft_dim whole = {"batch", 12}, rows = {"batch", 4}, part = {"part", 3};

static weft_value random_of(weft_value x, weft_dim batch_)
{
    const weft_value noise =
        weft_random_normal(x.graph, WEFT_F64, WEFT_DIMS(in, batch_, to), 0.0, 1.0);
    const weft_value other = weft_random_uniform(x.graph, WEFT_F64, WEFT_DIMS(in, to), 0.0, 1.0);
    return weft_add(weft_mul(weft_dropout(weft_square(x), 0.4), noise), other);
}

static void build_over(weft_oracle_build *b)
{
    const weft_value x = weft_oracle_input(b, WEFT_F64, WEFT_DIMS(in, whole, to), 0.5, 1.0);
    weft_value y, d[1];
    if (*(const bool *)b->argument) {
        const weft_value xs = weft_reshape(x, WEFT_DIMS(in, rows, part, to));
        const weft_value trip = weft_scan_begin_over(b->graph, part.size, whole);
        const weft_value ys = random_of(weft_scan_each(xs, part), rows);
        weft_scan_end(trip);
        const weft_value all =
            weft_transpose(weft_scan_stack(ys, part), WEFT_DIMS(in, rows, part, to));
        y = weft_reshape(all, WEFT_DIMS(in, whole, to));
    } else {
        y = random_of(x, whole);
    }
    weft_gradients(weft_sum(WEFT_SCALAR, weft_square(y)), WEFT_VALUES(x), d, 0);
    weft_oracle_output(b, y);
    weft_oracle_output(b, d[0]);
}

static void test_a_scan_over_a_dim_has_the_random_numbers_of_the_whole(void)
{
    static const bool in_parts = true, at_once = false;
    weft_oracle_case parts = {.name = "over", .build = build_over, .argument = &in_parts};
    const weft_oracle_case all = {.name = "at once", .build = build_over, .argument = &at_once};
    weft_error error = {0};
    check_written_down(&parts, 0);
    for (int is_once = 0; is_once < 2; is_once++) {
        weft_oracle_result a = {0}, b = {0};
        parts.options = is_once ? &once : &unrolled;
        weft_oracle_sweep(&oracle, &parts, oracle.world.n_processes > 1 ? 4 : 32);
        if (CHECK_OK(weft_oracle_run(oracle.alone, &parts, NULL, &a, &error), error) &&
            CHECK_OK(weft_oracle_run(oracle.alone, &all, NULL, &b, &error), error))
            for (int i = 0; i < 2; i++) {
                CHECK_EQ_INT(a.count[i], b.count[i]);
                CHECK(memcmp(a.data[i], b.data[i], (size_t)a.count[i] * sizeof *a.data[i]) == 0);
            }
        weft_oracle_free(&a);
        weft_oracle_free(&b);
    }
}

int main(void)
{
    static const char *const meshes[] = {"data:2", "data:3", "model:2", "data:4", "data:2,model:2"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 5, &error), error)) {
        RUN(test_a_recurrent_network_is_what_is_written_down);
        RUN(test_second_gradients_are_those_written_down);
        RUN(test_a_scan_in_a_scan_is_what_is_written_down);
        RUN(test_gradients_in_a_body_are_summed_over_the_trips);
        RUN(test_all_carried_values_change_at_once);
        RUN(test_masks_are_others_in_each_trip_and_the_same_on_the_way_back);
        RUN(test_a_scan_over_a_dim_has_the_random_numbers_of_the_whole);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
