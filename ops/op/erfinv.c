/* erfinv: y with erf(y) = x; infinite at -1 and 1, NaN outside.
 *
 * Gradient: dx = dy sqrt(pi) / 2 exp(y^2).
 */
#include "element.h"
#include "weft/ops.h"

WEFT_ELEMENT_1X((float)weft_erfinv_f64((double)x), weft_erfinv_f64(x))

static void gradient(weft_vjp *vjp)
{
    const double half_root_pi = 0.88622692545275801;
    const weft_value slope = weft_exp(weft_square(vjp->out[0]));
    vjp->din[0] = weft_mul(vjp->dout[0], weft_scale(slope, half_root_pi));
}

const weft_op weft_op_erfinv = {
    .name = "erfinv",
    .infer = weft_infer_same,
    .factors = weft_factors_pass,
    .gradient = gradient,
    .element = &element,
};

weft_value weft_erfinv(weft_value x)
{
    return weft_emit_element(&weft_op_erfinv, &x, 1, 0.0, 0.0);
}
