/* batch_norm: each channel normalized by what the batch has, or by averages over batches. Means are over names: what of the batch is
 * where makes no difference. */
#include "ir.h"
#include "layer.h"
#include "op.h"
#include "weft/ops.h"

typedef struct layer {
    const weft_batch_norm_options *options;
    weft_graph *graph;
    weft_dtype dtype;
    weft_shape channels;
    double momentum, epsilon, n; /* n: elements of a channel */
    weft_value gain, bias, mean, variance;
} layer;

/* ---- variables ----------------------------------------------------------------------------------- */

static weft_value variable(const layer *l, const char *name, double first)
{
    const weft_layer common = {"batch_norm", l->options->name, l->graph, l->dtype, NULL};
    return weft_layer_variable(&common, name, l->channels, weft_constant_of(first));
}

static bool make_variables(layer *l)
{
    l->gain = variable(l, "gain", 1.0);
    l->bias = variable(l, "bias", 0.0);
    l->mean = variable(l, "mean", 0.0);
    l->variance = variable(l, "variance", 1.0);
    return weft_graph_status(l->graph) == WEFT_OK;
}

/* ---- what was asked for -------------------------------------------------------------------------- */

static bool check_numbers(const layer *l)
{
    if (!(l->momentum > 0 && l->momentum <= 1))
        weft_graph_fail(l->graph, "batch_norm: momentum is %g; it is above 0, and at most 1",
                        l->options->momentum);
    else if (!(l->epsilon > 0 && l->epsilon <= 1e30))
        weft_graph_fail(l->graph, "batch_norm: epsilon is %g; it is above 0", l->options->epsilon);
    return weft_graph_status(l->graph) == WEFT_OK;
}

static bool check(const layer *l, weft_value x)
{
    const weft_batch_norm_options *o = l->options;
    const weft_dim channel = o->channel;
    char text[300];
    weft_shape_print(weft_shape_of(x), text, sizeof text);
    if (o->name == NULL || channel.name == NULL)
        weft_graph_fail(l->graph, "batch_norm: name and channel are to be said");
    else if (channel.size < 1 || weft_dim_of(x, channel.name).size != channel.size)
        weft_graph_fail(l->graph, "batch_norm: channels are %s:%lld, but x is %s", channel.name,
                        (long long)channel.size, text);
    else if (!weft_dtype_is_float(weft_dtype_of(x)))
        weft_graph_fail(l->graph, "batch_norm: x is %s; it is a float. weft_cast it",
                        weft_dtype_name(weft_dtype_of(x)));
    else if (!o->is_fixed && l->n < 2)
        weft_graph_fail(
            l->graph,
            "batch_norm: x is %s, one element a channel, which has no variance; give it "
            "a larger batch, or set is_fixed",
            text);
    return weft_graph_status(l->graph) == WEFT_OK && check_numbers(l);
}

/* ---- the layer ----------------------------------------------------------------------------------- */

static weft_value scaled(const layer *l, weft_value apart, weft_value variance)
{
    const weft_value by = weft_mul(weft_rsqrt(weft_shift(variance, l->epsilon)), l->gain);
    return weft_add(weft_mul(apart, by), l->bias);
}

/* An average, of which a part goes on to what the batch has. */
static weft_value moved(const layer *l, weft_value average, weft_value batch)
{
    const weft_value step = weft_scale(weft_sub(weft_stop_gradient(batch), average), l->momentum);
    return weft_assign(average, weft_add(average, step));
}

/* By the running averages. They are state and no parameters: what follows from them leads back to no variable. */
static weft_value by_averages(const layer *l, weft_value x)
{
    const weft_value mean = weft_stop_gradient(l->mean), variance = weft_stop_gradient(l->variance);
    return scaled(l, weft_sub(x, mean), variance);
}

static weft_value normalize(const layer *l, weft_value x, weft_value *update)
{
    const weft_value mean = weft_mean_over(l->channels, x), apart = weft_sub(x, mean);
    const weft_value variance = weft_mean_over(l->channels, weft_square(apart));
    const weft_value unbiased = weft_scale(variance, l->n / (l->n - 1));
    weft_stands_for(l->mean, mean);
    weft_stands_for(l->variance, variance);
    if (update != NULL)
        *update = weft_group(l->graph,
                             WEFT_VALUES(moved(l, l->mean, mean), moved(l, l->variance, unbiased)));
    return scaled(l, apart, variance);
}

weft_value weft_batch_norm(weft_value x, const weft_batch_norm_options *options, weft_value *update)
{
    if (update != NULL) *update = weft_no_value(x.graph);
    if (x.id == 0) return weft_no_value(x.graph);
    if (options == NULL)
        return weft_graph_fail(x.graph, "batch_norm: options are NULL; they say name and channel");
    layer l = {.options = options,
               .graph = x.graph,
               .dtype = weft_dtype_computes(weft_dtype_of(x)),
               .channels = weft_shape_make(&options->channel, 1),
               .momentum = options->momentum == 0 ? 0.1 : options->momentum,
               .epsilon = options->epsilon == 0 ? 1e-5 : options->epsilon};
    l.n = weft_count_of(weft_shape_of(x)) / (double)options->channel.size;
    if (!check(&l, x) || !make_variables(&l)) return weft_no_value(x.graph);
    const weft_value wide = weft_wide(x);
    const weft_value y = options->is_fixed ? by_averages(&l, wide) : normalize(&l, wide, update);
    return weft_cast(y, weft_dtype_of(x));
}
