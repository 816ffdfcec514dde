/* sin: y = sin x, x in radians.
 *
 * Gradient: dx = dy cos x.
 */
#include "element.h"
#include "weft/ops.h"

WEFT_ELEMENT_1X(sinf(x), sin(x))

static void gradient(weft_vjp *vjp)
{
    vjp->din[0] = weft_mul(vjp->dout[0], weft_cos(vjp->in[0]));
}

const weft_op weft_op_sin = {
    .name = "sin",
    .infer = weft_infer_same,
    .factors = weft_factors_pass,
    .gradient = gradient,
    .element = &element,
};

weft_value weft_sin(weft_value x)
{
    return weft_emit_element(&weft_op_sin, &x, 1, 0.0, 0.0);
}
