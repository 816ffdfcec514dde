/* cumprod: element i of a dim is the product of those before it, with its own or without; or of those behind it.
 *
 * Blocks as in cumsum.
 * Gradient: with y the products, dx_j = (sum over i from j on of dy_i y_i) / x_j. Where x is 0 nothing is divided: at the first
 * 0 of a row y is made as if it were a 1, which leaves the products of all others; behind it all are 0.
 */
#include <string.h>

#include "cumulate.h"
#include "weft/ops.h"

static weft_value along(const weft_vjp *vjp, const weft_op *op, weft_value x, bool exclusive,
                        bool reverse)
{
    weft_cumulate_attributes a = *(const weft_cumulate_attributes *)vjp->site->attributes;
    a.exclusive = exclusive, a.reverse = reverse;
    return weft_emit(vjp->graph, op, &x, 1, &a, sizeof a);
}

static void gradient(weft_vjp *vjp)
{
    const weft_cumulate_attributes *a = vjp->site->attributes;
    const weft_value x = vjp->in[0], y = vjp->out[0], dy = vjp->dout[0];
    const weft_dtype dtype = weft_dtype_of(x);
    const weft_value zero = weft_constant(vjp->graph, dtype, WEFT_SCALAR, 0.0),
                     one = weft_constant(vjp->graph, dtype, WEFT_SCALAR, 1.0);
    const weft_value is_zero = weft_equal(x, zero);
    const weft_value before =
        along(vjp, &weft_op_cumsum, weft_cast(is_zero, dtype), true, a->reverse);
    const weft_value is_first = weft_mul(is_zero, weft_equal(before, zero));
    const weft_value without =
        along(vjp, &weft_op_cumprod, weft_where(is_first, one, x), a->exclusive, a->reverse);
    const weft_value at_zero =
        along(vjp, &weft_op_cumsum, weft_mul(dy, without), a->exclusive, !a->reverse);
    const weft_value elsewhere =
        along(vjp, &weft_op_cumsum, weft_mul(dy, y), a->exclusive, !a->reverse);
    const weft_value divided = weft_div(elsewhere, weft_where(is_zero, one, x));
    vjp->din[0] = weft_where(is_first, at_zero, weft_where(is_zero, zero, divided));
}

const weft_op weft_op_cumprod = {
    .name = "cumprod",
    .attributes = &weft_attributes_cumulate,
    .infer = weft_infer_cumulate,
    .factors = weft_factors_cumulate,
    .gradient = gradient,
};

weft_value weft_cumprod(weft_value x, weft_dim dim, bool exclusive, bool reverse)
{
    static const weft_cumulating products = {
        &weft_op_cumprod,
        weft_mul,
        {[WEFT_F32] = 1, [WEFT_F64] = 1, [WEFT_I32] = 1, [WEFT_I64] = 1}};
    return weft_cumulate(x, dim, exclusive, reverse, &products);
}
