/* log: y = ln x; ln 0 is -inf, below 0 NaN.
 *
 * Gradient: dx = dy / x.
 */
#include "element.h"
#include "weft/ops.h"

WEFT_ELEMENT_1X(weft_log_f32(x), weft_log_f64(x))

static void gradient(weft_vjp *vjp)
{
    vjp->din[0] = weft_div(vjp->dout[0], vjp->in[0]);
}

const weft_op weft_op_log = {
    .name = "log",
    .infer = weft_infer_same,
    .factors = weft_factors_pass,
    .gradient = gradient,
    .element = &element,
};

weft_value weft_log(weft_value x)
{
    return weft_emit_element(&weft_op_log, &x, 1, 0.0, 0.0);
}
