/* convolution: weft_conv with a filter of its own, or weft_conv_transpose; separable, of each channel by itself, and then a product over
 * channels. */
#include "layer.h"
#include "op.h"
#include "weft/ops.h"

static void append(weft_shape *shape, weft_dim dim)
{
    if (dim.name != NULL && shape->n_dims < WEFT_MAX_DIMS) shape->dims[shape->n_dims++] = dim;
}

/* The dim of space that x has, and the one that the result has. */
static weft_dim before(const weft_convolution_options *o, int s)
{
    const weft_spatial *space = &o->spatial.dims[s];
    return o->is_transposed ? space->out : space->in;
}

static weft_dim behind(const weft_convolution_options *o, int s)
{
    const weft_spatial *space = &o->spatial.dims[s];
    return o->is_transposed ? space->in : space->out;
}

static bool is_separable(const weft_convolution_options *o)
{
    return o->multiplier.name != NULL;
}

static bool check(const weft_layer *l, weft_value x, const weft_convolution_options *o)
{
    const weft_spatials *space = &o->spatial;
    if (space->dims == NULL || space->n_dims < 1 || space->n_dims > 3) {
        weft_graph_fail(l->graph, "%s: layer %.60s: spatial has %d dims; it has 1 to 3", l->kind,
                        l->name, space->n_dims);
        return false;
    }
    for (int s = 0; s < space->n_dims; s++)
        if (!weft_layer_has(l, "it goes over", x, before(o, s))) return false;
    if (is_separable(o) && o->channel.name == NULL) {
        weft_graph_fail(l->graph,
                        "%s: layer %.60s: it has a multiplier, %.60s, and no channel; it is "
                        "separable over a channel, or has features for each group",
                        l->kind, l->name, o->multiplier.name);
        return false;
    }
    if (o->channel.name != NULL && !weft_layer_has(l, "it sums over", x, o->channel)) return false;
    return o->group.name == NULL || weft_layer_has(l, "its group is", x, o->group);
}

/* x's dims, those of space as they come out, and in place of the channel another dim, behind. */
static weft_shape shape_of_result(const weft_layer *l, weft_value x,
                                  const weft_convolution_options *o, weft_dim channel,
                                  weft_dim in_place)
{
    const weft_shape gone = channel.name != NULL ? WEFT_DIMS(channel) : WEFT_SCALAR;
    const weft_shape added = WEFT_DIMS(in_place);
    weft_shape shape = weft_layer_instead(l, x, &gone, &added);
    for (int s = 0; s < o->spatial.n_dims && shape.n_dims > 0; s++) {
        const int d = weft_shape_find(&shape, before(o, s).name);
        if (d >= 0) shape.dims[d] = behind(o, s); /* else one dim twice: conv refuses it */
    }
    return shape;
}

/* [taps, group, channel, features]. `summed`: products of each tap in a sum. */
static weft_value filter(const weft_layer *l, const weft_convolution_options *o, const char *name,
                         weft_dim features, double summed)
{
    weft_layer_weight weight = {.name = name, .initializer = o->initializer, .exactly = o->weights};
    double taps = 1;
    for (int s = 0; s < o->spatial.n_dims; s++) {
        append(&weight.shape, o->spatial.dims[s].tap);
        taps *= (double)o->spatial.dims[s].tap.size;
    }
    append(&weight.shape, o->group);
    append(&weight.shape, o->channel);
    append(&weight.shape, features);
    weight.fan_in = taps * summed;
    weight.fan_out = taps * (double)features.size;
    return weft_layer_weight_of(l, &weight);
}

static weft_value convolved(const weft_convolution_options *o, weft_shape out, weft_value x,
                            weft_value w)
{
    return o->is_transposed ? weft_conv_transpose(out, x, w, o->spatial)
                            : weft_conv(out, x, w, o->spatial);
}

static weft_value in_one(const weft_layer *l, weft_value x, const weft_convolution_options *o,
                         weft_shape out)
{
    const double summed = o->channel.name != NULL ? (double)o->channel.size : 1.0;
    const weft_value w = filter(l, o, "weight", o->features, summed);
    return convolved(o, out, x, w);
}

/* Each channel by itself, `multiplier` numbers of each; then a product over both. */
static weft_value separated(const weft_layer *l, weft_value x, const weft_convolution_options *o,
                            weft_shape out)
{
    const weft_shape deep = shape_of_result(l, x, o, (weft_dim){0}, o->multiplier);
    if (deep.n_dims == 0) return weft_no_value(l->graph);
    const double n = (double)o->channel.size * (double)o->multiplier.size;
    weft_layer_weight across = {.name = "weight",
                                .fan_in = n,
                                .fan_out = (double)o->features.size,
                                .initializer = o->initializer,
                                .exactly = o->weights};
    append(&across.shape, o->group);
    append(&across.shape, o->channel);
    append(&across.shape, o->multiplier);
    append(&across.shape, o->features);
    const weft_value each = convolved(o, deep, x, filter(l, o, "deep", o->multiplier, 1.0));
    return weft_einsum(out, each, weft_layer_weight_of(l, &across));
}

weft_value weft_convolution(weft_value x, const weft_convolution_options *options)
{
    weft_layer l;
    if (x.id == 0) return weft_no_value(x.graph);
    if (options == NULL)
        return weft_graph_fail(x.graph,
                               "convolution: options are NULL; they say name, spatial, features");
    if (!weft_layer_begin(&l, "convolution", options->name, NULL, x) || !check(&l, x, options))
        return weft_no_value(x.graph);
    const weft_shape out = shape_of_result(&l, x, options, options->channel, options->features);
    if (out.n_dims == 0) return weft_no_value(x.graph);
    weft_shape bias = WEFT_SCALAR;
    append(&bias, options->group);
    append(&bias, options->features);
    weft_value y =
        is_separable(options) ? separated(&l, x, options, out) : in_one(&l, x, options, out);
    if (!options->lacks_bias) y = weft_layer_biased(&l, y, bias, options->biases);
    return weft_layer_activated(&l, y, options->activation);
}
