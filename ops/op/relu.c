/* relu: y = max(x, 0), element by element. A NaN is kept.
 *
 * Factors: every dim passes. Not linear: a partial sum is finished first.
 * Gradient: dx = dy where x > 0, else 0. At x = 0 there is no slope; we choose 0. It is read off y
 * (y > 0 where x > 0), which the next layer keeps anyway.
 */
#include "element.h"
#include "weft/ops.h"

WEFT_ELEMENT_1(x < 0 ? 0 : x)

static void gradient(weft_vjp *vjp)
{
    weft_value y = vjp->out[0];
    weft_value zero = weft_constant(vjp->graph, weft_dtype_of(y), WEFT_SCALAR, 0.0);
    vjp->din[0] = weft_where(weft_greater(y, zero), vjp->dout[0], zero);
}

const weft_op weft_op_relu = {
    .name = "relu",
    .infer = weft_infer_same,
    .factors = weft_factors_pass,
    .gradient = gradient,
    .element = &element,
};

weft_value weft_relu(weft_value x)
{
    return weft_emit_element(&weft_op_relu, &x, 1, 0.0, 0.0);
}
