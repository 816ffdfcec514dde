/* abs: y = |x|. The least integer has no opposite, and stays.
 *
 * Gradient: dx = dy sign(x): 0 at 0.
 */
#include "element.h"
#include "weft/ops.h"

WEFT_ELEMENT_1W(x < 0    ? -x
                : x == 0 ? 0
                         : x,
                x < 0 ? (int32_t)(0u - (uint32_t)x) : x, x < 0 ? (int64_t)(0u - (uint64_t)x) : x)

static void gradient(weft_vjp *vjp)
{
    vjp->din[0] = weft_mul(vjp->dout[0], weft_sign(vjp->in[0]));
}

const weft_op weft_op_abs = {
    .name = "abs",
    .infer = weft_infer_same,
    .factors = weft_factors_pass,
    .gradient = gradient,
    .element = &element,
};

weft_value weft_abs(weft_value x)
{
    return weft_emit_element(&weft_op_abs, &x, 1, 0.0, 0.0);
}
