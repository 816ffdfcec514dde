/* erf: y = 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x.
 *
 * Gradient: dx = dy 2 / sqrt(pi) exp(-x^2).
 */
#include "element.h"
#include "weft/ops.h"

WEFT_ELEMENT_1X(weft_erf_f32(x), weft_erf_f64(x))

static void gradient(weft_vjp *vjp)
{
    const double two_by_root_pi = 1.1283791670955126;
    const weft_value slope = weft_exp(weft_neg(weft_square(vjp->in[0])));
    vjp->din[0] = weft_mul(vjp->dout[0], weft_scale(slope, two_by_root_pi));
}

const weft_op weft_op_erf = {
    .name = "erf",
    .infer = weft_infer_same,
    .factors = weft_factors_pass,
    .gradient = gradient,
    .element = &element,
};

weft_value weft_erf(weft_value x)
{
    return weft_emit_element(&weft_op_erf, &x, 1, 0.0, 0.0);
}
