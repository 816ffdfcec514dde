/* sigmoid_slope: the derivative of sigmoid, s(x) s(-x). Gradients of sigmoid and tanh make it, of what these were of and not of what
 * they gave: far out 1 - y is what rounding has left of 1.
 *
 * Gradient: dx = -dy y tanh(x / 2), which is y (1 - 2 s).
 */
#include "element.h"
#include "weft/ops.h"

WEFT_ELEMENT_1X(weft_sigmoid_slope_f32(x), weft_sigmoid_slope_f64(x))

static void gradient(weft_vjp *vjp)
{
    const weft_value bend = weft_neg(weft_tanh(weft_scale(vjp->in[0], 0.5)));
    vjp->din[0] = weft_mul(weft_mul(vjp->dout[0], vjp->out[0]), bend);
}

const weft_op weft_op_sigmoid_slope = {
    .name = "sigmoid_slope",
    .infer = weft_infer_same,
    .factors = weft_factors_pass,
    .gradient = gradient,
    .element = &element,
};
