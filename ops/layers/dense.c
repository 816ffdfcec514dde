/* dense: x W + b: one einsum, whatever dims it sums over and makes; gated, times the activation of another. */
#include <stdio.h>

#include "layer.h"
#include "op.h"
#include "weft/ops.h"

static weft_shape joined(const weft_shape *a, const weft_shape *b)
{
    weft_shape shape = *a;
    for (int d = 0; d < b->n_dims && shape.n_dims < WEFT_MAX_DIMS; d++)
        shape.dims[shape.n_dims++] = b->dims[d];
    return shape;
}

static bool check(const weft_layer *l, weft_value x, const weft_dense_options *o)
{
    const int n_in = o->in.n_dims, n_out = o->out.n_dims;
    if (n_in < 1 || n_out < 0 || n_in > WEFT_MAX_DIMS || n_out > WEFT_MAX_DIMS - n_in) {
        weft_graph_fail(l->graph,
                        "%s: layer %.60s: in has %d dims and out %d; in has 1 at least, and both "
                        "together are a weight of %d at most",
                        l->kind, l->name, n_in, n_out, WEFT_MAX_DIMS);
        return false;
    }
    for (int d = 0; d < n_in; d++)
        if (!weft_layer_has(l, "it sums over", x, o->in.dims[d])) return false;
    return true;
}

/* Two layers: one without an activation, and its gate. */
static weft_value gated(weft_value x, const weft_dense_options *options)
{
    char name[2 * WEFT_MAX_PATH]; /* one that is too long stays so, and is refused */
    weft_dense_options plain = *options, gate = *options;
    snprintf(name, sizeof name, "%.*s/gate", WEFT_MAX_PATH + 1, options->name);
    plain.is_gated = gate.is_gated = false;
    plain.activation = NULL;
    gate.name = name;
    gate.scale = 0;
    const weft_value y = weft_dense(x, &plain);
    if (y.id == 0) return y;
    return weft_mul(y, weft_dense(x, &gate));
}

weft_value weft_dense(weft_value x, const weft_dense_options *options)
{
    weft_layer l;
    if (x.id == 0) return weft_no_value(x.graph);
    if (options == NULL)
        return weft_graph_fail(x.graph, "dense: options are NULL; they say name, in and out");
    if (!weft_layer_begin(&l, "dense", options->name, options->source, x) || !check(&l, x, options))
        return weft_no_value(x.graph);
    if (options->is_gated) return gated(x, options);
    const weft_shape out = weft_layer_instead(&l, x, &options->in, &options->out);
    const weft_layer_weight weight = {.name = "weight",
                                      .shape = joined(&options->in, &options->out),
                                      .fan_in = weft_layer_fan(&options->in),
                                      .fan_out = weft_layer_fan(&options->out),
                                      .initializer = options->initializer,
                                      .exactly = options->weights,
                                      .scale = options->scale};
    if (weft_graph_status(l.graph) != WEFT_OK) return weft_no_value(x.graph);
    weft_value y = weft_einsum(out, x, weft_layer_weight_of(&l, &weight));
    if (!options->lacks_bias) y = weft_layer_biased(&l, y, options->out, options->biases);
    return weft_layer_activated(&l, y, options->activation);
}
