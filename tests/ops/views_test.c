/* RANKS: 2 */
/* views_test: bodies of scans read and write elements, slices and names of tensors where they lie: no step copies them. And where
 * that would not do, they are copied: memory that is written before it is read again, what exchanges read, shapes that cut
 * through a slice. The numbers are those of the scan written down trip by trip.
 */
#include <string.h>

#include "oracle.h"
#include "test.h"
#include "weft/autodiff.h"
#include "weft/layers.h"
#include "weft/research/plan.h"
#include "weft/scan.h"

enum { TRIPS = 40 };

static weft_oracle oracle;
static const weft_dim batch = {"batch", 5}, in = {"in", 3}, hidden = {"hidden", 6},
                      other = {"other", 6}, steps = {"steps", TRIPS};

static weft_value input(weft_oracle_build *b, weft_shape shape)
{
    return weft_oracle_input(b, WEFT_F64, shape, -1.0, 1.0);
}

static void output_gradient(weft_oracle_build *b, weft_value y, weft_value x)
{
    weft_value d;
    weft_gradients(weft_mean(weft_square(y)), WEFT_VALUES(x), &d, 0);
    weft_oracle_output(b, y);
    weft_oracle_output(b, d);
}

/* ---- bodies --------------------------------------------------------------------------------------- */

/* Layers with all that they can do; `argument`: whether it is a GRU. */
static void build_recurrent(weft_oracle_build *b)
{
    const bool is_gru = *(const bool *)b->argument;
    const weft_dim both = {"both", 2};
    const weft_value x = input(b, WEFT_DIMS(batch, steps, in));
    const weft_recurrent_options options = {
        .name = "layer", .over = steps, .feature = in, .hidden = hidden, .direction = both};
    output_gradient(b, (is_gru ? weft_gru : weft_lstm)(x, &options, NULL), x);
}

/* What is carried changes places, and is read by another name after that. */
static void build_places(weft_oracle_build *b)
{
    const weft_value xs = input(b, WEFT_DIMS(steps, hidden));
    const weft_value first = input(b, WEFT_DIMS(hidden)), second = input(b, WEFT_DIMS(hidden));
    const weft_value trip = weft_scan_begin(b->graph, TRIPS);
    const weft_value p = weft_scan_carry(first), q = weft_scan_carry(second);
    const weft_value old = weft_rename(p, hidden, other);
    const weft_value x = weft_scan_each(xs, steps);
    const weft_value sum = weft_tanh(weft_add(weft_scale(q, 0.5), x));
    weft_scan_next(p, sum);
    weft_scan_next(q, p);
    const weft_value product = weft_einsum(WEFT_DIMS(hidden), weft_mul(sum, old), old);
    weft_scan_end(trip);
    output_gradient(b, weft_scan_stack(product, steps), xs);
    weft_oracle_output(b, weft_scan_stack(old, steps));
    weft_oracle_output(b, weft_scan_last(q));
}

/* Slices of elements, in one shape and another, back and forth, and put together anew. */
static void build_slices(weft_oracle_build *b)
{
    const weft_dim half = {"half", 3}, pair = {"pair", 2}, flat = {"flat", 15}, one = {"one", 1};
    const weft_value xs = input(b, WEFT_DIMS(steps, batch, hidden)),
                     back_to_front = weft_flip(xs, steps);
    const weft_value none = weft_constant(b->graph, WEFT_F64, WEFT_DIMS(batch, hidden), 0.0);
    const weft_value trip = weft_scan_begin(b->graph, TRIPS), h = weft_scan_carry(none);
    const weft_value x = weft_scan_each(back_to_front, steps);
    const weft_value low = weft_slice(x, hidden, 0, half), high = weft_slice(x, hidden, 3, half);
    const weft_value apart = weft_reshape(low, WEFT_DIMS(flat)); /* cuts through rows */
    const weft_value last = weft_reshape(weft_slice(h, batch, 4, one), WEFT_DIMS(pair, half));
    const weft_value back = weft_reshape(weft_sin(apart), WEFT_DIMS(batch, half));
    const weft_value sum = weft_add(weft_mul(low, high), weft_sum(WEFT_DIMS(half), last));
    weft_value parts[2] = {weft_tanh(sum), weft_tanh(weft_sub(back, high))};
    const weft_value next = weft_concat(parts[1], parts[0], half, half, hidden);
    weft_scan_next(h, weft_add(weft_scale(h, 0.5), next));
    weft_scan_end(trip);
    output_gradient(b, weft_add(weft_scan_stack(next, steps), weft_scan_last(h)), xs);
}

/* An element of an element, and what is put into two stacks at once. */
static void build_nested(weft_oracle_build *b)
{
    const weft_dim inner = {"inner", 17};
    const weft_value xs = input(b, WEFT_DIMS(inner, steps, hidden));
    const weft_value none = weft_constant(b->graph, WEFT_F64, WEFT_DIMS(hidden), 0.0);
    const weft_value t = weft_scan_begin(b->graph, TRIPS), g = weft_scan_carry(none);
    const weft_value mine = weft_scan_each(xs, steps);
    const weft_value s = weft_scan_begin(b->graph, inner.size), h = weft_scan_carry(g);
    const weft_value next = weft_tanh(weft_add(weft_scan_each(mine, inner), h));
    weft_scan_next(h, weft_scale(next, 0.5));
    weft_scan_end(s);
    const weft_value seen = weft_scan_stack(next, inner);
    const weft_value product = weft_einsum(WEFT_DIMS(hidden), seen, seen);
    weft_scan_next(g, weft_scan_last(h));
    weft_scan_end(t);
    output_gradient(b, weft_scan_stack(seen, steps), xs);
    weft_oracle_output(b, weft_scan_stack(product, steps));
}

/* One part of the next value is there while the old one is still read: they lie in different memory. */
static void build_late(weft_oracle_build *b)
{
    const weft_dim first = {"first", 2}, rest = {"rest", 3};
    const weft_value xs = input(b, WEFT_DIMS(steps, first, other));
    const weft_value z = input(b, WEFT_DIMS(rest, batch, first, other));
    const weft_value begin = input(b, WEFT_DIMS(batch, hidden));
    const weft_value trip = weft_scan_begin(b->graph, TRIPS), h = weft_scan_carry(begin);
    const weft_value a = weft_tanh(weft_scan_each(xs, steps));
    const weft_value q = weft_einsum(WEFT_DIMS(batch, first), weft_rename(a, other, hidden), h);
    const weft_value c = weft_tanh(weft_einsum(WEFT_DIMS(rest, other), z, q));
    weft_scan_next(h, weft_rename(weft_concat(a, c, first, rest, batch), other, hidden));
    weft_scan_end(trip);
    weft_oracle_output(b, weft_scan_last(h));
}

/* A loop reads a tensor and a slice of it, for the last time: its result is not made there. */
static void build_last_read(weft_oracle_build *b)
{
    const weft_dim one = {"one", 1};
    const weft_value xs = input(b, WEFT_DIMS(steps, batch, in));
    const weft_value w = input(b, WEFT_DIMS(in, hidden)), u = input(b, WEFT_DIMS(hidden, in));
    const weft_value none = weft_constant(b->graph, WEFT_F64, WEFT_DIMS(batch, in), 0.0);
    const weft_value trip = weft_scan_begin(b->graph, TRIPS), h = weft_scan_carry(none);
    const weft_value x = weft_tanh(weft_add(weft_scan_each(xs, steps), h));
    const weft_value p = weft_einsum(WEFT_DIMS(batch, hidden), x, w);
    const weft_value s = weft_reshape(weft_slice(p, hidden, 2, one), WEFT_DIMS(batch));
    weft_scan_next(h, weft_einsum(WEFT_DIMS(batch, in), weft_tanh(weft_mul(p, s)), u));
    weft_scan_end(trip);
    weft_oracle_output(b, weft_scan_last(h));
}

static const bool gru = true, lstm = false;
static const weft_oracle_case cases[] = {
    {.name = "lstm",
     .build = build_recurrent,
     .argument = &lstm,
     .layout = "batch:data?,hidden:model?"},
    {.name = "gru",
     .build = build_recurrent,
     .argument = &gru,
     .layout = "in:model?,both:data?,gate:model?"},
    {.name = "places", .build = build_places, .layout = "hidden:data?"},
    {.name = "slices", .build = build_slices, .layout = "batch:data?,half:model?"},
    {.name = "nested", .build = build_nested, .layout = "steps:data?,hidden:model?"},
    {.name = "late", .build = build_late, .layout = "batch:data?,hidden:model?"},
    {.name = "last read", .build = build_last_read, .layout = "batch:data?,hidden:model?"}};
enum { N_CASES = sizeof cases / sizeof *cases };

/* ---- plans ---------------------------------------------------------------------------------------- */

/* Steps of bodies that do one of the ops; of scans they are copies. */
static int count(const weft_program *program, const char *const *ops)
{
    weft_error error = {0};
    int n = 0;
    for (int s = 0; program != NULL && s < weft_plan_n_steps(program); s++) {
        weft_planned_step step;
        CHECK_OK(weft_plan_step_at(program, s, 0, &step, &error), error);
        const bool is_one = step.kind == WEFT_STEP_KERNEL || step.kind == WEFT_STEP_COPY;
        for (int i = 0; is_one && step.trips > 1 && ops[i] != NULL; i++)
            n += strcmp(step.op, ops[i]) == 0;
    }
    return n;
}

/* An LSTM of one direction. A trip sees and cuts without a copy. Three tensors are copied: what is carried into the memory that
 * it is carried in, and what lies there into stacks. */
static void test_a_trip_of_an_lstm_copies_what_is_carried_alone(void)
{
    static const char *const seen[] = {"scan_each", "slice", "reshape", "concat", "reindex", NULL};
    static const char *const kept[] = {"scan_stack", "scan_next", "rename", NULL};
    weft_error error = {0};
    weft_program *program = NULL;
    weft_oracle_build b = {.graph = weft_graph_create(3)};
    const weft_value x = input(&b, WEFT_DIMS(steps, batch, in));
    const weft_recurrent_options options = {
        .name = "layer", .over = steps, .feature = in, .hidden = hidden};
    output_gradient(&b, weft_lstm(x, &options, NULL), x);
    const weft_values values = {b.outputs, b.n_outputs};
    CHECK_OK(weft_compile(oracle.alone, NULL, values, NULL, &program, &error), error);
    CHECK_EQ_INT(count(program, seen), 0);
    CHECK(count(program, kept) <= 6);
    CHECK_EQ_INT(weft_program_destroy(&program), WEFT_OK);
    CHECK_EQ_INT(weft_graph_destroy(&b.graph), WEFT_OK);
}

/* Both halves of what a trip sees have a gradient of bf16, which are added up in f32. None is put among zeros for that. */
static void test_parts_of_bf16_are_made_where_they_are_joined(void)
{
    static const char *const copies[] = {"scan_each", "slice", "concat",     "reindex",
                                         "add",       "cast",  "scan_stack", NULL};
    const weft_dim half = {"half", 3};
    weft_error error = {0};
    weft_program *program = NULL;
    weft_oracle_build b = {.graph = weft_graph_create(3)};
    const weft_value xs = weft_oracle_input(&b, WEFT_BF16, WEFT_DIMS(steps, hidden), -1.0, 1.0);
    const weft_value trip = weft_scan_begin(b.graph, TRIPS), x = weft_scan_each(xs, steps);
    const weft_value low = weft_slice(x, hidden, 0, half), high = weft_slice(x, hidden, 3, half);
    const weft_value sum = weft_add(weft_scale(low, 2.0), weft_scale(high, 3.0));
    weft_scan_end(trip);
    weft_value d;
    weft_gradients(weft_sum(WEFT_SCALAR, weft_cast(weft_scan_stack(sum, steps), WEFT_F32)),
                   WEFT_VALUES(xs), &d, 0);
    d = weft_cast(d, WEFT_F32);
    float found[TRIPS * 6] = {0};
    CHECK_OK(weft_compile(oracle.alone, NULL, WEFT_VALUES(d), NULL, &program, &error), error);
    CHECK_OK(weft_oracle_fill(&b, program, &error), error);
    CHECK_OK(weft_run(program, &error), error);
    CHECK_OK(weft_read(program, d, WEFT_F32, found, sizeof found, &error), error);
    for (int i = 0; i < TRIPS * 6; i++)
        CHECK(found[i] == (i % 6 < 3 ? 2.0F : 3.0F));
    CHECK_EQ_INT(count(program, copies), 0);
    CHECK_EQ_INT(weft_program_destroy(&program), WEFT_OK);
    CHECK_EQ_INT(weft_graph_destroy(&b.graph), WEFT_OK);
}

/* ---- numbers -------------------------------------------------------------------------------------- */

#include "measured_cases.h"
#include "scan_sweeps.h"

/* What is made before a guard may not be the next value yet, whatever it is called behind it. */
static void test_a_trip_that_is_broken_off_leaves_what_is_carried(void)
{
    weft_error error = {0};
    weft_program *program = NULL;
    weft_oracle_build b = {.graph = weft_graph_create(3)};
    const weft_value first = input(&b, WEFT_DIMS(hidden)), w = input(&b, WEFT_DIMS(hidden, other));
    const weft_value limit = weft_constant(b.graph, WEFT_F64, WEFT_SCALAR, 100.0);
    const weft_value trip = weft_scan_begin(b.graph, TRIPS), x = weft_scan_carry(first);
    const weft_value p = weft_scale(weft_einsum(WEFT_DIMS(other), x, w), 4.0);
    weft_scan_while(weft_less(weft_sum(WEFT_SCALAR, weft_square(p)), limit));
    weft_scan_next(x, weft_rename(p, other, hidden));
    weft_scan_end(trip);
    const weft_value squares = weft_sum(WEFT_SCALAR, weft_square(weft_scan_last(x)));
    double found = 0;
    CHECK_OK(weft_compile(oracle.alone, NULL, WEFT_VALUES(squares), NULL, &program, &error), error);
    CHECK_OK(weft_oracle_fill(&b, program, &error), error);
    CHECK_OK(weft_run(program, &error), error);
    CHECK_OK(weft_read_scalar(program, squares, &found, &error), error);
    CHECK(found > 0.0 && found < 100.0);
    CHECK_EQ_INT(weft_program_destroy(&program), WEFT_OK);
    CHECK_EQ_INT(weft_graph_destroy(&b.graph), WEFT_OK);
}

int main(void)
{
    static const char *const meshes[] = {"data:2", "model:2", "data:2,model:2", "data:3"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 4, &error), error)) {
        RUN(test_a_trip_of_an_lstm_copies_what_is_carried_alone);
        RUN(test_parts_of_bf16_are_made_where_they_are_joined);
        RUN(test_a_trip_that_is_broken_off_leaves_what_is_carried);
        RUN(test_what_is_planned_is_measured);
        RUN(test_meshes_agree);
        RUN(test_trips_written_down_agree);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
