/* RANKS: 2 4 */
/* prefetch_test: what a trip gathers is gathered while the trip before it computes: as many exchanges and bytes, to the byte as
 * measured, and the same bits, on slow links and fast ones.
 */
#include <string.h>

#include "measured.h"
#include "oracle.h"
#include "test.h"
#include "weft/autodiff.h"
#include "weft/layout.h"
#include "weft/research/plan.h"
#include "weft/scan.h"

enum { LAYERS = 5, AGAIN = 3, ROWS = 96, COLUMNS = 10, RUNS = 2 };
static weft_oracle oracle;
static const weft_dim layer = {"layer", LAYERS}, batch = {"batch", ROWS},
                      width = {"width", COLUMNS}, hidden = {"hidden", 7};
typedef enum form { PLAIN, RECOMPUTED, GATED, FORMS } form;
static const char *const layouts[FORMS] = {"batch:data?,hidden:model?", "batch:data?,hidden:model?",
                                           "batch:data?+model?"};
/* On a slow link all that is gathered is waited for. */
static const char *const links[FORMS] = {NULL, "1MB", "1MB"};

enum { WEIGHTS = 5 };
typedef struct training {
    weft_graph *graph;
    int n_weights;
    weft_value x, weights[WEIGHTS], loss, updates[WEIGHTS];
} training;

static weft_value take(weft_graph *g, const char *name, weft_shape shape)
{
    return weft_variable(g, name, WEFT_F64, shape, weft_uniform(-0.4, 0.4));
}

/* A scan within the scan reads weights too. */
static weft_value plain_block(weft_graph *g, weft_value h, const weft_value *w)
{
    const weft_dim lower = {"lower", COLUMNS};
    weft_value y = weft_tanh(weft_einsum(WEFT_DIMS(batch, hidden), h, w[0]));
    y = weft_add(weft_einsum(WEFT_DIMS(batch, width), y, w[1]), w[2]);
    const weft_value within = weft_scan_begin(g, AGAIN), s = weft_scan_carry(y);
    const weft_value mixed = weft_einsum(WEFT_DIMS(batch, hidden), s, w[0]);
    const weft_value down = weft_rename(w[1], width, lower);
    weft_scan_next(
        s, weft_rename(weft_einsum(WEFT_DIMS(batch, lower), weft_tanh(mixed), down), lower, width));
    weft_scan_end(within);
    return weft_add(weft_scan_last(s), h);
}

/* Where weights are gathered over one axis after the other, and biases over one: what is one exchange goes to several readers. */
static weft_value gated_block(weft_value h, const weft_value *w)
{
    const weft_value gate = weft_einsum(WEFT_DIMS(batch, hidden), h, w[0]);
    const weft_value up = weft_einsum(WEFT_DIMS(batch, hidden), h, w[3]);
    const weft_value y = weft_mul(weft_tanh(weft_add(gate, w[2])), weft_add(up, w[4]));
    return weft_einsum(WEFT_DIMS(batch, width), y, w[1]);
}

static void take_weights(training *t, form form)
{
    weft_graph *g = t->graph;
    t->n_weights = form == GATED ? 5 : 3;
    t->weights[0] = take(g, "up", WEFT_DIMS(layer, width, hidden));
    t->weights[1] = take(g, "down", WEFT_DIMS(layer, hidden, width));
    t->weights[2] = take(g, "bias", WEFT_DIMS(layer, form == GATED ? hidden : width));
    if (form != GATED) return;
    t->weights[3] = take(g, "other", WEFT_DIMS(layer, width, hidden));
    t->weights[4] = take(g, "other.bias", WEFT_DIMS(layer, hidden));
}

/* A stack of layers as one scan. */
static void build(training *t, form form)
{
    weft_graph *g = t->graph = weft_graph_create(5);
    weft_value seen[WEIGHTS], d[WEIGHTS];
    t->x = weft_input(g, "x", WEFT_F64, WEFT_DIMS(batch, width));
    take_weights(t, form);
    const weft_value trip = weft_scan_begin(g, LAYERS), h = weft_scan_carry(t->x);
    for (int i = 0; i < t->n_weights; i++)
        seen[i] = weft_scan_each(t->weights[i], layer);
    const weft_value enters = form == RECOMPUTED ? weft_recompute_begin(h) : h;
    weft_value y = form == GATED ? gated_block(enters, seen) : plain_block(g, enters, seen);
    if (form == RECOMPUTED) y = weft_recompute_end(y);
    weft_scan_next(h, weft_tanh(y));
    weft_scan_end(trip);
    t->loss = weft_mean(weft_square(weft_scan_last(h)));
    weft_gradients(t->loss, (weft_values){t->weights, t->n_weights}, d, 0);
    for (int i = 0; i < t->n_weights; i++)
        t->updates[i] = weft_assign(t->weights[i], weft_sub(t->weights[i], weft_scale(d[i], 0.1)));
}

static weft_program *compile(training *t, weft_mesh *mesh, form form, bool is_synchronous)
{
    weft_error error = {0};
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    weft_value values[1 + WEIGHTS] = {t->loss};
    memcpy(values + 1, t->updates, sizeof t->updates);
    const weft_compile_options options = {
        .synchronous = is_synchronous, .link = links[form], .unroll = 1};
    CHECK_OK(weft_layout_create(layouts[form], &layout, &error), error);
    CHECK_OK(weft_layout_store(layout, 3, "batch", &error), error);
    CHECK_OK(weft_compile(mesh, layout, (weft_values){values, 1 + t->n_weights}, &options, &program,
                          &error),
             error);
    weft_layout_destroy(&layout);
    return program;
}

static weft_planned_step step_at(const weft_program *program, int s)
{
    weft_planned_step step;
    weft_error error = {0};
    CHECK_OK(weft_plan_step_at(program, s, 0, &step, &error), error);
    return step;
}

/* ---- the plan -------------------------------------------------------------------------------------- */

/* Exchanges for the trip after; and those of them out of whose memory a step copies. */
static int count_ahead(const weft_program *program, int *n_copied)
{
    int n = 0;
    *n_copied = 0;
    for (int s = 0; s < weft_plan_n_steps(program); s++) {
        const weft_planned_step step = step_at(program, s);
        if (!step.is_ahead || step.kind != WEFT_STEP_CONVERT) continue;
        n++;
        for (int r = 0; r < weft_plan_n_steps(program); r++) {
            const weft_planned_step reader = step_at(program, r);
            *n_copied += reader.kind == WEFT_STEP_COPY && reader.in[0] == step.out[0];
        }
    }
    return n;
}

/* Each stands once more in front of its scan, for the first trip, and so there are as many as trips. */
static void check_first_trips(const weft_program *program)
{
    for (int s = 0; s < weft_plan_n_steps(program); s++) {
        const weft_planned_step step = step_at(program, s);
        double times = 0;
        if (!step.is_ahead) continue;
        for (int f = 0; f < weft_plan_n_steps(program); f++) {
            const weft_planned_step other = step_at(program, f);
            if (other.kind == step.kind && other.n_out > 0 && other.out[0] == step.out[0])
                times += other.trips;
            CHECK(other.n_out == 0 || other.out[0] != step.out[0] || other.is_ahead || f < s);
        }
        CHECK(times == LAYERS);
    }
}

static void check_same_traffic(const weft_program *a, const weft_program *b)
{
    weft_traffic its[64], others[64];
    for (int rank = 0; rank < weft_mesh_n_ranks(weft_program_mesh(a)); rank++) {
        const int n = weft_plan_traffic(a, rank, its, 64);
        if (!CHECK_EQ_INT(weft_plan_traffic(b, rank, others, 64), n)) continue;
        for (int i = 0; i < n; i++) { /* they are listed as they come in the plan */
            int o = 0;
            while (o < n - 1 && (others[o].axes != its[i].axes || others[o].kind != its[i].kind))
                o++;
            CHECK_EQ_INT(its[i].count, others[o].count);
            CHECK_EQ_INT(its[i].bytes, others[o].bytes);
        }
    }
}

static void test_no_more_is_exchanged(void)
{
    int most = 0, most_copied = 0;
    for (int m = 0; m < oracle.n_meshes; m++)
        for (form form = 0; form < FORMS; form++) {
            training t, u;
            int n_copied, none;
            build(&t, form);
            build(&u, form);
            weft_program *ahead = compile(&t, oracle.meshes[m], form, false);
            weft_program *plain = compile(&u, oracle.meshes[m], form, true);
            const int n = count_ahead(ahead, &n_copied);
            if (n > most) most = n;
            if (n_copied > most_copied) most_copied = n_copied;
            CHECK_EQ_INT(count_ahead(plain, &none), 0);
            check_first_trips(ahead);
            check_same_traffic(ahead, plain);
            CHECK_EQ_INT(weft_program_destroy(&ahead), WEFT_OK);
            CHECK_EQ_INT(weft_program_destroy(&plain), WEFT_OK);
            weft_graph_destroy(&t.graph);
            weft_graph_destroy(&u.graph);
        }
    CHECK(most > 0);
    CHECK(most_copied > 0);
}

/* ---- numbers --------------------------------------------------------------------------------------- */

/* The weights after a few steps. */
static void train(training *t, weft_program *program, double *weights)
{
    double x[ROWS * COLUMNS];
    weft_error error = {0};
    for (int i = 0; i < ROWS * COLUMNS; i++)
        x[i] = weft_oracle_unit(0, i);
    CHECK_OK(weft_write(program, t->x, WEFT_F64, x, sizeof x, &error), error);
    for (int run = 0; run < RUNS; run++) {
        CHECK_OK(weft_run(program, &error), error);
        check_measured(program);
    }
    CHECK_OK(weft_read(program, t->weights[0], WEFT_F64, weights,
                       (int64_t)sizeof(double) * LAYERS * COLUMNS * 7, &error),
             error);
}

static void test_the_bits_are_those_of_one_step_after_the_other(void)
{
    for (int m = 0; m < oracle.n_meshes; m++)
        for (form form = 0; form < FORMS; form++) {
            static double ahead[LAYERS * COLUMNS * 7], plain[LAYERS * COLUMNS * 7];
            for (int is_plain = 0; is_plain < 2; is_plain++) {
                training t;
                build(&t, form);
                weft_program *program = compile(&t, oracle.meshes[m], form, is_plain);
                train(&t, program, is_plain ? plain : ahead);
                CHECK_EQ_INT(weft_program_destroy(&program), WEFT_OK);
                weft_graph_destroy(&t.graph);
            }
            CHECK(memcmp(ahead, plain, sizeof ahead) == 0);
        }
}

int main(void)
{
    static const char *const meshes[] = {"data:2", "data:4", "data:2,model:2"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 3, &error), error)) {
        RUN(test_no_more_is_exchanged);
        RUN(test_the_bits_are_those_of_one_step_after_the_other);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
