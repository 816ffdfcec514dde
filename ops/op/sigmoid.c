/* sigmoid: y = 1 / (1 + exp(-x)).
 *
 * Gradient: dx = dy y (1 - y), of y, which the next layer keeps: where y is all but 1, it is as exact as y.
 */
#include "element.h"
#include "weft/ops.h"

WEFT_ELEMENT_1X(weft_sigmoid_f32(x), weft_sigmoid_f64(x))

static void gradient(weft_vjp *vjp)
{
    const weft_value y = vjp->out[0], slope = weft_sub(y, weft_square(y));
    vjp->din[0] = weft_mul(vjp->dout[0], slope);
}

const weft_op weft_op_sigmoid = {
    .name = "sigmoid",
    .infer = weft_infer_same,
    .factors = weft_factors_pass,
    .gradient = gradient,
    .element = &element,
};

weft_value weft_sigmoid(weft_value x)
{
    return weft_emit_element(&weft_op_sigmoid, &x, 1, 0.0, 0.0);
}
