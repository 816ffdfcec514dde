/* maximum: the larger of a and b, broadcast by name. A NaN in either operand is kept.
 *
 * Gradient: dy goes to a where a >= b, else to b.
 */
#include "element.h"
#include "weft/ops.h"

WEFT_ELEMENT_2W(x >= y || x != x ? x : y, x >= y ? x : y, x >= y ? x : y)

static void gradient(weft_vjp *vjp)
{
    weft_value zero = weft_constant(vjp->graph, weft_dtype_of(vjp->out[0]), WEFT_SCALAR, 0.0);
    weft_value is_a = weft_greater_equal(vjp->in[0], vjp->in[1]);
    if (vjp->wanted[0]) vjp->din[0] = weft_sum_to(weft_where(is_a, vjp->dout[0], zero), vjp->in[0]);
    if (vjp->wanted[1]) vjp->din[1] = weft_sum_to(weft_where(is_a, zero, vjp->dout[0]), vjp->in[1]);
}

const weft_op weft_op_maximum = {
    .name = "maximum",
    .infer = weft_infer_broadcast,
    .factors = weft_factors_pass,
    .gradient = gradient,
    .element = &element,
};

weft_value weft_maximum(weft_value a, weft_value b)
{
    const weft_value in[] = {a, b};
    return weft_emit_element(&weft_op_maximum, in, 2, 0.0, 0.0);
}
