/* exp: y = e^x.
 *
 * Gradient: dx = dy y.
 * In a loop: exp((x - maximum) - log_sum) of x's row (normalizer.c), a softmax, is exp(x - maximum), which the sum was made of, scaled.
 */
#include "element.h"
#include "op.h"
#include "weft/ops.h"

WEFT_ELEMENT_1X(weft_exp_f32(x), weft_exp_f64(x))

static void gradient(weft_vjp *vjp)
{
    vjp->din[0] = weft_mul(vjp->dout[0], vjp->out[0]);
}

const weft_op weft_op_exp = {
    .name = "exp",
    .infer = weft_infer_same,
    .factors = weft_factors_pass,
    .gradient = gradient,
    .element = &element,
    .row = &(const weft_row){.combine = WEFT_LSE, .resumes = &weft_op_sub},
};

weft_value weft_exp(weft_value x)
{
    return weft_emit_element(&weft_op_exp, &x, 1, 0.0, 0.0);
}
