/* gelu_slope: the derivative of gelu. Only gradients of gelu make it.
 *
 * Its own gradient goes through the same number written with simpler ops:
 * s + x s (1 - s) c (1 + 3 k x^2), s = sigmoid(c (x + k x^3)), c = 2 sqrt(2/pi), k = 0.044715. It is flat past |x| = 30, where s
 * has long been 0 or 1: so no infinity meets a 0.
 */
#include "element.h"
#include "weft/ops.h"

WEFT_ELEMENT_1X(weft_gelu_slope_f32(x), weft_gelu_slope_f64(x))

static void expand(weft_vjp *vjp)
{
    const double c = 1.5957691216057308, k = 0.044715;
    weft_value x = weft_clamp(vjp->in[0], -30.0, 30.0);
    weft_value square = weft_square(x);
    weft_value s = weft_sigmoid(weft_mul(x, weft_shift(weft_scale(square, c * k), c)));
    weft_value bend = weft_shift(weft_scale(square, 3.0 * c * k), c);
    weft_value flat = weft_sub(s, weft_square(s));
    vjp->out[0] = weft_add(s, weft_mul(weft_mul(x, flat), bend));
}

const weft_op weft_op_gelu_slope = {
    .name = "gelu_slope",
    .infer = weft_infer_same,
    .factors = weft_factors_pass,
    .expand = expand,
    .element = &element,
};
