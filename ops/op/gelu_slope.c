/* gelu_slope: the derivative of gelu. Only gradients of gelu make it.
 *
 * Its own gradient goes through the same number written with simpler ops:
 * (1 + t)/2 + x/2 (1 - t^2) c (1 + 3 k x^2), t = tanh(c (x + k x^3)), c = sqrt(2/pi), k = 0.044715.
 */
#include "element.h"
#include "weft/ops.h"

WEFT_ELEMENT_1X(weft_gelu_slope_f32(x), weft_gelu_slope_f64(x))

static void expand(weft_vjp *vjp)
{
    const double c = 0.79788456080286536, k = 0.044715;
    weft_value x = vjp->in[0];
    weft_value square = weft_square(x);
    weft_value t = weft_tanh(weft_mul(x, weft_shift(weft_scale(square, c * k), c)));
    weft_value bend = weft_shift(weft_scale(square, 3.0 * c * k), c);
    weft_value flat = weft_shift(weft_neg(weft_square(t)), 1.0);
    weft_value twice = weft_add(weft_shift(t, 1.0), weft_mul(weft_mul(x, flat), bend));
    vjp->out[0] = weft_scale(twice, 0.5);
}

const weft_op weft_op_gelu_slope = {
    .name = "gelu_slope",
    .infer = weft_infer_same,
    .factors = weft_factors_pass,
    .expand = expand,
    .element = &element,
};
