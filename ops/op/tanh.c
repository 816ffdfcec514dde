/* tanh: y = tanh x.
 *
 * Gradient: dx = dy 4 sigmoid_slope(2 x), which is 1 - y^2.
 */
#include "element.h"
#include "weft/ops.h"

WEFT_ELEMENT_1X(weft_tanh_f32(x), weft_tanh_f64(x))

static void gradient(weft_vjp *vjp)
{
    const weft_value twice = weft_scale(vjp->in[0], 2.0);
    const weft_value slope = weft_emit_element(&weft_op_sigmoid_slope, &twice, 1, 0.0, 0.0);
    vjp->din[0] = weft_mul(vjp->dout[0], weft_scale(slope, 4.0));
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
