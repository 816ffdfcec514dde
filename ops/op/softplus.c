/* softplus: y = log(1 + exp x).
 *
 * Gradient: dx = dy sigmoid(x), which is flat where it is 0 or 1 in every dtype: there its own slope is 0, be dy infinite.
 */
#include "element.h"
#include "weft/ops.h"

WEFT_ELEMENT_1X(weft_softplus_f32(x), weft_softplus_f64(x))

static void gradient(weft_vjp *vjp)
{
    const weft_value x = weft_clamp(vjp->in[0], -1000.0, 1000.0);
    vjp->din[0] = weft_mul(vjp->dout[0], weft_sigmoid(x));
}

const weft_op weft_op_softplus = {
    .name = "softplus",
    .infer = weft_infer_same,
    .factors = weft_factors_pass,
    .gradient = gradient,
    .element = &element,
};

weft_value weft_softplus(weft_value x)
{
    return weft_emit_element(&weft_op_softplus, &x, 1, 0.0, 0.0);
}
