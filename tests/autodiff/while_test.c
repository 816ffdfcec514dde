/* RANKS: 2 4 */
/* while_test: a scan with a condition is the program written down whose trips are masked by it, and so are its gradients, and
 * theirs: from none of its trips to all of them, whatever stands before the condition, in other scans, under placements; what
 * is not made is not run.
 */
#include "pairs.h"
#include "weft/research/plan.h"

static const weft_dim batch = {"batch", 5}, hidden = {"hidden", 4}, to = {"to", 4};
static const weft_dim steps = {"steps", 6}, turns = {"turns", 3};

typedef struct net {
    weft_value xs, h0, u;
} net;

static net net_of(weft_oracle_build *b)
{
    return (net){weft_oracle_input(b, WEFT_F64, WEFT_DIMS(steps, batch, hidden), -0.3, 0.3),
                 weft_oracle_input(b, WEFT_F64, WEFT_DIMS(batch, hidden), -1.0, 1.0),
                 weft_oracle_input(b, WEFT_F64, WEFT_DIMS(hidden, to), -0.5, 0.5)};
}

static weft_value square_sum(weft_value h)
{
    return weft_sum(WEFT_SCALAR, weft_square(h));
}

static weft_value is_above(weft_value s, double limit)
{
    return weft_less(weft_constant(s.graph, WEFT_F64, WEFT_SCALAR, limit), s);
}

/* The logarithm has no slope where a trip that was not made left 0. */
static weft_value step(weft_value h, weft_value x, weft_value u)
{
    const weft_value mixed = weft_rename(weft_einsum(WEFT_DIMS(batch, to), h, u), to, hidden);
    const weft_value level = weft_scale(weft_log(square_sum(h)), 0.01);
    return weft_tanh(weft_add(weft_add(mixed, x), level));
}

/* What goes from trip to trip where trips are masked. */
typedef struct masked {
    weft_value h, on, trips, loss;
} masked;

static masked masked_begin(weft_value h)
{
    return (masked){h, weft_constant(h.graph, WEFT_I32, WEFT_SCALAR, 1.0),
                    weft_constant(h.graph, WEFT_F64, WEFT_SCALAR, 0.0),
                    weft_constant(h.graph, WEFT_F64, WEFT_SCALAR, 0.0)};
}

static void masked_trip(masked *m, weft_value condition, weft_value next, int64_t t)
{
    const weft_value one = weft_constant(next.graph, WEFT_F64, WEFT_SCALAR, 1.0);
    const weft_value none = weft_constant(next.graph, WEFT_F64, WEFT_SCALAR, 0.0);
    m->on = weft_logical_and(m->on, condition);
    m->h = weft_where(m->on, next, m->h);
    m->trips = weft_add(m->trips, weft_where(m->on, one, none));
    m->loss =
        weft_add(m->loss, weft_where(m->on, weft_scale(square_sum(next), (double)(t + 1)), none));
}

typedef struct limits {
    double limit;
    bool is_behind; /* the condition is on what the trip makes */
    bool is_idle;   /* no trip is made */
} limits;

static masked written(const net *n, const limits *l)
{
    masked m = masked_begin(n->h0);
    for (int64_t t = 0; t < steps.size; t++) {
        const weft_value next = step(m.h, element_of(n->xs, steps, t), n->u);
        masked_trip(&m, is_above(square_sum(l->is_behind ? next : m.h), l->limit), next, t);
    }
    m.loss = weft_add(m.loss, weft_sum(WEFT_SCALAR, weft_exp(m.h)));
    return m;
}

static masked scanned(const net *n, const limits *l)
{
    weft_graph *g = n->xs.graph;
    const weft_value none = weft_constant(g, WEFT_F64, WEFT_SCALAR, 0.0);
    const weft_value trip = weft_scan_begin(g, steps.size), h = weft_scan_carry(n->h0);
    const weft_value trips = weft_scan_carry(none), x = weft_scan_each(n->xs, steps);
    weft_value next = {0};
    if (l->is_behind) {
        next = step(h, x, n->u);
        weft_scan_while(is_above(square_sum(next), l->limit));
    } else {
        weft_scan_while(is_above(square_sum(h), l->limit));
        next = step(h, x, n->u);
    }
    weft_scan_next(h, next);
    weft_scan_next(trips, weft_add(trips, weft_constant(g, WEFT_F64, WEFT_SCALAR, 1.0)));
    weft_scan_end(trip);
    const weft_value hs = weft_scan_stack(next, steps), number = weft_iota(g, WEFT_I32, steps);
    const weft_value weight =
        weft_add(weft_cast(number, WEFT_F64), weft_constant(g, WEFT_F64, WEFT_SCALAR, 1.0));
    masked m = {.h = weft_scan_last(h), .trips = weft_scan_last(trips)};
    m.loss = weft_add(weft_sum(WEFT_SCALAR, weft_mul(weft_square(hs), weight)),
                      weft_sum(WEFT_SCALAR, weft_exp(m.h)));
    return m;
}

static void output_pair(weft_oracle_build *b, weft_value x, weft_value y)
{
    weft_oracle_output(b, x);
    weft_oracle_output(b, y);
}

static void build_while(weft_oracle_build *b)
{
    const limits *l = b->argument;
    const net n = net_of(b);
    const masked a = scanned(&n, l), m = written(&n, l);
    weft_value da[3], dm[3];
    weft_gradients(a.loss, WEFT_VALUES(n.xs, n.h0, n.u), da, 0);
    weft_gradients(m.loss, WEFT_VALUES(n.xs, n.h0, n.u), dm, 0);
    output_pair(b, a.h, m.h);
    output_pair(b, da[1], dm[1]);
    if (l->is_idle) return;
    output_pair(b, a.trips, m.trips);
    output_pair(b, da[0], dm[0]);
    output_pair(b, da[2], dm[2]);
}

static int64_t trips_of(const limits *l)
{
    weft_oracle_result r;
    weft_error error = {0};
    const weft_oracle_case what = {.name = "while", .build = build_while, .argument = l};
    if (!CHECK_OK(weft_oracle_run(oracle.alone, &what, NULL, &r, &error), error)) return -1;
    const int64_t trips = r.n_outputs > 4 ? (int64_t)r.data[4][0] : 0;
    weft_oracle_free(&r);
    return trips;
}

static void test_trips_are_made_while_a_condition_holds(void)
{
    static const limits some = {.limit = 0.9}, behind = {.limit = 0.9, .is_behind = true},
                        none = {.limit = 1e3, .is_idle = true}, none_behind = {1e3, true, true},
                        all = {.limit = -1.0};
    CHECK(trips_of(&some) > 1 && trips_of(&some) < steps.size);
    CHECK_EQ_INT(trips_of(&behind), trips_of(&some) - 1);
    CHECK_EQ_INT(trips_of(&all), steps.size);
    check_pairs(&(weft_oracle_case){"some", build_while, &some}, 10);
    check_pairs(&(weft_oracle_case){"behind", build_while, &behind}, 10);
    check_pairs(&(weft_oracle_case){"none", build_while, &none}, 8);
    check_pairs(&(weft_oracle_case){"none, behind", build_while, &none_behind}, 8);
    check_pairs(&(weft_oracle_case){"all", build_while, &all}, 8);
    check_pairs(&(weft_oracle_case){"by batch", build_while, &some, "batch:data?,hidden:model?"},
                8);
}

/* The gradient of the gradients' squares. */
static weft_value slope(weft_value loss, const net *n, weft_value *second)
{
    weft_value first[3], sum = {0};
    weft_gradients(loss, WEFT_VALUES(n->xs, n->h0, n->u), first, 0);
    for (int i = 0; i < 3; i++)
        sum = i == 0 ? square_sum(first[i]) : weft_add(sum, square_sum(first[i]));
    return weft_gradients(sum, WEFT_VALUES(n->xs, n->h0, n->u), second, 0);
}

static void build_second(weft_oracle_build *b)
{
    const net n = net_of(b);
    weft_value da[3], dm[3];
    slope(scanned(&n, b->argument).loss, &n, da);
    slope(written(&n, b->argument).loss, &n, dm);
    for (int i = 0; i < 3; i++)
        output_pair(b, da[i], dm[i]);
}

static void test_second_gradients_are_those_of_masked_trips(void)
{
    static const limits some = {.limit = 0.9}, behind = {.limit = 0.9, .is_behind = true};
    check_pairs(&(weft_oracle_case){"second", build_second, &some}, 8);
    check_pairs(&(weft_oracle_case){"second, behind", build_second, &behind}, 8);
}

/* ---- against finite differences ------------------------------------------------------------------ */

static double loss_at(weft_program *program, const weft_oracle_build *b, double *data, int64_t i,
                      double value)
{
    const double kept = data[i];
    double loss = NAN;
    weft_error error = {0};
    data[i] = value;
    CHECK_OK(weft_oracle_write(program, b->inputs[1], data, &error), error);
    CHECK_OK(weft_run(program, &error), error);
    CHECK_OK(weft_read_scalar(program, b->outputs[0], &loss, &error), error);
    data[i] = kept;
    return loss;
}

static void test_gradients_are_slopes(void)
{
    static const limits some = {.limit = 0.9};
    const double h = 1e-5;
    double *data = NULL, *d = NULL;
    weft_error error = {0};
    weft_program *program = NULL;
    weft_oracle_build b = {.graph = weft_graph_create(7)};
    const net n = net_of(&b);
    weft_value slope_of_h0;
    weft_oracle_output(&b, scanned(&n, &some).loss);
    weft_oracle_output(&b, weft_gradients(b.outputs[0], WEFT_VALUES(n.h0), &slope_of_h0, 0));
    const weft_values values = {b.outputs, b.n_outputs};
    if (!CHECK_OK(weft_compile(oracle.alone, NULL, values, NULL, &program, &error), error)) return;
    CHECK_OK(weft_oracle_fill(&b, program, &error), error);
    CHECK_OK(weft_run(program, &error), error);
    CHECK_OK(weft_oracle_read(program, b.outputs[1], &d, &error), error);
    CHECK_OK(weft_oracle_read(program, b.inputs[1], &data, &error), error);
    for (int64_t i = 0; i < batch.size * hidden.size; i++) {
        const double up = loss_at(program, &b, data, i, data[i] + h);
        const double down = loss_at(program, &b, data, i, data[i] - h);
        CHECK(fabs((up - down) / (2 * h) - d[i]) < 1e-7 * fmax(1.0, fabs(d[i])));
    }
    free(data);
    free(d);
    CHECK_EQ_INT(weft_program_destroy(&program), WEFT_OK);
    weft_graph_destroy(&b.graph);
}

/* ---- in other scans ------------------------------------------------------------------------------ */

static weft_value turn(weft_value g, weft_value h, weft_value w)
{
    return weft_scale(weft_sin(weft_add(weft_mul(g, w), h)), 0.8);
}

/* Of trips of the outer scan, those that a flag says, or while what it carries is large; of the inner one as ever. */
static void build_nested(weft_oracle_build *b)
{
    const bool *is_while = b->argument;
    weft_graph *graph = b->graph;
    const weft_value xs = weft_oracle_input(b, WEFT_F64, WEFT_DIMS(steps, batch), -0.5, 0.5);
    const weft_value h0 = weft_oracle_input(b, WEFT_F64, WEFT_DIMS(batch), 0.5, 1.0);
    const weft_value w = weft_oracle_input(b, WEFT_F64, WEFT_DIMS(batch), 0.5, 1.0);
    const weft_value flags = weft_oracle_input(b, WEFT_I32, WEFT_DIMS(steps), 0, 2);
    weft_value da[3], dm[3];

    const weft_value outer = weft_scan_begin(graph, steps.size), h = weft_scan_carry(h0);
    if (*is_while)
        weft_scan_while(is_above(square_sum(h), 0.4));
    else
        weft_scan_if(weft_scan_each(flags, steps));
    const weft_value g0 = weft_add(weft_scan_each(xs, steps), h);
    const weft_value inner = weft_scan_begin(graph, turns.size), g = weft_scan_carry(g0);
    weft_scan_while(is_above(square_sum(g), 1.5));
    const weft_value g_next = turn(g, h, w);
    weft_scan_next(g, g_next);
    weft_scan_end(inner);
    const weft_value gs = weft_scan_stack(g_next, turns);
    weft_scan_next(h, weft_scale(weft_scan_last(g), 0.7));
    weft_scan_end(outer);
    const weft_value all = weft_scan_stack(gs, steps), last = weft_scan_last(h);
    weft_gradients(weft_add(square_sum(all), weft_sum(WEFT_SCALAR, last)), WEFT_VALUES(xs, h0, w),
                   da, 0);

    masked m = masked_begin(h0);
    weft_value loss = weft_constant(graph, WEFT_F64, WEFT_SCALAR, 0.0), none = loss;
    for (int64_t t = 0; t < steps.size; t++) {
        const weft_value on =
            *is_while ? is_above(square_sum(m.h), 0.4) : element_of(flags, steps, t);
        masked in = masked_begin(weft_add(element_of(xs, steps, t), m.h));
        weft_value squares = none;
        for (int64_t k = 0; k < turns.size; k++) {
            const weft_value next = turn(in.h, m.h, w);
            masked_trip(&in, is_above(square_sum(in.h), 1.5), next, k);
            squares = weft_add(squares, weft_where(in.on, square_sum(next), none));
        }
        if (!*is_while) m.on = weft_constant(graph, WEFT_I32, WEFT_SCALAR, 1.0);
        masked_trip(&m, on, weft_scale(in.h, 0.7), t);
        loss = weft_add(loss, weft_where(m.on, squares, none));
    }
    weft_gradients(weft_add(loss, weft_sum(WEFT_SCALAR, m.h)), WEFT_VALUES(xs, h0, w), dm, 0);
    output_pair(b, last, m.h);
    for (int i = 0; i < 3; i++)
        output_pair(b, da[i], dm[i]);
}

static void test_conditions_stand_in_other_scans(void)
{
    static const bool is_while = true, is_if = false;
    check_pairs(&(weft_oracle_case){"while in if", build_nested, &is_if}, 10);
    check_pairs(&(weft_oracle_case){"while in while", build_nested, &is_while}, 10);
}

/* ---- random numbers ------------------------------------------------------------------------------ */

/* The gradient of a sum by what is dropped from is the mask; where no trip was made, 0. */
static void build_masks(weft_oracle_build *b)
{
    const weft_dim many = {"many", 64};
    const weft_value xs = weft_oracle_input(b, WEFT_F64, WEFT_DIMS(steps, many), 1.0, 2.0);
    weft_value d[1];
    const weft_value trip = weft_scan_begin(b->graph, steps.size);
    weft_scan_while(weft_less(trip, weft_constant(b->graph, WEFT_I32, WEFT_SCALAR, 4.0)));
    const weft_value y = weft_dropout(weft_scan_each(xs, steps), 0.5);
    weft_scan_end(trip);
    const weft_value ys = weft_scan_stack(y, steps);
    weft_gradients(weft_sum(WEFT_SCALAR, ys), WEFT_VALUES(xs), d, 0);
    output_pair(b, weft_mul(xs, d[0]), ys);
}

static void test_masks_are_the_same_on_the_way_back(void)
{
    check_pairs(&(weft_oracle_case){.name = "masks", .build = build_masks}, 8);
}

/* ---- what is not made is not run ------------------------------------------------------------------ */

enum { MOST = 400 };

/* Halved until it is small, on any mesh after as many trips. */
static void build_long(weft_oracle_build *b)
{
    const weft_dim most = {"most", MOST};
    const weft_value h0 = weft_oracle_input(b, WEFT_F64, WEFT_DIMS(batch, hidden), 0.5, 1.0);
    weft_value d[1];
    const weft_value trip = weft_scan_begin(b->graph, MOST), h = weft_scan_carry(h0);
    const weft_value s = square_sum(h);
    weft_scan_while(is_above(s, 1e-6));
    const weft_value next = weft_scale(h, 0.5);
    weft_scan_next(h, next);
    weft_scan_end(trip);
    const weft_value loss = weft_sum(WEFT_SCALAR, weft_scan_stack(next, most));
    weft_oracle_output(b, weft_gradients(loss, WEFT_VALUES(h0), d, 0));
    weft_oracle_output(b, weft_scan_stack(s, most));
}

static void check_short(weft_mesh *mesh, const char *rules)
{
    weft_usage plan, run;
    weft_traffic planned[64], measured[64];
    weft_error error = {0};
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    weft_oracle_build b = {.graph = weft_graph_create(7)};
    build_long(&b);
    const weft_values values = {b.outputs, b.n_outputs};
    const int rank = weft_mesh_first_local(mesh);
    CHECK_OK(weft_layout_create(rules, &layout, &error), error);
    if (CHECK_OK(weft_compile(mesh, layout, values, NULL, &program, &error), error)) {
        for (int i = 0; i < 2; i++) {
            CHECK_OK(weft_oracle_fill(&b, program, &error), error);
            CHECK_OK(weft_run(program, &error), error);
        }
        CHECK_OK(weft_plan_usage(program, rank, &plan, &error), error);
        weft_measured_usage(program, rank, &run);
        CHECK(plan.n_steps > 5 * MOST);
        CHECK(run.n_steps > MOST && run.n_steps < 5 * MOST); /* back, each trip asks */
        CHECK_EQ_INT(plan.arena_bytes, run.arena_bytes);
        const int n = weft_plan_traffic(program, rank, planned, 64);
        CHECK_EQ_INT(weft_measured_traffic(program, rank, measured, 64), n);
        for (int i = 0; i < n; i++)
            CHECK(measured[i].count <= planned[i].count);
    }
    CHECK_EQ_INT(weft_program_destroy(&program), WEFT_OK);
    weft_layout_destroy(&layout);
    weft_graph_destroy(&b.graph);
}

static void test_what_is_not_made_is_not_run(void)
{
    weft_oracle_sweep(&oracle, &(weft_oracle_case){.name = "long", .build = build_long}, 6);
    check_short(oracle.alone, NULL);
    for (int m = 0; m < oracle.n_meshes; m++)
        check_short(oracle.meshes[m], "batch:data?,hidden:model?");
}

int main(void)
{
    static const char *const meshes[] = {"data:2", "data:3", "model:2", "data:4", "data:2,model:2"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 5, &error), error)) {
        RUN(test_trips_are_made_while_a_condition_holds);
        RUN(test_second_gradients_are_those_of_masked_trips);
        RUN(test_gradients_are_slopes);
        RUN(test_conditions_stand_in_other_scans);
        RUN(test_masks_are_the_same_on_the_way_back);
        RUN(test_what_is_not_made_is_not_run);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
