/* sqrt: y = square root of x.
 *
 * Gradient: dx = dy / (2 y); infinite at 0.
 */
#include "element.h"
#include "weft/ops.h"

WEFT_ELEMENT_1X(sqrtf(x), sqrt(x))

static void gradient(weft_vjp *vjp)
{
    vjp->din[0] = weft_scale(weft_div(vjp->dout[0], vjp->out[0]), 0.5);
}

const weft_op weft_op_sqrt = {
    .name = "sqrt",
    .infer = weft_infer_same,
    .factors = weft_factors_pass,
    .gradient = gradient,
    .element = &element,
};

weft_value weft_sqrt(weft_value x)
{
    return weft_emit_element(&weft_op_sqrt, &x, 1, 0.0, 0.0);
}
