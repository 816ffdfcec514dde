/* pool_pick: of x the elements at the taps that max_pool has found; 0 where it has found none. Linear in x.
 *
 * Gradient: unpool.
 */
#include "pool.h"
#include "weft/ops.h"

static weft_status infer(weft_site *site, weft_error *error)
{
    WEFT_TRY(weft_check_ids(site, 1, error));
    site->n_out = 1;
    site->out[0].dtype = site->in[0].dtype;
    WEFT_TRY(weft_pool_shape(site, 0, WEFT_POOL_X, &site->out[0].shape, error));
    return weft_pool_check_taps(site, &site->out[0].shape, error);
}

static void factors(const weft_site *site, weft_factors *factors)
{
    weft_pool_factors(site, WEFT_POOL_X, 1, factors);
}

static void gradient(weft_vjp *vjp)
{
    if (vjp->wanted[0]) vjp->din[0] = weft_unpool(vjp->dout[0], vjp->in[1], vjp->site->attributes);
}

const weft_op weft_op_pool_pick = {
    .name = "pool_pick",
    .attributes = &weft_attributes_pool,
    .infer = infer,
    .factors = factors,
    .linear = 1,
    .selects = true,
    .gradient = gradient,
};

weft_value weft_pool_pick(weft_value x, weft_value which, const weft_pool_attributes *attributes)
{
    const weft_value in[] = {x, which};
    return weft_emit(x.graph, &weft_op_pool_pick, in, 2, attributes, sizeof *attributes);
}
