/* tanh: y = tanh x.
 *
 * Gradient: dx = dy (1 - y^2), of y, which the next layer keeps: where y is all but 1, it is as exact as y.
 */
#include "element.h"
#include "weft/ops.h"

WEFT_ELEMENT_1X(weft_tanh_f32(x), weft_tanh_f64(x))

static void gradient(weft_vjp *vjp)
{
    weft_value slope = weft_shift(weft_neg(weft_square(vjp->out[0])), 1.0);
    vjp->din[0] = weft_mul(vjp->dout[0], slope);
}

const weft_op weft_op_tanh = {
    .name = "tanh",
    .infer = weft_infer_same,
    .factors = weft_factors_pass,
    .gradient = gradient,
    .element = &element,
};

weft_value weft_tanh(weft_value x)
{
    return weft_emit_element(&weft_op_tanh, &x, 1, 0.0, 0.0);
}
