/* gelu: y = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), the tanh form.
 *
 * Gradient: dx = dy gelu_slope(x), an op of its own so that it is one pass over x.
 * source  Hendrycks and Gimpel 2016, "Gaussian Error Linear Units"
 */
#include "element.h"
#include "weft/ops.h"

WEFT_ELEMENT_1X(weft_gelu_f32(x), weft_gelu_f64(x))

static void gradient(weft_vjp *vjp)
{
    weft_value slope = weft_emit_element(&weft_op_gelu_slope, &vjp->in[0], 1, 0.0, 0.0);
    vjp->din[0] = weft_mul(vjp->dout[0], slope);
}

const weft_op weft_op_gelu = {
    .name = "gelu",
    .infer = weft_infer_same,
    .factors = weft_factors_pass,
    .gradient = gradient,
    .element = &element,
};

weft_value weft_gelu(weft_value x)
{
    return weft_emit_element(&weft_op_gelu, &x, 1, 0.0, 0.0);
}
