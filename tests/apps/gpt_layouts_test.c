/* RANKS: 2 3 4 8 */
/* gpt_layouts_test: one transformer, every layout: the same initial weights to the bit, the same
 * losses of twenty steps (dropout, adamw, clipping), traffic and memory exactly as planned, and
 * with ZeRO a share of the state.
 *
 * Sizes are chosen so that hardly anything divides: batch 7, heads 3, vocab 29.
 */
#include "apps/gpt/model.h"
#include "oracle.h"
#include "weft/optim.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpt_layouts.h"
#include "test.h"

enum { STEPS = 20, MAX_VARIABLES = 64 };

/* A model made ready to train on one mesh. */
typedef struct training {
    weft_graph *graph;
    weft_program *program;
    gpt_model model;
    weft_value loss, norm;
} training;

/* What one training gave. */
typedef struct outcome {
    double losses[STEPS], norms[STEPS];
    int n_variables;
    double *initial[MAX_VARIABLES]; /* every variable and slot before the first step */
    int64_t counts[MAX_VARIABLES];
} outcome;

static weft_oracle oracle;

static gpt_shape shape_of(weft_dtype dtype)
{
    return (gpt_shape){.batch = 7,
                       .seq = 12,
                       .layers = 2,
                       .width = 24,
                       .heads = 3,
                       .hidden = 40,
                       .vocab = 29,
                       .dropout = 0.1,
                       .dtype = dtype};
}

static weft_status open_training(weft_mesh *mesh, const gpt_layout *c, weft_dtype dtype,
                                 training *t, weft_error *error)
{
    weft_layout *layout = NULL;
    const gpt_shape shape = shape_of(dtype);
    *t = (training){.graph = weft_graph_create(1234)};
    t->loss = gpt_loss(&shape, t->graph, &t->model);
    weft_value update = weft_adamw(
        t->loss, &(weft_optimizer_options){.rate = 3e-3, .clip = 0.5, .gradient_norm = &t->norm});
    WEFT_TRY(weft_layout_create(c->layout, &layout, error));
    WEFT_TRY(weft_layout_store(layout, c->zero, "batch", error));
    const weft_status status =
        weft_compile(mesh, layout, WEFT_VALUES(t->loss, t->norm, update), NULL, &t->program, error);
    weft_layout_destroy(&layout);
    return status;
}

static void close_training(training *t)
{
    weft_program_destroy(&t->program);
    weft_graph_destroy(&t->graph);
}

static weft_status write_step(const training *t, int step, weft_error *error)
{
    double tokens[7 * 12], targets[7 * 12];
    for (int i = 0; i < 7 * 12; i++) {
        tokens[i] = (i * i + 7 * i + 3 * step) % 29;
        targets[i] = (3 * i + i / 5 + step) % 29;
    }
    WEFT_TRY(weft_oracle_write(t->program, t->model.tokens, tokens, error));
    return weft_oracle_write(t->program, t->model.targets, targets, error);
}

static weft_status read_initial(const training *t, outcome *o, weft_error *error)
{
    for (int k = 0; k < MAX_VARIABLES; k++) {
        const weft_value variable = weft_variable_at(t->program, k);
        if (variable.id == 0) return WEFT_OK;
        o->counts[k] = weft_shape_count(weft_shape_of(variable));
        WEFT_TRY(weft_oracle_read(t->program, variable, &o->initial[k], error));
        o->n_variables++;
    }
    return WEFT_OK;
}

static weft_status run_training(const training *t, outcome *o, weft_error *error)
{
    WEFT_TRY(read_initial(t, o, error));
    for (int step = 0; step < STEPS; step++) {
        WEFT_TRY(write_step(t, step, error));
        WEFT_TRY(weft_run(t->program, error));
        WEFT_TRY(weft_read_scalar(t->program, t->loss, &o->losses[step], error));
        WEFT_TRY(weft_read_scalar(t->program, t->norm, &o->norms[step], error));
    }
    return WEFT_OK;
}

static void free_outcome(outcome *o)
{
    for (int k = 0; k < MAX_VARIABLES; k++)
        free(o->initial[k]);
}

/* ---- the checks ------------------------------------------------------------------------------ */

static void check_text(bool passed, int line, const gpt_layout *c, weft_dtype dtype,
                       const char *what)
{
    char text[900];
    snprintf(text, sizeof text, "%s \"%s\" --zero %d %s: %s", c->mesh, c->layout, c->zero,
             weft_dtype_name(dtype), what);
    weft_test_check(passed, __FILE__, line, text);
}

static void check_same(const gpt_layout *c, weft_dtype dtype, const outcome *expected,
                       const outcome *found)
{
    const double tolerance = dtype == WEFT_F64 ? 1e-10 : 1e-4;
    char text[200];
    bool same = expected->n_variables == found->n_variables && expected->n_variables > 0;
    for (int k = 0; same && k < expected->n_variables; k++)
        same = expected->counts[k] == found->counts[k] &&
               memcmp(expected->initial[k], found->initial[k],
                      (size_t)expected->counts[k] * sizeof(double)) == 0;
    check_text(same, __LINE__, c, dtype, "initial weights are not bit for bit those of one rank");
    for (int step = 0; step < STEPS; step++) {
        const double x = expected->losses[step], y = found->losses[step];
        const double n = expected->norms[step], m = found->norms[step];
        const bool close =
            fabs(x - y) <= tolerance * fabs(x) && fabs(n - m) <= 100 * tolerance * fabs(n);
        snprintf(text, sizeof text,
                 "step %d: loss %.17g and one rank's %.17g, norm %.17g and %.17g", step + 1, y, x,
                 m, n);
        check_text(close, __LINE__, c, dtype, text);
        if (!close) return; /* later steps only follow */
    }
}

/* What was sent is what was planned, with the same counts and bytes. */
static void check_traffic(const gpt_layout *c, weft_dtype dtype, int rank,
                          const weft_program *program)
{
    enum { room = 64 };
    weft_traffic planned[room], measured[room];
    const int n = weft_plan_traffic(program, rank, planned, room);
    check_text(n <= room && weft_measured_traffic(program, rank, measured, room) == n, __LINE__, c,
               dtype, "as many kinds of traffic as planned");
    for (int i = 0; i < n && i < room; i++) {
        const weft_traffic *x = &planned[i], *y = &measured[i];
        char text[200];
        snprintf(text, sizeof text,
                 "rank %d, axes %#x: %s %lld times %lld bytes, but %lld times %lld bytes", rank,
                 x->axes, weft_convert_name(x->kind), (long long)x->count, (long long)x->bytes,
                 (long long)y->count, (long long)y->bytes);
        const bool same = x->axes == y->axes && x->kind == y->kind && x->count == y->count &&
                          x->bytes == y->bytes && x->count > 0;
        check_text(same, __LINE__, c, dtype, text);
    }
}

static void check_measured(const gpt_layout *c, weft_dtype dtype, weft_mesh *mesh,
                           const training *t)
{
    const int first = weft_mesh_first_local(mesh);
    for (int rank = first; rank < first + weft_mesh_n_local(mesh); rank++) {
        weft_usage plan = {0}, measured = {0};
        weft_error error = {0};
        char text[120];
        check_text(weft_plan_usage(t->program, rank, &plan, &error) == WEFT_OK, __LINE__, c, dtype,
                   error.message);
        weft_measured_usage(t->program, rank, &measured);
        snprintf(text, sizeof text, "rank %d: arena of %lld bytes planned, %lld touched", rank,
                 (long long)plan.arena_bytes, (long long)measured.arena_bytes);
        check_text(plan.arena_bytes == measured.arena_bytes, __LINE__, c, dtype, text);
        check_traffic(c, dtype, rank, t->program);
    }
}

static weft_mesh *mesh_of(const char *text)
{
    for (int i = 0; i < oracle.n_meshes; i++)
        if (strcmp(weft_mesh_text(oracle.meshes[i]), text) == 0) return oracle.meshes[i];
    return NULL;
}

static weft_status check_case(const gpt_layout *c, weft_dtype dtype, const outcome *expected,
                              weft_error *error)
{
    weft_mesh *mesh = mesh_of(c->mesh);
    training t;
    outcome found = {0};
    weft_status status = open_training(mesh, c, dtype, &t, error);
    if (status == WEFT_OK) status = run_training(&t, &found, error);
    if (status == WEFT_OK) {
        check_same(c, dtype, expected, &found);
        check_measured(c, dtype, mesh, &t);
    }
    free_outcome(&found);
    close_training(&t);
    return status;
}

static void check_dtype(weft_dtype dtype)
{
    static const gpt_layout plain = {"data:1", "", 0};
    weft_error error = {0};
    training t;
    outcome expected = {0};
    if (CHECK_OK(open_training(oracle.alone, &plain, dtype, &t, &error), error) &&
        CHECK_OK(run_training(&t, &expected, &error), error)) {
        CHECK(fabs(expected.losses[STEPS - 1] - expected.losses[0]) >
              1e-3); /* it is being trained */
        for (int i = 0; i < GPT_LAYOUTS; i++) {
            weft_error failed = {0};
            if (mesh_of(gpt_layouts[i].mesh) == NULL) continue;
            check_text(check_case(&gpt_layouts[i], dtype, &expected, &failed) == WEFT_OK, __LINE__,
                       &gpt_layouts[i], dtype, failed.message);
        }
    }
    free_outcome(&expected);
    close_training(&t);
}

/* ---- the tests ------------------------------------------------------------------------------- */

static void test_layouts_equal_one_rank_in_f64(void)
{
    check_dtype(WEFT_F64);
}

static void test_layouts_equal_one_rank_in_f32(void)
{
    check_dtype(WEFT_F32);
}

/* Bytes of parameters and of slots, summed over all ranks. */
static void state_bytes(const gpt_layout *c, weft_mesh *mesh, int64_t *variables, int64_t *slots)
{
    weft_error error = {0};
    training t;
    *variables = *slots = 0;
    if (CHECK_OK(open_training(mesh, c, WEFT_F32, &t, &error), error)) {
        for (int rank = 0; rank < weft_mesh_n_ranks(mesh); rank++) {
            weft_usage usage = {0};
            CHECK_OK(weft_plan_usage(t.program, rank, &usage, &error), error);
            *variables += usage.variable_bytes, *slots += usage.slot_bytes;
        }
    }
    close_training(&t);
}

static void test_zero_divides_the_state(void)
{
    int64_t variables, slots, one_variables, one_slots;
    state_bytes(&(gpt_layout){"data:1", "", 0}, oracle.alone, &one_variables, &one_slots);
    CHECK_EQ_INT(one_slots, 2 * one_variables); /* adamw's two moments */
    for (int i = 0; i < oracle.n_meshes; i++) {
        weft_mesh *mesh = oracle.meshes[i];
        const int n = weft_mesh_n_ranks(mesh);
        if (weft_mesh_n_axes(mesh) != 1 || weft_mesh_find_axis(mesh, "data") != 0) continue;
        for (int zero = 0; zero <= 3; zero++) {
            state_bytes(&(gpt_layout){weft_mesh_text(mesh), "batch:data", zero}, mesh, &variables,
                        &slots);
            CHECK_EQ_INT(variables, zero == 3 ? one_variables : n * one_variables);
            CHECK_EQ_INT(slots, zero >= 1 ? one_slots : n * one_slots);
        }
    }
}

/* No rank holds more than its share by more than the unevenness of the dims. */
static void test_zero_3_shares_evenly(void)
{
    weft_mesh *mesh = mesh_of("data:2");
    weft_error error = {0};
    weft_usage usage = {0};
    training t;
    int64_t variables, slots;
    if (mesh == NULL) return; /* under MPI with another number of ranks */
    state_bytes(&(gpt_layout){"data:1", "", 0}, oracle.alone, &variables, &slots);
    if (CHECK_OK(
            open_training(mesh, &(gpt_layout){"data:2", "batch:data", 3}, WEFT_F32, &t, &error),
            error)) {
        CHECK_OK(weft_plan_usage(t.program, 0, &usage, &error), error);
        CHECK(usage.variable_bytes <= variables * 53 / 100);
        CHECK(usage.slot_bytes <= slots * 53 / 100);
    }
    close_training(&t);
}

int main(void)
{
    static const char *const meshes[] = {
        "data:2",         "model:2", "data:3", "model:3",
        "data:2,model:2", "model:4", "data:8", "data:2,model:2,seq:2"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 8, &error), error)) {
        RUN(test_layouts_equal_one_rank_in_f64);
        RUN(test_layouts_equal_one_rank_in_f32);
        RUN(test_zero_divides_the_state);
        RUN(test_zero_3_shares_evenly);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
