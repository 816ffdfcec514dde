/* convolution: weft_conv with a filter of its own. */
#include "layer.h"
#include "op.h"
#include "weft/ops.h"

static void append(weft_shape *shape, weft_dim dim)
{
    if (dim.name != NULL && shape->n_dims < WEFT_MAX_DIMS) shape->dims[shape->n_dims++] = dim;
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
        if (!weft_layer_has(l, "it goes over", x, space->dims[s].in)) return false;
    if (o->channel.name != NULL && !weft_layer_has(l, "it sums over", x, o->channel)) return false;
    return o->group.name == NULL || weft_layer_has(l, "its group is", x, o->group);
}

/* x's dims, those of space as they come out, features behind. */
static weft_shape shape_of_result(const weft_layer *l, weft_value x,
                                  const weft_convolution_options *o)
{
    const weft_shape channel = o->channel.name != NULL ? WEFT_DIMS(o->channel) : WEFT_SCALAR;
    const weft_shape features = WEFT_DIMS(o->features);
    weft_shape shape = weft_layer_instead(l, x, &channel, &features);
    for (int s = 0; s < o->spatial.n_dims && shape.n_dims > 0; s++) {
        const int d = weft_shape_find(&shape, o->spatial.dims[s].in.name);
        if (d >= 0)
            shape.dims[d] = o->spatial.dims[s].out; /* else one dim twice: conv refuses it */
    }
    return shape;
}

static weft_value filter(const weft_layer *l, const weft_convolution_options *o)
{
    weft_layer_weight weight = {
        .name = "weight", .initializer = o->initializer, .exactly = o->weights};
    double taps = 1;
    for (int s = 0; s < o->spatial.n_dims; s++) {
        append(&weight.shape, o->spatial.dims[s].tap);
        taps *= (double)o->spatial.dims[s].tap.size;
    }
    append(&weight.shape, o->group);
    append(&weight.shape, o->channel);
    append(&weight.shape, o->features);
    weight.fan_in = taps * (o->channel.name != NULL ? (double)o->channel.size : 1.0);
    weight.fan_out = taps * (double)o->features.size;
    return weft_layer_weight_of(l, &weight);
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
    const weft_shape out = shape_of_result(&l, x, options);
    if (out.n_dims == 0) return weft_no_value(x.graph);
    weft_shape bias = WEFT_SCALAR;
    append(&bias, options->group);
    append(&bias, options->features);
    weft_value y = weft_conv(out, x, filter(&l, options), options->spatial);
    if (!options->lacks_bias) y = weft_layer_biased(&l, y, bias, options->biases);
    return weft_layer_activated(&l, y, options->activation);
}
