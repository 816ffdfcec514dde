/* RANKS: 2 */
/* identity_test: a builder that has nothing to do gives a value of its own all the same: it is read, placed, named, and gradients are
 * taken by it, as of any other; and it costs what it is needed for. Those that are there to hand a value back do.
 */
#include "ops/graph/ir.h"
#include "weft/autodiff.h"
#include "weft/collectives.h"
#include "weft/ops.h"
#include "weft/optim.h"
#include "weft/program.h"
#include "weft/research/plan.h"
#include "weft/scan.h"

#include "test.h"

static const weft_dim a = {"a", 4}, b = {"b", 3};
enum { N = 12 };
static weft_world world;
#define AB WEFT_DIMS(a, b)

/* ---- every builder with nothing to do ------------------------------------------------------------ */

typedef weft_value idle(weft_value x);
#define IDLE(name, expression)                                                                     \
    static weft_value name(weft_value x)                                                           \
    {                                                                                              \
        return expression;                                                                         \
    }
IDLE(same, weft_same(x))
IDLE(cast, weft_cast(x, weft_dtype_of(x)))
IDLE(cast_there_and_back, weft_cast(weft_cast(x, WEFT_F64), WEFT_F32)) /* exact */
IDLE(transpose, weft_transpose(x, AB))
IDLE(broadcast_to, weft_broadcast_to(x, AB))
IDLE(reshape, weft_reshape(x, AB))
IDLE(sum, weft_sum(AB, x))
IDLE(max, weft_max(AB, x))
IDLE(min, weft_min(AB, x))
IDLE(prod, weft_prod(AB, x))
IDLE(mean_over, weft_mean_over(AB, x))
IDLE(einsum_of_one, weft_einsum_n(AB, WEFT_VALUES(x)))
IDLE(roll_by_none, weft_roll(x, a, 0))
IDLE(roll_round, weft_roll(x, a, a.size))
IDLE(roll_round_back, weft_roll(x, b, -2 * b.size))
IDLE(shift_along, weft_shift_along(x, a, 0))
IDLE(slice, weft_slice(x, a, 0, a))
IDLE(slice_step, weft_slice_step(x, a, 0, 1, a))
IDLE(split, weft_split(x, a, 0, a))
IDLE(pad, weft_pad(x, a, 0, a, 0.0))
IDLE(pad_with, weft_pad(x, a, 0, a, 7.0))
IDLE(pad_reflect, weft_pad_reflect(x, a, 0, a))
IDLE(dilate, weft_dilate(x, a, 1, a))
IDLE(reindex, weft_reindex(x, a, a, 1, 0, 1))
IDLE(flip_twice, weft_flip(weft_flip(x, a), a))
IDLE(dropout, weft_dropout(x, 0.0))
IDLE(dropout_over, weft_dropout_over(x, 0.0, WEFT_DIMS(a)))
IDLE(scale, weft_scale(x, 1.0))
IDLE(shift, weft_shift(x, 0.0))
IDLE(clamp, weft_clamp(x, -1e30, 1e30))
IDLE(settle, weft_settle(x))
IDLE(neg_twice, weft_neg(weft_neg(x)))
IDLE(smooth_labels, weft_smooth_labels(x, a, 0.0))

static const struct {
    const char *name;
    idle *call;
} idles[] = {
#define ROW(name)                                                                                  \
    {                                                                                              \
#name, name                                                                                \
    }
    ROW(same),         ROW(cast),         ROW(cast_there_and_back),
    ROW(transpose),    ROW(broadcast_to), ROW(reshape),
    ROW(sum),          ROW(max),          ROW(min),
    ROW(prod),         ROW(mean_over),    ROW(einsum_of_one),
    ROW(roll_by_none), ROW(roll_round),   ROW(roll_round_back),
    ROW(shift_along),  ROW(slice),        ROW(slice_step),
    ROW(split),        ROW(pad),          ROW(pad_with),
    ROW(pad_reflect),  ROW(dilate),       ROW(reindex),
    ROW(flip_twice),   ROW(dropout),      ROW(dropout_over),
    ROW(scale),        ROW(shift),        ROW(clamp),
    ROW(settle),       ROW(neg_twice),    ROW(smooth_labels)};
enum { N_IDLES = sizeof idles / sizeof idles[0] };

static bool hold(bool holds, const char *what, const char *name)
{
    char text[160];
    snprintf(text, sizeof text, "%s: %s", name, what);
    return weft_test_check(holds, __FILE__, __LINE__, text);
}

static void test_no_builder_hands_its_operand_back(void)
{
    for (int i = 0; i < N_IDLES; i++) {
        weft_graph *graph = weft_graph_create(1);
        const weft_value x = weft_input(graph, "x", WEFT_F32, AB), y = idles[i].call(x);
        CHECK_TEXT(weft_graph_status(graph) == WEFT_OK ? "" : weft_graph_error(graph)->message, "");
        if (hold(y.id != 0 && y.id != x.id, "is a value of its own", idles[i].name)) {
            weft_name(weft_place(y, "a:d"), "y");
            hold(graph->tensors[x.id].placement == NULL, "its place is not x's", idles[i].name);
            hold(strcmp(graph->tensors[x.id].name, "x") == 0, "nor its name", idles[i].name);
            hold(weft_node_of(graph, y.id)->origin.line > 0, "it knows its line", idles[i].name);
        }
        weft_graph_destroy(&graph);
    }
}

/* Exact where a number goes to a wider dtype and back. */
static void test_a_cast_of_a_cast_is_a_value_of_its_own(void)
{
    weft_graph *graph = weft_graph_create(1);
    const weft_value x = weft_input(graph, "x", WEFT_BF16, AB);
    const weft_value y = weft_cast(weft_cast(x, WEFT_F32), WEFT_BF16);
    CHECK(y.id != x.id && weft_dtype_of(y) == WEFT_BF16);
    weft_graph_destroy(&graph);
}

static void test_what_hands_back_does(void)
{
    weft_graph *graph = weft_graph_create(1);
    const weft_value w = weft_variable(graph, "w", WEFT_F32, AB, weft_constant_of(1.0));
    CHECK_EQ_INT(weft_name(w, "weight").id, w.id);
    CHECK_EQ_INT(weft_place(w, "a:d").id, w.id);
    CHECK_EQ_INT(weft_place_as(w, w).id, w.id);
    const weft_value part = weft_recompute_begin(w), inner = weft_square(part);
    CHECK_EQ_INT(weft_recompute_end(inner).id, inner.id);
    const weft_value trip = weft_scan_begin(graph, 3), h = weft_scan_carry(w);
    const weft_value goes_on = weft_less(trip, weft_constant(graph, WEFT_I32, WEFT_SCALAR, 2.0));
    CHECK_EQ_INT(weft_scan_while(goes_on).id, goes_on.id);
    CHECK_EQ_INT(weft_scan_next(h, weft_scale(h, 2.0)).id, h.id);
    CHECK_EQ_INT(weft_scan_end(trip).id, trip.id);
    const weft_value yes = weft_cond_begin(goes_on);
    CHECK_EQ_INT(yes.id, 0); /* of a body that has ended */
    weft_graph_clear_error(graph);
    const weft_value update = weft_sgd(weft_mean(weft_square(w)), NULL);
    const weft_value averages = weft_average(update, NULL);
    CHECK(averages.id != 0 && weft_averaged(w).id == weft_averaged(w).id &&
          weft_averaged(w).id != 0);
    CHECK(weft_node_of(graph, weft_averaged(w).id)->op == &weft_op_variable);
    CHECK_EQ_INT(weft_at("mine", WEFT_HERE, w).id, w.id);
    weft_graph_destroy(&graph);
}

/* ---- programs -------------------------------------------------------------------------------------- */

typedef struct running {
    weft_mesh *mesh;
    weft_layout *layout;
    weft_program *program;
} running;

static bool start(running *r, const char *rules, weft_values values,
                  const weft_compile_options *options)
{
    char mesh[16];
    weft_error error = WEFT_NO_ERROR;
    *r = (running){0};
    snprintf(mesh, sizeof mesh, "d:%d", world.n_processes > 1 ? world.n_processes : 2);
    weft_status status = weft_mesh_create(&world, mesh, &r->mesh, &error);
    if (status == WEFT_OK) status = weft_layout_create(rules, &r->layout, &error);
    if (status == WEFT_OK)
        status = weft_compile(r->mesh, r->layout, values, options, &r->program, &error);
    return CHECK_OK(status, error);
}

static void finish(running *r)
{
    (void)!weft_program_destroy(&r->program);
    weft_layout_destroy(&r->layout);
    weft_mesh_destroy(&r->mesh);
}

static void run(running *r)
{
    weft_error error = WEFT_NO_ERROR;
    CHECK_OK(weft_run(r->program, &error), error);
}

/* All elements of an f32 value [a, b]. */
static void expect(running *r, weft_value value, double wanted, const char *what, const char *name)
{
    float data[N] = {0};
    weft_error error = WEFT_NO_ERROR;
    bool is_it = true;
    if (!CHECK_OK(weft_read(r->program, value, WEFT_F32, data, sizeof data, &error), error)) return;
    for (int i = 0; i < N; i++)
        is_it = is_it && fabs(data[i] - wanted) < 1e-6;
    if (!hold(is_it, what, name)) fprintf(stderr, "%g for %g\n", (double)data[0], wanted);
}

/* What is read of it after a run is what the run has read, not what it has left. */
static void test_it_keeps_what_a_variable_was(void)
{
    for (int i = 0; i < N_IDLES; i++) {
        weft_graph *graph = weft_graph_create(1);
        const weft_value w = weft_variable(graph, "w", WEFT_F32, AB, weft_constant_of(2.0));
        const weft_value y = idles[i].call(w), z = idles[i].call(y);
        const weft_value update = weft_assign(w, weft_shift(z, 1.0));
        running r;
        if (start(&r, "a:d", WEFT_VALUES(y, z, update), NULL)) {
            for (int n = 0; n < 2; n++) {
                run(&r);
                expect(&r, y, 2.0 + n, "it is as it was in the run", idles[i].name);
                expect(&r, z, 2.0 + n, "so is one of it", idles[i].name);
                expect(&r, w, 3.0 + n, "the variable goes on", idles[i].name);
            }
        }
        finish(&r);
        weft_graph_destroy(&graph);
    }
}

/* What a program has not been asked to keep is not read as the variable that it was made of. */
static void test_what_is_not_kept_is_not_read(void)
{
    weft_graph *graph = weft_graph_create(1);
    const weft_value w = weft_variable(graph, "w", WEFT_F32, AB, weft_constant_of(2.0));
    const weft_value y = weft_cast(w, WEFT_F32), update = weft_assign(w, weft_shift(y, 1.0));
    float data[N];
    weft_error error = WEFT_NO_ERROR;
    running r;
    if (start(&r, "a:d", WEFT_VALUES(update), NULL)) {
        run(&r);
        CHECK_EQ_INT(weft_read(r.program, y, WEFT_F32, data, sizeof data, &error), WEFT_USAGE);
        CHECK_TEXT(error.message, "is not kept by this program");
        expect(&r, w, 3.0, "the variable is", "w");
    }
    finish(&r);
    weft_graph_destroy(&graph);
}

/* A part begins with a value of its own, and so does one with a rule for its gradient. */
static void rule(void *argument, weft_values in, weft_value out, weft_value dout, weft_value *din)
{
    (void)argument, (void)in, (void)out;
    din[0] = dout;
}
static void test_so_do_parts_and_rules(void)
{
    weft_graph *graph = weft_graph_create(1);
    const weft_value w = weft_variable(graph, "w", WEFT_F32, AB, weft_constant_of(2.0));
    const weft_value part = weft_recompute_begin(w),
                     squared = weft_recompute_end(weft_square(part));
    const weft_value ruled = weft_custom_gradient(WEFT_VALUES(w), w, rule, NULL);
    const weft_value update = weft_assign(w, weft_shift(w, 1.0));
    running r;
    if (start(&r, "a:d", WEFT_VALUES(part, squared, ruled, update), NULL)) {
        run(&r);
        expect(&r, part, 2.0, "it is as it was", "recompute_begin");
        expect(&r, ruled, 2.0, "it is as it was", "custom_gradient");
        expect(&r, squared, 4.0, "so is what is made of it", "square");
    }
    finish(&r);
    weft_graph_destroy(&graph);
}

/* d/dt of sum(t^2) + sum(x^3), where t is x: 2 t, and 2 x + 3 x^2 by x. */
static void test_gradients_by_it_are_its_own(void)
{
    for (int i = 0; i < N_IDLES; i++) {
        weft_graph *graph = weft_graph_create(1);
        const weft_value x = weft_variable(graph, "x", WEFT_F32, AB, weft_constant_of(2.0));
        const weft_value t = idles[i].call(x);
        const weft_value loss = weft_add(weft_sum(WEFT_SCALAR, weft_square(t)),
                                         weft_sum(WEFT_SCALAR, weft_mul(x, weft_mul(x, x))));
        weft_value by[2];
        weft_gradients(loss, WEFT_VALUES(t, x), by, 0);
        running r;
        if (start(&r, "a:d", WEFT_VALUES(by[0], by[1]), NULL)) {
            run(&r);
            expect(&r, by[0], 4.0, "the gradient by it is of its uses", idles[i].name);
            expect(&r, by[1], 16.0, "that by x is of all", idles[i].name);
        }
        finish(&r);
        weft_graph_destroy(&graph);
    }
}

/* A seed comes out as it is: by a value of its own, which may be placed. */
static void test_a_gradient_that_is_its_seed(void)
{
    weft_graph *graph = weft_graph_create(1);
    const weft_value x = weft_input(graph, "x", WEFT_F32, AB),
                     s = weft_input(graph, "s", WEFT_F32, AB);
    weft_value by[2];
    const weft_value first =
        weft_gradients_seeded(WEFT_VALUES(weft_same(x)), WEFT_VALUES(s), WEFT_VALUES(x), by, 0);
    CHECK(by[0].id != s.id && first.id == by[0].id);
    weft_gradients_seeded(WEFT_VALUES(x), WEFT_VALUES(s), WEFT_VALUES(x), by, 0);
    CHECK(by[0].id != s.id);
    weft_graph_destroy(&graph);
}

/* ---- in parts and bodies ---------------------------------------------------------------------------- */

static void test_a_part_may_end_with_it(void)
{
    for (int i = 0; i < N_IDLES; i++) {
        weft_graph *graph = weft_graph_create(1);
        const weft_value x = weft_variable(graph, "x", WEFT_F32, AB, weft_constant_of(2.0));
        const weft_value y = weft_recompute_end(idles[i].call(weft_recompute_begin(x)));
        weft_value by[1];
        weft_gradients(weft_sum(WEFT_SCALAR, weft_square(y)), WEFT_VALUES(x), by, 0);
        running r;
        if (start(&r, "a:d", WEFT_VALUES(y, by[0]), NULL)) {
            run(&r);
            expect(&r, y, 2.0, "the part's value", idles[i].name);
            expect(&r, by[0], 4.0, "and its gradient", idles[i].name);
        }
        finish(&r);
        weft_graph_destroy(&graph);
    }
}

/* Of what is around, of what is carried and of what is seen, in a body: stacked, and carried on. */
static void in_a_body(idle *call, const char *name, const weft_compile_options *options)
{
    static const weft_dim time = {"time", 3};
    weft_graph *graph = weft_graph_create(1);
    const weft_value w = weft_variable(graph, "w", WEFT_F32, AB, weft_constant_of(2.0));
    const weft_value xs = weft_broadcast_to(w, WEFT_DIMS(time, a, b));
    const weft_value trip = weft_scan_begin(graph, time.size), h = weft_scan_carry(w);
    const weft_value around = call(w), carried = call(h), seen = call(weft_scan_each(xs, time));
    weft_scan_next(h, weft_add(call(carried), call(around)));
    weft_scan_end(trip);
    const weft_value all = weft_sum(AB, weft_scan_stack(around, time));
    const weft_value began = weft_sum(AB, weft_scan_stack(carried, time));
    const weft_value saw = weft_sum(AB, weft_scan_stack(seen, time));
    const weft_value last = call(weft_scan_last(h)), update = weft_assign(w, last);
    weft_value by[1];
    weft_gradients(weft_sum(WEFT_SCALAR, weft_mul(all, weft_mul(began, saw))), WEFT_VALUES(w), by,
                   0);
    running r;
    if (start(&r, "a:d", WEFT_VALUES(all, began, saw, last, by[0], update), options)) {
        run(&r);
        expect(&r, all, 6.0, "of what is around, stacked", name);
        expect(&r, began, 12.0, "of what is carried, stacked", name);
        expect(&r, saw, 6.0, "of what is seen, stacked", name);
        expect(&r, last, 8.0, "what is carried on", name);
        expect(&r, by[0], 3 * 3 * 6 * 3 * 4.0, "the gradient of 3 w 6 w 3 w", name);
    }
    finish(&r);
    weft_graph_destroy(&graph);
}

static void test_in_a_body(void)
{
    static const weft_compile_options once = {.unroll = 1}, unrolled = {.unroll = INT64_MAX};
    for (int i = 0; i < N_IDLES; i++) {
        in_a_body(idles[i].call, idles[i].name, &once);
        in_a_body(idles[i].call, idles[i].name, &unrolled);
    }
}

/* Both bodies hand on what is around. */
static void test_in_bodies_of_a_condition(void)
{
    for (int i = 0; i < N_IDLES; i++) {
        weft_graph *graph = weft_graph_create(1);
        const weft_value w = weft_variable(graph, "w", WEFT_F32, AB, weft_constant_of(2.0));
        const weft_value v = weft_variable(graph, "v", WEFT_F32, AB, weft_constant_of(5.0));
        const weft_value no_flag = weft_constant(graph, WEFT_I32, WEFT_SCALAR, 0.0);
        const weft_value yes = weft_cond_begin(no_flag), first = idles[i].call(w);
        const weft_value no = weft_cond_else(yes), second = idles[i].call(v);
        weft_cond_end(no);
        const weft_value y = weft_cond(first, second);
        running r;
        if (start(&r, "a:d", WEFT_VALUES(y), NULL)) {
            run(&r);
            expect(&r, y, 5.0, "the second", idles[i].name);
        }
        finish(&r);
        weft_graph_destroy(&graph);
    }
}

/* A rule in a body whose gradient is a value from around it. */
static void from_around(void *argument, weft_values in, weft_value out, weft_value dout,
                        weft_value *din)
{
    (void)in, (void)out, (void)dout;
    din[0] = *(const weft_value *)argument;
}
static void test_a_rule_in_a_body_that_gives_what_is_around(void)
{
    static const weft_dim time = {"time", 3};
    weft_graph *graph = weft_graph_create(1);
    weft_value w = weft_variable(graph, "w", WEFT_F32, AB, weft_constant_of(2.0));
    const weft_value xs = weft_input(graph, "xs", WEFT_F32, WEFT_DIMS(time, a, b));
    const weft_value trip = weft_scan_begin(graph, time.size), x = weft_scan_each(xs, time);
    const weft_value y = weft_custom_gradient(WEFT_VALUES(x), weft_square(x), from_around, &w);
    weft_scan_end(trip);
    weft_value by[1];
    weft_gradients(weft_sum(WEFT_SCALAR, weft_scan_stack(y, time)), WEFT_VALUES(xs), by, 0);
    running r;
    const weft_value sums = weft_sum(AB, by[0]);
    if (start(&r, "a:d", WEFT_VALUES(sums), &(weft_compile_options){.unroll = 1})) {
        static const float none[3 * N];
        weft_error error = WEFT_NO_ERROR;
        CHECK_OK(weft_write(r.program, xs, WEFT_F32, none, sizeof none, &error), error);
        run(&r);
        expect(&r, sums, 6.0, "what the rule gave, of each trip", "rule");
    }
    finish(&r);
    weft_graph_destroy(&graph);
}

/* ---- what it costs ------------------------------------------------------------------------------------ */

/* Steps and bytes of two layers, with as many idle calls as may be between them, or with none. */
static void costs(idle *call, int64_t *steps, int64_t *bytes)
{
    static const weft_dim c = {"c", 3};
    weft_graph *graph = weft_graph_create(1);
    const weft_value x = weft_input(graph, "x", WEFT_F32, AB);
    const weft_value w =
        weft_variable(graph, "w", WEFT_F32, WEFT_DIMS(b, c), weft_constant_of(0.5));
    weft_value h = call(x);
    for (int i = 0; i < 2; i++) {
        const weft_value product = weft_einsum(WEFT_DIMS(a, c), call(h), weft_same(w));
        h = call(weft_tanh(call(weft_rename(product, c, b))));
    }
    const weft_value loss = weft_mean(weft_square(call(h)));
    running r;
    *steps = *bytes = 0;
    if (start(&r, "a:d", WEFT_VALUES(loss, weft_sgd(loss, NULL)), NULL)) {
        weft_usage usage;
        weft_error error = WEFT_NO_ERROR;
        CHECK_OK(weft_plan_usage(r.program, 0, &usage, &error), error);
        *steps = usage.n_steps;
        *bytes = usage.total_bytes;
    }
    finish(&r);
    weft_graph_destroy(&graph);
}

static weft_value nothing(weft_value x)
{
    return x;
}

static void test_it_costs_nothing_where_nobody_can_tell(void)
{
    static idle *const free_of_cost[] = {same,        cast,          transpose,    broadcast_to,
                                         sum,         einsum_of_one, roll_by_none, roll_round,
                                         pad_reflect, dropout};
    int64_t steps, bytes;
    costs(nothing, &steps, &bytes);
    CHECK(steps > 3 && bytes > 0);
    for (size_t i = 0; i < sizeof free_of_cost / sizeof free_of_cost[0]; i++) {
        int64_t n, its;
        costs(free_of_cost[i], &n, &its);
        CHECK_EQ_INT(n, steps);
        CHECK_EQ_INT(its, bytes);
    }
}

int main(void)
{
    weft_error error = WEFT_NO_ERROR;
    if (!CHECK_OK(weft_world_open(&world, &error), error)) return weft_test_report();
    RUN(test_no_builder_hands_its_operand_back);
    RUN(test_a_cast_of_a_cast_is_a_value_of_its_own);
    RUN(test_what_hands_back_does);
    RUN(test_it_keeps_what_a_variable_was);
    RUN(test_what_is_not_kept_is_not_read);
    RUN(test_so_do_parts_and_rules);
    RUN(test_gradients_by_it_are_its_own);
    RUN(test_a_gradient_that_is_its_seed);
    RUN(test_a_part_may_end_with_it);
    RUN(test_in_a_body);
    RUN(test_in_bodies_of_a_condition);
    RUN(test_a_rule_in_a_body_that_gives_what_is_around);
    RUN(test_it_costs_nothing_where_nobody_can_tell);
    weft_world_close();
    return weft_test_report();
}
