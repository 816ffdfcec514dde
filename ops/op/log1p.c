/* log1p: y = log(1 + x), as exact for x near 0 as elsewhere.
 *
 * Gradient: dx = dy / (1 + x).
 */
#include "element.h"
#include "weft/ops.h"

WEFT_ELEMENT_1X(weft_log1p_f32(x), weft_log1p_f64(x))

static void gradient(weft_vjp *vjp)
{
    vjp->din[0] = weft_div(vjp->dout[0], weft_shift(vjp->in[0], 1.0));
}

const weft_op weft_op_log1p = {
    .name = "log1p",
    .infer = weft_infer_same,
    .factors = weft_factors_pass,
    .gradient = gradient,
    .element = &element,
};

weft_value weft_log1p(weft_value x)
{
    return weft_emit_element(&weft_op_log1p, &x, 1, 0.0, 0.0);
}
