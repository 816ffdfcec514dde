/* rsqrt: y = 1 / square root of x.
 *
 * Gradient: dx = -dy y^3 / 2.
 */
#include "element.h"
#include "weft/ops.h"

WEFT_ELEMENT_1X(1.0f / sqrtf(x), 1.0 / sqrt(x))

static void gradient(weft_vjp *vjp)
{
    weft_value y = vjp->out[0];
    vjp->din[0] = weft_scale(weft_mul(vjp->dout[0], weft_mul(weft_square(y), y)), -0.5);
}

const weft_op weft_op_rsqrt = {
    .name = "rsqrt",
    .infer = weft_infer_same,
    .factors = weft_factors_pass,
    .gradient = gradient,
    .element = &element,
};

weft_value weft_rsqrt(weft_value x)
{
    return weft_emit_element(&weft_op_rsqrt, &x, 1, 0.0, 0.0);
}
