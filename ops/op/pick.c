/* pick: elements of each row along a dim: y[..., own] = x[..., ids[..., own]]; an id outside the dim gives zero. Ids have the dims
 * of the rows, and may have others of their own: then so many elements of each row. With dims of their own they may lack some of x's:
 * elements of these are taken together, as gather's rows are, and no id stands for each of them.
 *
 * Where x is split along the dim, each rank gives the elements it holds: a partial sum. Linear in
 * x. Gradient: of one element a row, dx = dy where the coordinate is the id, else 0, be dy infinite; of more, unpick.
 */
#include <string.h>

#include "weft/ops.h"
#include "op.h"

/* The ids' dims, then those of `rest` that ids lack. */
static weft_shape with_rest(const weft_shape *ids, const weft_shape *rest)
{
    weft_shape all = *ids;
    for (int d = 0; d < rest->n_dims; d++) {
        if (weft_shape_find(ids, rest->dims[d].name) >= 0) continue;
        if (all.n_dims < WEFT_MAX_DIMS) all.dims[all.n_dims] = rest->dims[d];
        all.n_dims++;
    }
    return all;
}

static bool has_own(const weft_shape *ids, const weft_shape *x)
{
    for (int d = 0; d < ids->n_dims; d++)
        if (weft_shape_find(x, ids->dims[d].name) < 0) return true;
    return false;
}

static weft_status infer(weft_site *site, weft_error *error)
{
    const weft_dim_attributes *attributes = site->attributes;
    WEFT_TRY(weft_check_ids(site, 1, error));
    WEFT_TRY(weft_check_dim(site, 0, attributes->dim, attributes->size, error));
    WEFT_TRY(weft_check_dims(site, error));
    const weft_shape rest = weft_shape_without(&site->in[0].shape, attributes->dim);
    const weft_shape all = with_rest(&site->in[1].shape, &rest);
    if (all.n_dims > WEFT_MAX_DIMS)
        return weft_fail(
            error, WEFT_USAGE,
            "%s and the ids %s have more than %d dims together; take fewer elements of "
            "each row at a time, or rename those that should match",
            weft_site_name(site, 0), weft_site_name(site, 1), WEFT_MAX_DIMS);
    site->n_out = 1;
    site->out[0] = (weft_type){site->in[0].dtype, all};
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
    if (has_own(weft_shape_of(ids), weft_shape_of(x))) {
        vjp->din[0] = weft_unpick(*weft_shape_of(x), dy, ids, dim);
        return;
    }
    const weft_value in[] = {weft_one_hot(ids, dim, weft_dtype_of(x)), dy};
    vjp->din[0] = weft_sum_to(weft_emit_element(&weft_op_masked, in, 2, 0.0, 0.0), x);
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

/* ids with the dims of the rows, in their order, and then those of its own; where it has some and lacks others, as it is. */
static weft_value align(weft_value ids, weft_shape rest)
{
    const weft_shape all = with_rest(&rest, weft_shape_of(ids));
    if (all.n_dims > WEFT_MAX_DIMS) return ids; /* infer says so */
    if (weft_shape_of(ids)->n_dims == all.n_dims) return weft_transpose(ids, all);
    return has_own(weft_shape_of(ids), &rest) ? ids : weft_broadcast_to(ids, all);
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
