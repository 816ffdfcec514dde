/* unslice: zeros, with x put at [begin, end) along one dim: the transpose of slice. Linear. A
 * block of the result shows what of x falls into it.
 *
 * Gradient: slice.
 */
#include <string.h>

#include "weft/ops.h"
#include "op.h"

typedef struct unslice_attributes {
    weft_slice_attributes slice; /* of the result, what the kernel reads */
    const char *from;
    int64_t size; /* of the dim in the result */
} unslice_attributes;
static const weft_field fields[] = {
    WEFT_FIELD(unslice_attributes, slice.dim), WEFT_FIELD(unslice_attributes, slice.begin),
    WEFT_FIELD(unslice_attributes, slice.end), WEFT_FIELD(unslice_attributes, from),
    WEFT_FIELD(unslice_attributes, size)};
static const weft_attributes described = WEFT_ATTRIBUTES(unslice_attributes, fields);

static weft_status infer(weft_site *site, weft_error *error)
{
    const unslice_attributes *attributes = site->attributes;
    const weft_slice_attributes *slice = &attributes->slice;
    WEFT_TRY(weft_check_dim(site, 0, attributes->from, slice->end - slice->begin, error));
    if (slice->begin < 0 || slice->end > attributes->size)
        return weft_fail(error, WEFT_USAGE,
                         "[%lld, %lld) is to be set in %s, which goes from 0 to %lld",
                         (long long)slice->begin, (long long)slice->end, slice->dim,
                         (long long)attributes->size);
    site->n_out = 1;
    site->out[0] = site->in[0];
    weft_shape *out = &site->out[0].shape;
    out->dims[weft_shape_find(out, attributes->from)] = (weft_dim){slice->dim, attributes->size};
    return WEFT_OK;
}

/* Dims pass by place. */
static void factors(const weft_site *site, weft_factors *factors)
{
    const unslice_attributes *attributes = site->attributes;
    factors->n_factors = 0;
    for (int d = 0; d < site->in[0].shape.n_dims; d++) {
        weft_factor *factor = weft_factor_new(factors, WEFT_NOT_PARTIAL);
        factor->in[0] = factor->out[0] = (int8_t)d;
        if (d != weft_shape_find(&site->in[0].shape, attributes->from)) continue;
        weft_factor_show(site, factors, 0,
                         &(weft_window){.lead = attributes->size,
                                        .low = -attributes->slice.begin,
                                        .high = -attributes->slice.begin,
                                        .stride = 1,
                                        .over = 1});
    }
}

static void gradient(weft_vjp *vjp)
{
    const unslice_attributes *attributes = vjp->site->attributes;
    const weft_slice_attributes *slice = &attributes->slice;
    vjp->din[0] = weft_slice(vjp->dout[0], (weft_dim){slice->dim, attributes->size}, slice->begin,
                             (weft_dim){attributes->from, slice->end - slice->begin});
}

const weft_op weft_op_unslice = {
    .name = "unslice",
    .attributes = &described,
    .infer = infer,
    .factors = factors,
    .linear = 1,
    .selects = true,
    .gradient = gradient,
};

weft_value weft_unslice(weft_value x, weft_dim from, int64_t begin, weft_dim to)
{
    weft_dim_attributes old, new;
    if (!weft_graph_dim(x.graph, "unslice", from, &old)) return weft_no_value(x.graph);
    if (!weft_graph_dim(x.graph, "unslice", to, &new)) return weft_no_value(x.graph);
    unslice_attributes attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.slice.dim = new.dim;
    attributes.slice.begin = begin;
    attributes.slice.end = begin + old.size;
    attributes.from = old.dim;
    attributes.size = new.size;
    return weft_emit(x.graph, &weft_op_unslice, &x, 1, &attributes, sizeof attributes);
}
