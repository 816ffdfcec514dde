/* broadcast: x with more dims, along which it repeats; also in another order. Linear.
 *
 * Gradient: dy summed over the dims that x lacks.
 */
#include "element.h"
#include "weft/ops.h"

WEFT_ELEMENT_COPY

static const weft_field fields[] = {WEFT_FIELD(weft_generator_attributes, type.shape)};
static const weft_attributes described = WEFT_ATTRIBUTES(weft_generator_attributes, fields);

static weft_status infer(weft_site *site, weft_error *error)
{
    const weft_generator_attributes *attributes = site->attributes;
    const weft_shape *out = &attributes->type.shape;
    for (int d = 0; d < site->in[0].shape.n_dims; d++) {
        const weft_dim *dim = &site->in[0].shape.dims[d];
        const int at = weft_shape_find(out, dim->name);
        if (at >= 0 && out->dims[at].size == dim->size) continue;
        char text[160];
        weft_shape_print(out, text, sizeof text);
        return weft_fail(error, WEFT_USAGE,
                         "%s has %s:%lld and the result is to be %s; it must have "
                         "all dims of the operand with their sizes",
                         weft_site_name(site, 0), dim->name, (long long)dim->size, text);
    }
    site->n_out = 1;
    site->out[0] = (weft_type){site->in[0].dtype, *out};
    return WEFT_OK;
}

static void gradient(weft_vjp *vjp)
{
    vjp->din[0] = weft_sum_to(vjp->dout[0], vjp->in[0]);
}

const weft_op weft_op_broadcast = {
    .name = "broadcast",
    .attributes = &described,
    .infer = infer,
    .factors = weft_factors_pass,
    .linear = 1,
    .selects = true,
    .gradient = gradient,
    .element = &element,
};

weft_value weft_broadcast_to(weft_value x, weft_shape shape)
{
    weft_generator_attributes attributes;
    memset(&attributes, 0, sizeof attributes);
    if (!weft_graph_shape(x.graph, "broadcast_to", &shape, &attributes.type.shape))
        return weft_no_value(x.graph);
    const weft_shape *now = weft_shape_of(x);
    if (x.id != 0 && weft_shape_same_order(now, &shape) &&
        weft_count_of(now) == weft_count_of(&shape))
        return x;
    return weft_emit(x.graph, &weft_op_broadcast, &x, 1, &attributes, sizeof attributes);
}
