/* square: y = x^2.
 *
 * Gradient: dx = 2 x dy.
 */
#include "element.h"
#include "weft/ops.h"

WEFT_ELEMENT_1(x *x)

static void gradient(weft_vjp *vjp)
{
    vjp->din[0] = weft_scale(weft_mul(vjp->dout[0], vjp->in[0]), 2.0);
}

const weft_op weft_op_square = {
    .name = "square",
    .infer = weft_infer_same,
    .factors = weft_factors_pass,
    .gradient = gradient,
    .element = &element,
};

weft_value weft_square(weft_value x)
{
    return weft_emit_element(&weft_op_square, &x, 1, 0.0, 0.0);
}
