/* order: the indices (i32) of the elements along a dim in the order of the elements: all of them, or the first few, the least or
 * the largest first. A NaN is above all numbers, -0 equals 0, and of equal elements the lower index comes first, both ways.
 *
 * The dim is whole. Where it is split, a few of many are found by blocks (order_blocks.c), and a long dim that is split
 * over many ranks goes by columns (order_columns.c). No gradient: that goes through pick, by which elements are
 * taken.
 */
#include <math.h>
#include <string.h>

#include "order.h"
#include "weft/ops.h"

static const weft_field fields[] = {
    WEFT_FIELD(weft_order_attributes, dim), WEFT_FIELD(weft_order_attributes, to),
    WEFT_FIELD(weft_order_attributes, size), WEFT_FIELD(weft_order_attributes, count),
    WEFT_FIELD(weft_order_attributes, descending)};
const weft_attributes weft_attributes_order = WEFT_ATTRIBUTES(weft_order_attributes, fields);

double weft_order_last(weft_dtype dtype, bool descending)
{
    if (weft_dtype_is_float(dtype)) return descending ? (double)-INFINITY : (double)NAN;
    if (dtype == WEFT_I64) return (double)INT64_MIN; /* weft_order_is_turned */
    return descending ? (double)INT32_MIN : (double)INT32_MAX;
}

bool weft_order_is_turned(weft_dtype dtype, bool descending)
{
    return dtype == WEFT_I64 && !descending;
}

static weft_status infer(weft_site *site, weft_error *error)
{
    const weft_order_attributes *a = site->attributes;
    WEFT_TRY(weft_check_dim(site, 0, a->dim, a->size, error));
    if (a->count < 1 || a->count > a->size)
        return weft_fail(error, WEFT_USAGE,
                         "%lld elements are asked of %s:%lld; take from 1 to all of them",
                         (long long)a->count, a->dim, (long long)a->size);
    if (a->size > INT32_MAX)
        return weft_fail(error, WEFT_USAGE,
                         "%s:%lld is too long for indices in i32; the most is 2^31 - 1", a->dim,
                         (long long)a->size);
    site->n_out = 1;
    site->out[0] = (weft_type){WEFT_I32, site->in[0].shape};
    weft_shape *out = &site->out[0].shape;
    out->dims[weft_shape_find(out, a->dim)] = (weft_dim){a->to, a->count};
    return WEFT_OK; /* a name that stands twice now is found by weft_emit */
}

/* Every other dim. */
static void factors(const weft_site *site, weft_factors *factors)
{
    const weft_order_attributes *a = site->attributes;
    const weft_shape *in = &site->in[0].shape;
    factors->n_factors = 0;
    for (int d = 0; d < in->n_dims; d++) {
        if (strcmp(in->dims[d].name, a->dim) == 0) continue;
        weft_factor *factor = weft_factor_new(factors, WEFT_NOT_PARTIAL);
        factor->in[0] = factor->out[0] = (int8_t)d;
    }
}

static double flops(const weft_site *site)
{
    return 8.0 * weft_count_of(&site->in[0].shape);
}

static void expand(weft_vjp *vjp)
{
    const weft_order_attributes *a = vjp->site->attributes;
    const weft_dim dim = {a->dim, a->size}, to = {a->to, a->count};
    const weft_order_choice by = {.descending = a->descending};
    vjp->out[0] = weft_order_is_few(&vjp->site->in[0].shape, a->size, a->count)
                      ? weft_order_by_blocks(vjp->in[0], dim, to, by)
                      : weft_order_by_columns(vjp->in[0], a).ids;
}

static bool is_apart(const weft_site *site, const weft_spec *in, const weft_mesh *mesh)
{
    const weft_order_attributes *a = site->attributes;
    const weft_shape *shape = &site->in[0].shape;
    if (weft_order_is_few(shape, a->size, a->count))
        return weft_shares_blocks(&in[0], weft_shape_find(shape, a->dim), WEFT_ORDER_BLOCKS, mesh);
    return weft_order_goes_by_columns(site, 0, in, mesh);
}

const weft_op weft_op_order = {
    .name = "order",
    .attributes = &weft_attributes_order,
    .infer = infer,
    .factors = factors,
    .expand = expand,
    .is_apart = is_apart,
    .flops = flops,
};

weft_value weft_order(weft_value x, weft_dim dim, weft_dim to, bool descending)
{
    weft_dim_attributes along, into;
    weft_order_attributes attributes;
    if (!weft_graph_dim(x.graph, "order", dim, &along) ||
        !weft_graph_dim(x.graph, "order", to, &into))
        return weft_no_value(x.graph);
    memset(&attributes, 0, sizeof attributes);
    attributes.dim = along.dim, attributes.size = along.size;
    attributes.to = into.dim, attributes.count = into.size;
    attributes.descending = descending;
    const weft_value wide = weft_wide(x);
    return weft_emit(x.graph, &weft_op_order, &wide, 1, &attributes, sizeof attributes);
}
