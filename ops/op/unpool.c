/* unpool: each element of y put to its place in x, which is the tap that max_pool names; elements with one place are
 * added up. Linear in y. A block of the result is seen of y and the taps through the windows' adjoint, of slope 1 /
 * stride.
 *
 * Gradient: pool_pick.
 */
#include "pool.h"
#include "weft/ops.h"

static weft_status infer(weft_site *site, weft_error *error)
{
    WEFT_TRY(weft_check_ids(site, 1, error));
    site->n_out = 1;
    site->out[0].dtype = site->in[0].dtype;
    WEFT_TRY(weft_pool_shape(site, 0, WEFT_POOL_Y, &site->out[0].shape, error));
    return weft_pool_check_taps(site, &site->in[0].shape, error);
}

static void factors(const weft_site *site, weft_factors *factors)
{
    weft_pool_factors(site, WEFT_POOL_Y, 1 | 2, factors);
}

static void gradient(weft_vjp *vjp)
{
    if (vjp->wanted[0])
        vjp->din[0] = weft_pool_pick(vjp->dout[0], vjp->in[1], vjp->site->attributes);
}

const weft_op weft_op_unpool = {
    .name = "unpool",
    .attributes = &weft_attributes_pool,
    .infer = infer,
    .factors = factors,
    .linear = 1,
    .gradient = gradient,
};

weft_value weft_unpool(weft_value y, weft_value which, const weft_pool_attributes *attributes)
{
    const weft_value in[] = {weft_wide(y), which};
    return weft_cast(weft_emit(y.graph, &weft_op_unpool, in, 2, attributes, sizeof *attributes),
                     weft_dtype_of(y));
}
