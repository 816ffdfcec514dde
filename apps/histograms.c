/* histograms: a program that counts, beside a training. */
#include "histograms.h"

#include <math.h>
#include <stdlib.h>

#include "weft/autodiff.h"
#include "weft/collectives.h"
#include "weft/ops.h"
#include "weft/research/plan.h"

enum { LOW, HIGH, SUM, SQUARES, MOMENTS };  /* what comes first of a tensor */
enum { FACTS = MOMENTS + HISTOGRAM_PARTS }; /* and then the counts */

struct histograms {
    weft_program *trains, *looks;
    int n, n_inputs;
    weft_value *facts, *inputs; /* [n]: f64 [FACTS]; [n_inputs] */
    histogram *all;             /* [n] */
    void *batch;                /* [most_bytes] */
    int64_t most_bytes;
};

/* ---- the graph ----------------------------------------------------------------------------------- */

static weft_value one(weft_value like, double number)
{
    return weft_constant(like.graph, weft_dtype_of(like), WEFT_SCALAR, number);
}

/* From 0 at the least to 1 at the largest; 0 where they are equal. */
static weft_value scaled(weft_value x, weft_value low, weft_value high)
{
    const weft_value range = weft_sub(high, low), zero = one(x, 0);
    const weft_value by = weft_where(weft_greater(range, zero), range, one(x, 1));
    return weft_clamp(weft_div(weft_sub(x, low), by), 0, 1); /* 1 / 1e-40 is none of f32 */
}

/* Counts are integers, and limits are made of two numbers: they are the same under all layouts. */
static weft_value facts_of(weft_value x)
{
    const weft_dim part = {"histogram_part", HISTOGRAM_PARTS}, fact = {"histogram_fact", FACTS},
                   moment = {"histogram_moment", MOMENTS};
    const weft_value low = weft_min(WEFT_SCALAR, x), high = weft_max(WEFT_SCALAR, x);
    const weft_value wide = weft_cast(x, WEFT_F64);
    const weft_value moments = weft_stack(
        WEFT_VALUES(weft_cast(low, WEFT_F64), weft_cast(high, WEFT_F64),
                    weft_sum(WEFT_SCALAR, wide), weft_sum(WEFT_SCALAR, weft_square(wide))),
        moment);
    const weft_value counts = weft_histogram(WEFT_SCALAR, scaled(x, low, high), 0, 1, part);
    return weft_concat(moments, weft_cast(counts, WEFT_F64), moment, part, fact);
}

/* A number is no histogram, and neither are ids. */
static bool is_looked_at(weft_value x)
{
    const weft_dtype dtype = weft_dtype_of(x);
    return weft_shape_of(x)->n_dims > 0 && (dtype == WEFT_F32 || dtype == WEFT_F64);
}

/* Variables of the training that are no slots; `room`: of all that there are. */
static int find_variables(const weft_program *program, weft_value *variables)
{
    int n = 0;
    for (int i = 0;; i++) {
        const weft_value x = weft_variable_at(program, i);
        if (x.id == 0) return n;
        if (!weft_is_slot(x) && is_looked_at(x)) variables[n++] = x;
    }
}

/* Where the loss is scaled so that gradients fit f16, they are taken of it scaled, and divided. */
static void take_gradients(weft_value loss, weft_values variables, weft_value *gradients)
{
    weft_error ignored = {.rank = -1};
    const weft_value scale = weft_graph_find(loss.graph, "loss_scale", &ignored);
    if (scale.id == 0) {
        weft_gradients(loss, variables, gradients, WEFT_ZEROS_ALLOWED);
        return;
    }
    const weft_value seed = weft_cast(scale, weft_dtype_of(loss));
    weft_gradients_seeded(WEFT_VALUES(loss), WEFT_VALUES(seed), variables, gradients,
                          WEFT_ZEROS_ALLOWED);
    for (int i = 0; i < variables.n_values; i++)
        gradients[i] = weft_div(gradients[i], weft_cast(scale, weft_dtype_of(gradients[i])));
}

static void add(histograms *h, weft_value variable, weft_value x, bool is_gradient)
{
    h->all[h->n] = (histogram){.name = weft_name_of(variable),
                               .is_gradient = is_gradient,
                               .n = weft_shape_count(weft_shape_of(x))};
    h->facts[h->n++] = facts_of(x);
}

/* variables, gradients [n]: room, which are filled unless the training has its own. */
static void build(histograms *h, const histograms_of *of, weft_value *variables,
                  weft_value *gradients)
{
    const int n = find_variables(of->program, variables);
    if (!of->gradients) take_gradients(of->loss, (weft_values){variables, n}, gradients);
    for (int i = 0; i < n; i++)
        add(h, variables[i], variables[i], false);
    for (int i = 0; i < (of->gradients ? of->n : n); i++)
        add(h, (of->gradients ? of->variables : variables)[i],
            (of->gradients ? of->gradients : gradients)[i], true);
}

static int count_variables(const weft_program *program)
{
    int n = 0;
    while (weft_variable_at(program, n).id != 0)
        n++;
    return n;
}

static weft_status build_all(histograms *h, const histograms_of *of, weft_error *error)
{
    const size_t room = (size_t)count_variables(of->program) + (size_t)of->n;
    weft_value *values = calloc(2 * room + 1, sizeof *values);
    h->facts = calloc(2 * room + 1, sizeof *h->facts);
    h->all = calloc(2 * room + 1, sizeof *h->all);
    if (values && h->facts && h->all)
        build(h, of, values, values + room);
    else
        weft_fail_memory(error, 2 * room * sizeof *h->all);
    free(values);
    return error->status;
}

/* ---- the batch ----------------------------------------------------------------------------------- */

static int64_t bytes_of(weft_value x)
{
    return weft_shape_count(weft_shape_of(x)) * (int64_t)weft_dtype_bytes(weft_dtype_of(x));
}

/* Inputs that the program of histograms reads: it is of the same graph. */
static weft_status find_inputs(histograms *h, weft_error *error)
{
    const int n = weft_plan_n_tensors(h->looks);
    h->inputs = calloc((size_t)n + 1, sizeof *h->inputs);
    if (!h->inputs) return weft_fail_memory(error, (size_t)n * sizeof *h->inputs);
    for (int id = 1; id <= n; id++) {
        weft_planned_tensor t;
        WEFT_TRY(weft_plan_tensor_at(h->looks, (uint32_t)id, 0, &t, error));
        if (t.kind != WEFT_TENSOR_INPUT || t.user.id == 0 || t.shares != 0) continue;
        h->inputs[h->n_inputs++] = t.user;
        if (bytes_of(t.user) > h->most_bytes) h->most_bytes = bytes_of(t.user);
    }
    h->batch = malloc((size_t)h->most_bytes + 1);
    return h->batch ? WEFT_OK : weft_fail_memory(error, (size_t)h->most_bytes);
}

static weft_status copy_inputs(histograms *h, weft_error *error)
{
    for (int i = 0; i < h->n_inputs; i++) {
        const weft_value input = h->inputs[i];
        const weft_dtype dtype = weft_dtype_of(input);
        WEFT_TRY(weft_read(h->trains, input, dtype, h->batch, bytes_of(input), error));
        WEFT_TRY(weft_write(h->looks, input, dtype, h->batch, bytes_of(input), error));
    }
    return WEFT_OK;
}

/* ---- life ---------------------------------------------------------------------------------------- */

static weft_status open_all(histograms *h, const histograms_of *of, weft_error *error)
{
    weft_compile_options options = {0};
    const weft_layout *layout = weft_plan_layout(of->program);
    if (of->options) options = *of->options;
    options.share = of->program;
    options.dump = NULL;
    (void)!build_all(h, of, error);
    WEFT_TRY(weft_world_agree(error));
    WEFT_TRY(weft_compile(weft_program_mesh(of->program), layout, (weft_values){h->facts, h->n},
                          &options, &h->looks, error));
    (void)!find_inputs(h, error);
    return weft_world_agree(error);
}

weft_status histograms_open(const histograms_of *of, histograms **made, weft_error *error)
{
    weft_error own = {.rank = -1};
    histograms *h = *made = calloc(1, sizeof *h);
    if (!h) weft_fail_memory(&own, sizeof *h);
    if (weft_world_agree(&own) == WEFT_OK) {
        h->trains = of->program;
        (void)!open_all(h, of, &own);
    }
    if (own.status == WEFT_OK) return WEFT_OK;
    histograms_close(made);
    *error = own;
    return own.status;
}

static void keep(histogram *to, const double *facts)
{
    double counted = 0;
    to->low = facts[LOW];
    to->high = facts[HIGH];
    to->sum = facts[SUM];
    to->sum_squares = facts[SQUARES];
    for (int i = 0; i < HISTOGRAM_PARTS; i++)
        counted += to->counts[i] = facts[MOMENTS + i];
    to->is_finite =
        isfinite(to->low) && isfinite(to->high) && isfinite(to->sum) && counted == (double)to->n;
}

weft_status histograms_take(histograms *h, weft_error *error)
{
    double facts[FACTS];
    WEFT_TRY(copy_inputs(h, error));
    weft_set_runs(h->looks, weft_runs(h->trains));
    WEFT_TRY(weft_run(h->looks, error));
    for (int i = 0; i < h->n; i++) {
        WEFT_TRY(weft_read(h->looks, h->facts[i], WEFT_F64, facts, sizeof facts, error));
        keep(&h->all[i], facts);
    }
    return WEFT_OK;
}

const histogram *histograms_at(histograms *h, int index)
{
    return index < h->n ? &h->all[index] : NULL;
}

void histograms_close(histograms **it)
{
    histograms *h = *it;
    if (!h) return;
    (void)!weft_program_destroy(&h->looks);
    free(h->facts);
    free(h->inputs);
    free(h->all);
    free(h->batch);
    free(h);
    *it = NULL;
}
