/* reduce_max: the largest element over the dims that the result lacks.
 *
 * Gradient: dy, shared equally by the elements that are the largest.
 */
#include "weft/ops.h"
#include "op.h"

static void gradient(weft_vjp *vjp)
{
    weft_value x = vjp->in[0], y = vjp->out[0];
    const weft_dtype dtype = weft_dtype_of(x);
    weft_value is_top = weft_equal(x, y), zero = weft_constant(vjp->graph, dtype, WEFT_SCALAR, 0.0);
    weft_value share = weft_div(vjp->dout[0], weft_sum_to(weft_cast(is_top, dtype), y));
    vjp->din[0] = weft_sum_to(weft_where(is_top, share, zero), x);
}

static double flops(const weft_site *site)
{
    return weft_count_of(&site->in[0].shape);
}

const weft_op weft_op_reduce_max = {
    .name = "reduce_max",
    .attributes = &weft_attributes_reduced,
    .infer = weft_infer_reduce,
    .factors = weft_factors_reduce,
    .gradient = gradient,
    .flops = flops,
    .row = &(const weft_row){.combine = WEFT_MAX},
};

weft_value weft_max(weft_shape out, weft_value x)
{
    return weft_emit_reduce_to(&weft_op_reduce_max, WEFT_MAX, out, x);
}
