/* pick: elements of each row along a dim: y[..., own] = x[..., ids[..., own]]; an id outside the dim gives zero. Ids have the dims
 * of the rows, and may have others of their own: then so many elements of each row.
 *
 * Where x is split along the dim, each rank gives the elements it holds: a partial sum. Linear in
 * x. Gradient: of one element a row, dx = dy where the coordinate is the id, else 0; of more, unpick.
 */
#include <string.h>

#include "weft/ops.h"
#include "op.h"

/* Whether ids have the dims of `rest` first, in its order. */
static bool begins_with(const weft_shape *ids, const weft_shape *rest)
{
    weft_shape first = *ids;
    if (ids->n_dims < rest->n_dims) return false;
    first.n_dims = rest->n_dims;
    return weft_shape_same_order(rest, &first);
}

static weft_status infer(weft_site *site, weft_error *error)
{
    const weft_dim_attributes *attributes = site->attributes;
    WEFT_TRY(weft_check_ids(site, 1, error));
    WEFT_TRY(weft_check_dim(site, 0, attributes->dim, attributes->size, error));
    WEFT_TRY(weft_check_dims(site, error));
    const weft_shape rest = weft_shape_without(&site->in[0].shape, attributes->dim);
    if (!begins_with(&site->in[1].shape, &rest))
        return weft_fail(
            error, WEFT_USAGE,
            "%s and the ids %s have more than %d dims together; take fewer elements of "
            "each row at a time, or rename those that should match",
            weft_site_name(site, 0), weft_site_name(site, 1), WEFT_MAX_DIMS);
    site->n_out = 1;
    site->out[0] = (weft_type){site->in[0].dtype, site->in[1].shape};
    return WEFT_OK;
}

static void factors(const weft_site *site, weft_factors *factors)
{
    weft_factors_by_name(site, WEFT_SUM, factors);
}

static void gradient(weft_vjp *vjp)
{
    const weft_dim_attributes *attributes = vjp->site->attributes;
    const weft_dim dim = {attributes->dim, attributes->size};
    const weft_value x = vjp->in[0], ids = vjp->in[1], dy = vjp->dout[0];
    if (!vjp->wanted[0]) return;
    if (weft_shape_of(ids)->n_dims >= weft_shape_of(x)->n_dims) {
        vjp->din[0] = weft_unpick(*weft_shape_of(x), dy, ids, dim);
        return;
    }
    weft_value chosen = weft_one_hot(ids, dim, weft_dtype_of(x));
    vjp->din[0] = weft_sum_to(weft_mul(chosen, dy), x);
}

const weft_op weft_op_pick = {
    .name = "pick",
    .attributes = &weft_attributes_dim,
    .infer = infer,
    .factors = factors,
    .linear = 1,
    .selects = true,
    .gradient = gradient,
};

/* ids with the dims of the rows, in their order, and then those of its own. */
static weft_value align(weft_value ids, weft_shape rest)
{
    weft_shape all = rest;
    for (int d = 0; d < weft_shape_of(ids)->n_dims; d++) {
        const weft_dim own = weft_shape_of(ids)->dims[d];
        if (weft_shape_find(&rest, own.name) >= 0) continue;
        if (all.n_dims == WEFT_MAX_DIMS) return ids; /* infer says so */
        all.dims[all.n_dims++] = own;
    }
    if (weft_shape_of(ids)->n_dims == all.n_dims) return weft_transpose(ids, all);
    return weft_broadcast_to(ids, all);
}

weft_value weft_pick(weft_value x, weft_value ids, weft_dim dim)
{
    if (weft_shape_find(weft_shape_of(ids), dim.name) >= 0) { /* as in gather */
        const weft_dim other = weft_dim_beside(x.graph, dim);
        x = weft_rename(x, dim, other);
        dim = other;
    }
    const weft_shape rest = weft_shape_without(weft_shape_of(x), dim.name);
    if (x.id != 0 && ids.id != 0) ids = align(ids, rest);
    const weft_value in[] = {x, ids};
    return weft_emit_dim(&weft_op_pick, in, 2, dim);
}
