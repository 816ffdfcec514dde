/* scatter_add: y[dim, rest...] = the sum of the rows[ids..., rest...] with the coordinate along dim as their id; an
 * id outside the dim is dropped.
 *
 * Rows split along a dim of the ids give partial sums; a result split along dim takes the rows it owns. Linear in
 * rows. Gradient: drows = gather(dy, ids). It may begin with the value it is added to: a table that is read as well
 * as multiplied by has a gradient of few rows on top of one of all.
 */
#include <string.h>

#include "weft/ops.h"
#include "op.h"

static weft_status infer(weft_site *site, weft_error *error)
{
    const weft_dim_attributes *attributes = site->attributes;
    const weft_shape *rows = &site->in[0].shape, *ids = &site->in[1].shape;
    WEFT_TRY(weft_check_ids(site, 1, error));
    for (int d = 0; d < ids->n_dims; d++)
        WEFT_TRY(weft_check_dim(site, 0, ids->dims[d].name, ids->dims[d].size, error));
    site->n_out = 1;
    site->out[0].dtype = site->in[0].dtype;
    weft_shape *out = &site->out[0].shape;
    out->dims[out->n_dims++] = (weft_dim){attributes->dim, attributes->size};
    for (int d = ids->n_dims; d < rows->n_dims; d++) {
        if (strcmp(rows->dims[d].name, attributes->dim) == 0)
            return weft_fail(error, WEFT_USAGE,
                             "%s has %s already, which the result gets from the ids; "
                             "weft_rename it",
                             weft_site_name(site, 0), attributes->dim);
        if (out->n_dims == WEFT_MAX_DIMS)
            return weft_fail(error, WEFT_USAGE, "the result would have more than %d dims",
                             WEFT_MAX_DIMS);
        out->dims[out->n_dims++] = rows->dims[d];
    }
    return WEFT_OK;
}

/* By hand, as in gather. The builder puts the dims of the ids first in rows. */
static void factors(const weft_site *site, weft_factors *factors)
{
    factors->n_factors = 0;
    const int n_ids = site->in[1].shape.n_dims;
    for (int d = 0; d < site->in[0].shape.n_dims; d++) {
        weft_factor *factor = weft_factor_new(factors, d < n_ids ? WEFT_SUM : WEFT_NOT_PARTIAL);
        factor->in[0] = (int8_t)d;
        if (d < n_ids)
            factor->in[1] = (int8_t)d;
        else
            factor->out[0] = (int8_t)(d - n_ids + 1);
    }
    weft_factor_new(factors, WEFT_NOT_PARTIAL)->out[0] = 0;
}

static void gradient(weft_vjp *vjp)
{
    const weft_dim_attributes *attributes = vjp->site->attributes;
    const weft_dim dim = {attributes->dim, attributes->size};
    if (vjp->wanted[0]) vjp->din[0] = weft_gather(vjp->dout[0], vjp->in[1], dim);
}

static double flops(const weft_site *site)
{
    return weft_count_of(&site->in[0].shape);
}

const weft_op weft_op_scatter_add = {
    .name = "scatter_add",
    .attributes = &weft_attributes_dim,
    .infer = infer,
    .factors = factors,
    .linear = 1,
    .gradient = gradient,
    .flops = flops,
    .accumulates = &weft_op_add,
};

weft_value weft_scatter_add(weft_value rows, weft_value ids, weft_dim dim)
{
    const weft_dtype dtype = weft_dtype_of(rows);
    if (weft_dtype_computes(dtype) != dtype)
        return weft_cast(weft_scatter_add(weft_wide(rows), ids, dim), dtype);
    const weft_shape *shape = weft_shape_of(rows);
    weft_shape order = *weft_shape_of(ids);
    bool all = rows.id != 0 && ids.id != 0;
    for (int d = 0; d < order.n_dims; d++)
        all = all && weft_shape_find(shape, order.dims[d].name) >= 0;
    if (all) { /* else infer says what is missing */
        for (int d = 0; d < shape->n_dims; d++)
            if (weft_shape_find(weft_shape_of(ids), shape->dims[d].name) < 0)
                order.dims[order.n_dims++] = shape->dims[d];
        rows = weft_transpose(rows, order);
    }
    const weft_value in[] = {rows, ids};
    if (weft_shape_find(weft_shape_of(ids), dim.name) < 0)
        return weft_emit_dim(&weft_op_scatter_add, in, 2, dim);
    const weft_dim other = weft_dim_beside(rows.graph, dim); /* as in gather */
    return weft_rename(weft_emit_dim(&weft_op_scatter_add, in, 2, other), other, dim);
}
