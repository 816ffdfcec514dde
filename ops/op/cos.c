/* cos: y = cos x, x in radians.
 *
 * Gradient: dx = -dy sin x.
 */
#include "element.h"
#include "weft/ops.h"

WEFT_ELEMENT_1X(cosf(x), cos(x))

static void gradient(weft_vjp *vjp)
{
    vjp->din[0] = weft_neg(weft_mul(vjp->dout[0], weft_sin(vjp->in[0])));
}

const weft_op weft_op_cos = {
    .name = "cos",
    .infer = weft_infer_same,
    .factors = weft_factors_pass,
    .gradient = gradient,
    .element = &element,
};

weft_value weft_cos(weft_value x)
{
    return weft_emit_element(&weft_op_cos, &x, 1, 0.0, 0.0);
}
