/* RANKS: 2 4 */
/* fission_test: what leaves the bodies of scans: products that depend on nothing carried, sums over the trips, products that are
 * stacked alone; and what stays, since its trips would be kept, or are not all made. The numbers are those of the scan written
 * down trip by trip, on every mesh.
 */
#include <string.h>

#include "oracle.h"
#include "test.h"
#include "weft/autodiff.h"
#include "weft/research/plan.h"
#include "weft/scan.h"

enum { TRIPS = 40 };

static weft_oracle oracle;
static const weft_dim batch = {"batch", 4}, in = {"in", 16}, hidden = {"hidden", 12},
                      to = {"to", 12}, steps = {"steps", TRIPS};

static weft_value input(weft_oracle_build *b, weft_shape shape)
{
    return weft_oracle_input(b, WEFT_F64, shape, -0.5, 0.5);
}

static void output_gradients(weft_oracle_build *b, weft_value loss, const weft_value *of, int n)
{
    weft_value d[8];
    weft_gradients(loss, (weft_values){of, n}, d, 0);
    weft_oracle_output(b, loss);
    for (int i = 0; i < n; i++)
        weft_oracle_output(b, d[i]);
}

/* ---- bodies --------------------------------------------------------------------------------------- */

/* A recurrent network as one writes it down: both products and the bias in the body, a name and a cut on the way, and what is
 * read of each trip made there too. */
static void build_layer(weft_oracle_build *b, bool is_plain)
{
    const weft_dim all = {"all", 24}, part = {"part", 12}, letter = {"letter", 5};
    const weft_value xs = input(b, WEFT_DIMS(batch, steps, in)), w = input(b, WEFT_DIMS(in, all));
    const weft_value u = input(b, WEFT_DIMS(to, all)), bias = input(b, WEFT_DIMS(all));
    const weft_value v = input(b, WEFT_DIMS(hidden, letter));
    const weft_value none = weft_constant(b->graph, WEFT_F64, WEFT_DIMS(batch, hidden), 0.0);
    const weft_value trip = weft_scan_begin(b->graph, TRIPS), h = weft_scan_carry(none);
    const weft_value seen = weft_scan_each(xs, steps);
    const weft_value x = weft_einsum(WEFT_DIMS(batch, all), is_plain ? seen : weft_tanh(seen), w);
    const weft_value mixed = weft_einsum(WEFT_DIMS(batch, all), weft_rename(h, hidden, to), u);
    const weft_value sum = weft_add(weft_add(x, mixed), bias);
    const weft_value gate = weft_rename(weft_slice(sum, all, 0, part), part, hidden);
    const weft_value new = weft_rename(weft_slice(sum, all, 12, part), part, hidden);
    const weft_value next = weft_mul(weft_sigmoid(gate), weft_add(weft_tanh(new), h));
    weft_scan_next(h, next);
    const weft_value read = weft_einsum(WEFT_DIMS(batch, letter), next, v);
    weft_scan_end(trip);
    const weft_value loss = weft_add(weft_mean(weft_square(weft_scan_stack(read, steps))),
                                     weft_mean(weft_scan_last(h)));
    output_gradients(b, loss, (weft_value[]){w, u, bias, v, xs}, is_plain ? 5 : 4);
}

static void build_network(weft_oracle_build *b)
{
    build_layer(b, false);
}

static void build_plain(weft_oracle_build *b)
{
    build_layer(b, true);
}

/* From the last element to the first, with a sum that begins with something, and one that is read on the way. */
static void build_sums(weft_oracle_build *b)
{
    const weft_value xs = input(b, WEFT_DIMS(steps, batch, in)),
                     w = input(b, WEFT_DIMS(in, hidden));
    const weft_value first = input(b, WEFT_DIMS(hidden, in)),
                     zero = weft_constant(b->graph, WEFT_F64, WEFT_SCALAR, 0.0);
    const weft_value back_to_front = weft_flip(xs, steps);
    const weft_value trip = weft_scan_begin(b->graph, TRIPS);
    const weft_value sum = weft_scan_carry(first), norm = weft_scan_carry(zero),
                     read = weft_scan_carry(zero);
    const weft_value x = weft_scan_each(back_to_front, steps);
    const weft_value y = weft_tanh(weft_scale(weft_einsum(WEFT_DIMS(batch, hidden), x, w), 0.5));
    weft_scan_next(sum, weft_add(weft_einsum(WEFT_DIMS(hidden, in), x, y), sum));
    weft_scan_next(norm, weft_add(norm, weft_sum(WEFT_SCALAR, weft_square(y))));
    weft_scan_next(read, weft_add(weft_tanh(read), weft_sum(WEFT_SCALAR, y)));
    weft_scan_end(trip);
    weft_oracle_output(b, weft_scan_last(sum));
    weft_oracle_output(b, weft_scan_last(norm));
    weft_oracle_output(b, weft_scan_last(read));
}

/* Scans in scans: of the inner one's elements and of the outer one's. */
static void build_nested(weft_oracle_build *b)
{
    const weft_dim outer = {"outer", 20}, inner = {"inner", 18};
    const weft_value xs = input(b, WEFT_DIMS(inner, batch, outer, in));
    const weft_value w = input(b, WEFT_DIMS(in, hidden)), u = input(b, WEFT_DIMS(to, hidden));
    const weft_value none = weft_constant(b->graph, WEFT_F64, WEFT_DIMS(batch, hidden), 0.0);
    const weft_value t = weft_scan_begin(b->graph, outer.size), g = weft_scan_carry(none);
    const weft_value mine = weft_scan_each(xs, outer);
    const weft_value s = weft_scan_begin(b->graph, inner.size), h = weft_scan_carry(g);
    const weft_value x = weft_einsum(WEFT_DIMS(batch, hidden), weft_scan_each(mine, inner), w);
    const weft_value next = weft_tanh(
        weft_add(x, weft_einsum(WEFT_DIMS(batch, hidden), weft_rename(h, hidden, to), u)));
    weft_scan_next(h, next);
    weft_scan_end(s);
    const weft_value left = weft_scan_last(h), seen = weft_scan_stack(next, inner);
    weft_scan_next(g, weft_scale(left, 0.5));
    const weft_value all = weft_sum(WEFT_DIMS(batch, hidden), seen);
    weft_scan_end(t);
    const weft_value loss =
        weft_add(weft_mean(weft_square(weft_scan_stack(all, outer))), weft_mean(weft_scan_last(g)));
    output_gradients(b, loss, (weft_value[]){xs, w, u}, 3);
}

/* A batch in parts: each part's gradients are summed up, so that no more than one part is ever kept. */
static void build_parts(weft_oracle_build *b)
{
    const weft_dim parts = {"parts", TRIPS}, wide = {"wide", 64}, out = {"out", 32};
    const weft_value xs = input(b, WEFT_DIMS(parts, batch, in));
    const weft_value w = input(b, WEFT_DIMS(in, wide)), v = input(b, WEFT_DIMS(wide, out));
    const weft_value none[2] = {weft_constant(b->graph, WEFT_F64, WEFT_DIMS(in, wide), 0.0),
                                weft_constant(b->graph, WEFT_F64, WEFT_DIMS(wide, out), 0.0)};
    const weft_value trip = weft_scan_begin(b->graph, TRIPS);
    const weft_value sums[2] = {weft_scan_carry(none[0]), weft_scan_carry(none[1])};
    const weft_value h =
        weft_tanh(weft_einsum(WEFT_DIMS(batch, wide), weft_scan_each(xs, parts), w));
    const weft_value y = weft_einsum(WEFT_DIMS(batch, out), h, v);
    weft_value d[2];
    weft_gradients(weft_mean(weft_square(y)), WEFT_VALUES(w, v), d, 0);
    for (int i = 0; i < 2; i++)
        weft_scan_next(sums[i], weft_add(sums[i], d[i]));
    weft_scan_end(trip);
    for (int i = 0; i < 2; i++)
        weft_oracle_output(b, weft_scan_last(sums[i]));
}

/* Until a number is small: not all trips are made. */
static void build_while(weft_oracle_build *b)
{
    const weft_value xs = input(b, WEFT_DIMS(steps, batch, in)),
                     w = input(b, WEFT_DIMS(in, hidden));
    const weft_value none = weft_constant(b->graph, WEFT_F64, WEFT_DIMS(batch, hidden), 0.0);
    const weft_value trip = weft_scan_begin(b->graph, TRIPS), h = weft_scan_carry(none);
    weft_scan_while(weft_less(trip, weft_constant(b->graph, WEFT_I32, WEFT_SCALAR, 7)));
    const weft_value x = weft_einsum(WEFT_DIMS(batch, hidden), weft_scan_each(xs, steps), w);
    const weft_value next = weft_tanh(weft_add(x, h));
    weft_scan_next(h, next);
    weft_scan_end(trip);
    const weft_value loss = weft_mean(weft_square(weft_scan_stack(next, steps)));
    output_gradients(b, loss, (weft_value[]){xs, w}, 2);
}

/* Weights of which some are left out, others in each trip: their gradients are of the trip's own. And an element of all, which is
 * added to each row of what is carried. */
static void build_dropout(weft_oracle_build *b)
{
    const weft_value xs = input(b, WEFT_DIMS(steps, batch, in)),
                     w = input(b, WEFT_DIMS(in, hidden));
    const weft_value u = input(b, WEFT_DIMS(to, hidden));
    const weft_value none = weft_constant(b->graph, WEFT_F64, WEFT_DIMS(batch, hidden), 0.0);
    const weft_value trip = weft_scan_begin(b->graph, TRIPS), h = weft_scan_carry(none);
    const weft_value total = weft_scan_carry(none), x = weft_scan_each(xs, steps);
    const weft_value of_x = weft_einsum(WEFT_DIMS(batch, hidden), x, weft_dropout(w, 0.5));
    const weft_value of_h = weft_einsum(WEFT_DIMS(batch, hidden), weft_rename(h, hidden, to), u);
    const weft_value next = weft_tanh(weft_add(of_x, of_h));
    weft_scan_next(h, next);
    weft_scan_next(total, weft_add(total, weft_sum(WEFT_DIMS(hidden), next)));
    weft_scan_end(trip);
    const weft_value loss = weft_add(weft_mean(weft_square(weft_scan_last(h))),
                                     weft_mean(weft_square(weft_scan_stack(next, steps))));
    output_gradients(b, loss, (weft_value[]){w, u}, 2);
    weft_oracle_output(b, weft_scan_last(total));
}

static const weft_oracle_case cases[] = {
    {.name = "network",
     .build = build_network,
     .layout = "batch:data?,hidden:model?,to:model?,all:model?"},
    {.name = "plain", .build = build_plain, .layout = "in:model?,letter:data?,steps:data?"},
    {.name = "sums", .build = build_sums, .layout = "steps:data?,hidden:model?"},
    {.name = "nested", .build = build_nested, .layout = "batch:data?,hidden:model?,to:model?"},
    {.name = "parts", .build = build_parts, .layout = "batch:data?,wide:model?"},
    {.name = "dropout", .build = build_dropout, .layout = "batch:data?,hidden:model?"},
    {.name = "while", .build = build_while, .layout = "batch:data?,hidden:model?"}};
enum { N_CASES = sizeof cases / sizeof *cases };

/* ---- plans ---------------------------------------------------------------------------------------- */

typedef struct made {
    weft_oracle_build b;
    weft_program *program;
} made;

static made compile(void (*build)(weft_oracle_build *b))
{
    weft_error error = {0};
    made m = {.b = {.graph = weft_graph_create(7)}};
    build(&m.b);
    const weft_values values = {m.b.outputs, m.b.n_outputs};
    CHECK_OK(weft_compile(oracle.alone, NULL, values, NULL, &m.program, &error), error);
    return m;
}

static void destroy(made *m)
{
    CHECK_EQ_INT(weft_program_destroy(&m->program), WEFT_OK);
    CHECK_EQ_INT(weft_graph_destroy(&m->b.graph), WEFT_OK);
}

/* Steps of an op that a run does more than once, and those that it does once. */
static void count(const made *m, const char *op, int *in_bodies, int *outside)
{
    weft_error error = {0};
    *in_bodies = *outside = 0;
    for (int s = 0; m->program != NULL && s < weft_plan_n_steps(m->program); s++) {
        weft_planned_step step;
        CHECK_OK(weft_plan_step_at(m->program, s, 0, &step, &error), error);
        if (step.kind == WEFT_STEP_KERNEL && strcmp(step.op, op) == 0)
            *(step.trips > 1 ? in_bodies : outside) += 1;
    }
}

static void check_products(void (*build)(weft_oracle_build *b), int in_bodies, int outside)
{
    int found[2];
    made m = compile(build);
    count(&m, "einsum", &found[0], &found[1]);
    CHECK_EQ_INT(found[0], in_bodies);
    CHECK_EQ_INT(found[1], outside);
    destroy(&m);
}

/* The state's product is in the body forward, and so is the one that leads back through it. */
static void test_products_of_nothing_carried_are_outside(void)
{
    check_products(build_network, 2, 6);
    check_products(build_plain, 2, 7);
}

static void test_sums_over_the_trips_are_outside(void)
{
    check_products(build_sums, 0, 2);
}

/* Each part's products read what is not kept of other parts. */
static void test_parts_of_a_batch_are_summed_one_by_one(void)
{
    check_products(build_parts, 5, 0);
}

static void test_bodies_that_may_be_left_keep_their_products(void)
{
    int found[2];
    made m = compile(build_while);
    count(&m, "einsum", &found[0], &found[1]);
    CHECK(found[0] > 0);
    CHECK_EQ_INT(found[1], 0);
    destroy(&m);
}

/* ---- numbers -------------------------------------------------------------------------------------- */

#include "scan_sweeps.h"

int main(void)
{
    static const char *const meshes[] = {"data:2", "model:2", "data:2,model:2", "data:3"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 4, &error), error)) {
        RUN(test_products_of_nothing_carried_are_outside);
        RUN(test_sums_over_the_trips_are_outside);
        RUN(test_parts_of_a_batch_are_summed_one_by_one);
        RUN(test_bodies_that_may_be_left_keep_their_products);
        RUN(test_meshes_agree);
        RUN(test_trips_written_down_agree);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
