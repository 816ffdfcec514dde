/* reduce_prod: the product over the dims that the result lacks; products of parts where they are split.
 *
 * Gradient: dy times the product of all others: y / x, and where x is 0 nothing is divided: of one 0 alone it is the product of
 * the others, of more it is 0.
 */
#include "op.h"
#include "weft/ops.h"

static void gradient(weft_vjp *vjp)
{
    const weft_value x = vjp->in[0], y = vjp->out[0], dy = vjp->dout[0];
    const weft_dtype dtype = weft_dtype_of(x);
    const weft_value zero = weft_constant(vjp->graph, dtype, WEFT_SCALAR, 0.0),
                     one = weft_constant(vjp->graph, dtype, WEFT_SCALAR, 1.0);
    const weft_value is_zero = weft_equal(x, zero), safe = weft_where(is_zero, one, x);
    const weft_shape rows = *weft_shape_of(y);
    const weft_value n_zeros = weft_sum(rows, weft_cast(is_zero, dtype));
    const weft_value of_others = weft_prod(rows, safe); /* of a row's zeros, when it is one */
    const weft_value at_zero = weft_where(weft_equal(n_zeros, one), weft_mul(dy, of_others), zero);
    const weft_value elsewhere = weft_where(weft_equal(n_zeros, zero), weft_mul(dy, y), zero);
    vjp->din[0] = weft_where(is_zero, at_zero, weft_div(elsewhere, safe));
}

static double flops(const weft_site *site)
{
    return weft_count_of(&site->in[0].shape);
}

const weft_op weft_op_reduce_prod = {
    .name = "reduce_prod",
    .attributes = &weft_attributes_reduced,
    .infer = weft_infer_reduce,
    .factors = weft_factors_reduce,
    .gradient = gradient,
    .flops = flops,
};

weft_value weft_prod(weft_shape out, weft_value x)
{
    return weft_emit_reduce_to(&weft_op_reduce_prod, WEFT_PROD, out, x);
}
