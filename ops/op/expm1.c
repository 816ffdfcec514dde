/* expm1: y = exp x - 1, as exact for x near 0 as elsewhere.
 *
 * Gradient: dx = dy exp(x). y + 1 is the same number, but far below 0 y is all but -1, and what is left of the sum is rounding.
 */
#include "element.h"
#include "weft/ops.h"

WEFT_ELEMENT_1X(weft_expm1_f32(x), weft_expm1_f64(x))

static void gradient(weft_vjp *vjp)
{
    vjp->din[0] = weft_mul(vjp->dout[0], weft_exp(vjp->in[0]));
}

const weft_op weft_op_expm1 = {
    .name = "expm1",
    .infer = weft_infer_same,
    .factors = weft_factors_pass,
    .gradient = gradient,
    .element = &element,
};

weft_value weft_expm1(weft_value x)
{
    return weft_emit_element(&weft_op_expm1, &x, 1, 0.0, 0.0);
}
