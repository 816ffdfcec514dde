/* pick: one element of each row along a dim: y[...] = x[..., ids[...]]; an id outside the dim gives
 * zero.
 *
 * Where x is split along the dim, each rank gives the elements it holds: a partial sum. Linear in
 * x. Gradient: dx = dy where the coordinate is the id, else 0.
 */
#include <string.h>

#include "weft/ops.h"
#include "op.h"

static weft_status infer(weft_site *site, weft_error *error)
{
    const weft_dim_attributes *attributes = site->attributes;
    WEFT_TRY(weft_check_ids(site, 1, error));
    WEFT_TRY(weft_check_dim(site, 0, attributes->dim, attributes->size, error));
    WEFT_TRY(weft_check_dims(site, error));
    const weft_shape rest = weft_shape_without(&site->in[0].shape, attributes->dim);
    if (!weft_shape_same_order(&rest, &site->in[1].shape)) {
        char x[160], ids[160];
        weft_shape_print(&site->in[0].shape, x, sizeof x);
        weft_shape_print(&site->in[1].shape, ids, sizeof ids);
        return weft_fail(error, WEFT_USAGE,
                         "%s is %s and the ids %s are %s; ids have the dims of the first "
                         "without %s, or fewer. Rename or remove the others",
                         weft_site_name(site, 0), x, weft_site_name(site, 1), ids, attributes->dim);
    }
    site->n_out = 1;
    site->out[0] = (weft_type){site->in[0].dtype, rest};
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
    if (!vjp->wanted[0]) return;
    weft_value chosen = weft_one_hot(vjp->in[1], dim, weft_dtype_of(vjp->in[0]));
    vjp->din[0] = weft_sum_to(weft_mul(chosen, vjp->dout[0]), vjp->in[0]);
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

weft_value weft_pick(weft_value x, weft_value ids, weft_dim dim)
{
    const weft_shape rest = weft_shape_without(weft_shape_of(x), dim.name);
    bool fits = x.id != 0 && ids.id != 0;
    for (int d = 0; d < weft_shape_of(ids)->n_dims; d++)
        fits = fits && weft_shape_find(&rest, weft_shape_of(ids)->dims[d].name) >= 0;
    if (fits && weft_shape_of(ids)->n_dims == rest.n_dims) ids = weft_transpose(ids, rest);
    if (fits && weft_shape_of(ids)->n_dims < rest.n_dims) ids = weft_broadcast_to(ids, rest);
    const weft_value in[] = {x, ids};
    return weft_emit_dim(&weft_op_pick, in, 2, dim);
}
