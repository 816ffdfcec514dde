/* concat: a, then b, along one dim, which has a name of its own in a, in b and in the result.
 * Linear in both together. A block of the result shows what of each falls into it.
 *
 * Gradient: the two slices of dy.
 */
#include <string.h>

#include "weft/ops.h"
#include "op.h"

typedef struct concat_attributes {
    weft_slice_attributes slice; /* the result's dim, and where b stands in it */
    const char *from[2];         /* its name in a and in b */
} concat_attributes;
static const weft_field fields[] = {
    WEFT_FIELD(concat_attributes, slice.dim), WEFT_FIELD(concat_attributes, slice.begin),
    WEFT_FIELD(concat_attributes, slice.end), WEFT_FIELD(concat_attributes, from[0]),
    WEFT_FIELD(concat_attributes, from[1])};
static const weft_attributes described = WEFT_ATTRIBUTES(concat_attributes, fields);

static weft_status infer(weft_site *site, weft_error *error)
{
    const concat_attributes *attributes = site->attributes;
    const weft_slice_attributes *slice = &attributes->slice;
    WEFT_TRY(weft_check_same_dtype(site, error));
    WEFT_TRY(weft_check_dim(site, 0, attributes->from[0], slice->begin, error));
    WEFT_TRY(weft_check_dim(site, 1, attributes->from[1], slice->end - slice->begin, error));
    const weft_shape *a = &site->in[0].shape, *b = &site->in[1].shape;
    const int at = weft_shape_find(a, attributes->from[0]);
    bool fits = a->n_dims == b->n_dims && at == weft_shape_find(b, attributes->from[1]);
    for (int d = 0; fits && d < a->n_dims; d++)
        fits = d == at || (strcmp(a->dims[d].name, b->dims[d].name) == 0 &&
                           a->dims[d].size == b->dims[d].size);
    if (!fits) {
        char text[2][160];
        weft_shape_print(a, text[0], sizeof text[0]);
        weft_shape_print(b, text[1], sizeof text[1]);
        return weft_fail(error, WEFT_USAGE,
                         "%s is %s and %s is %s; all dims but the concatenated one must "
                         "be the same",
                         weft_site_name(site, 0), text[0], weft_site_name(site, 1), text[1]);
    }
    site->n_out = 1;
    site->out[0] = site->in[0];
    site->out[0].shape.dims[at] = (weft_dim){slice->dim, slice->end};
    return WEFT_OK;
}

static void factors(const weft_site *site, weft_factors *factors)
{
    const concat_attributes *attributes = site->attributes;
    factors->n_factors = 0;
    for (int d = 0; d < site->in[0].shape.n_dims; d++) {
        weft_factor *factor = weft_factor_new(factors, WEFT_NOT_PARTIAL);
        factor->in[0] = factor->in[1] = factor->out[0] = (int8_t)d;
        if (d != weft_shape_find(&site->in[0].shape, attributes->from[0])) continue;
        for (int i = 0; i < 2; i++) {
            const int64_t before = i * attributes->slice.begin;
            weft_factor_show(site, factors, i,
                             &(weft_window){.lead = attributes->slice.end,
                                            .low = -before,
                                            .high = -before,
                                            .stride = 1,
                                            .over = 1});
        }
    }
}

static void gradient(weft_vjp *vjp)
{
    const concat_attributes *attributes = vjp->site->attributes;
    const weft_slice_attributes *slice = &attributes->slice;
    const weft_dim whole = {slice->dim, slice->end};
    const weft_dim part[2] = {{attributes->from[0], slice->begin},
                              {attributes->from[1], slice->end - slice->begin}};
    if (vjp->wanted[0]) vjp->din[0] = weft_slice(vjp->dout[0], whole, 0, part[0]);
    if (vjp->wanted[1]) vjp->din[1] = weft_slice(vjp->dout[0], whole, slice->begin, part[1]);
}

const weft_op weft_op_concat = {
    .name = "concat",
    .attributes = &described,
    .infer = infer,
    .factors = factors,
    .additive = 1 | 2,
    .selects = true,
    .gradient = gradient,
};

/* b in a's order of dims, where it has the same ones; else as it is, and infer says what is wrong.
 */
static weft_value order_as(weft_value b, weft_dim b_dim, weft_value a, weft_dim a_dim)
{
    weft_shape order = *weft_shape_of(a);
    const int at = weft_shape_find(&order, a_dim.name);
    if (at < 0) return b;
    order.dims[at] = b_dim;
    return weft_shape_same_dims(&order, weft_shape_of(b)) ? weft_transpose(b, order) : b;
}

weft_value weft_concat(weft_value a, weft_value b, weft_dim a_dim, weft_dim b_dim, weft_dim out)
{
    weft_dim_attributes dims[3];
    if (!weft_graph_dim(a.graph, "concat", a_dim, &dims[0])) return weft_no_value(a.graph);
    if (!weft_graph_dim(a.graph, "concat", b_dim, &dims[1])) return weft_no_value(a.graph);
    if (!weft_graph_dim(a.graph, "concat", out, &dims[2])) return weft_no_value(a.graph);
    if (dims[2].size != dims[0].size + dims[1].size)
        return weft_graph_fail(a.graph,
                               "concat: %s:%lld and %s:%lld do not make %s:%lld; the sizes add up",
                               dims[0].dim, (long long)dims[0].size, dims[1].dim,
                               (long long)dims[1].size, dims[2].dim, (long long)dims[2].size);
    concat_attributes attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.slice.dim = dims[2].dim;
    attributes.slice.begin = dims[0].size;
    attributes.slice.end = dims[2].size;
    attributes.from[0] = dims[0].dim;
    attributes.from[1] = dims[1].dim;
    const weft_value in[] = {a, order_as(b, b_dim, a, a_dim)};
    return weft_emit(a.graph, &weft_op_concat, in, 2, &attributes, sizeof attributes);
}
