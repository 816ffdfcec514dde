/* scatter_max: y[dim, rest...] = the largest of the rows[ids..., rest...] with the coordinate along dim as their id;
 * without any -inf, or the least integer.
 *
 * As scatter_add, with largest elements of parts where rows are split along a dim of the ids. Gradient: dy, shared equally by the
 * rows that are the largest.
 */
#include <string.h>

#include "op.h"
#include "weft/ops.h"

/* The builder puts the dims of the ids first in rows. */
static weft_status infer(weft_site *site, weft_error *error)
{
    const weft_dim_attributes *attributes = site->attributes;
    const weft_shape *rows = &site->in[0].shape, *ids = &site->in[1].shape;
    WEFT_TRY(weft_check_ids(site, 1, error));
    for (int d = 0; d < ids->n_dims; d++)
        WEFT_TRY(weft_check_dim(site, 0, ids->dims[d].name, ids->dims[d].size, error));
    if (weft_shape_find(rows, attributes->dim) >= 0)
        return weft_fail(error, WEFT_USAGE,
                         "%s has %s already, which the result gets from the ids; weft_rename it",
                         weft_site_name(site, 0), attributes->dim);
    site->n_out = 1;
    site->out[0].dtype = site->in[0].dtype;
    weft_shape *out = &site->out[0].shape;
    out->dims[out->n_dims++] = (weft_dim){attributes->dim, attributes->size};
    for (int d = ids->n_dims; d < rows->n_dims && out->n_dims < WEFT_MAX_DIMS; d++)
        out->dims[out->n_dims++] = rows->dims[d];
    if (rows->n_dims - ids->n_dims < WEFT_MAX_DIMS) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE, "the result would have more than %d dims", WEFT_MAX_DIMS);
}

static void factors(const weft_site *site, weft_factors *factors)
{
    weft_factors_by_name(site, WEFT_MAX, factors);
}

static void gradient(weft_vjp *vjp)
{
    const weft_dim_attributes *attributes = vjp->site->attributes;
    const weft_dim dim = {attributes->dim, attributes->size};
    const weft_value rows = vjp->in[0], ids = vjp->in[1], y = vjp->out[0];
    const weft_dtype dtype = weft_dtype_of(rows);
    if (!vjp->wanted[0]) return;
    const weft_value zero = weft_constant(vjp->graph, dtype, WEFT_SCALAR, 0.0);
    const weft_value is_top = weft_equal(rows, weft_gather(y, ids, dim));
    const weft_value ties = weft_cast(is_top, dtype);
    const weft_value one = weft_constant(vjp->graph, dtype, WEFT_SCALAR, 1.0);
    const weft_value n = weft_maximum(weft_scatter_add(ties, ids, dim), one);
    const weft_value share = weft_gather(weft_div(vjp->dout[0], n), ids, dim);
    vjp->din[0] = weft_where(is_top, share, zero);
}

static double flops(const weft_site *site)
{
    return weft_count_of(&site->in[0].shape);
}

const weft_op weft_op_scatter_max = {
    .name = "scatter_max",
    .attributes = &weft_attributes_dim,
    .infer = infer,
    .factors = factors,
    .gradient = gradient,
    .flops = flops,
};

weft_value weft_scatter_max(weft_value rows, weft_value ids, weft_dim dim)
{
    const weft_shape *shape = weft_shape_of(rows);
    weft_shape order = *weft_shape_of(ids);
    bool all = rows.id != 0 && ids.id != 0;
    for (int d = 0; d < order.n_dims; d++)
        all = all && weft_shape_find(shape, order.dims[d].name) >= 0;
    for (int d = 0; d < shape->n_dims && all; d++)
        if (weft_shape_find(weft_shape_of(ids), shape->dims[d].name) < 0)
            order.dims[order.n_dims++] = shape->dims[d];
    const weft_value in[] = {weft_wide(all ? weft_transpose(rows, order) : rows), ids};
    const bool is_along = weft_shape_find(weft_shape_of(ids), dim.name) >= 0; /* as in gather */
    const weft_dim to = is_along ? weft_dim_beside(rows.graph, dim) : dim;
    const weft_value y = weft_emit_dim(&weft_op_scatter_max, in, 2, to);
    return weft_cast(is_along ? weft_rename(y, to, dim) : y, weft_dtype_of(rows));
}
