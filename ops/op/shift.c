/* shift: y = x + n, n a number. Not linear: n would be added once per summand of a partial sum.
 *
 * Gradient: dx = dy.
 */
#include "element.h"
#include "weft/ops.h"

WEFT_ELEMENT_1(x + n0)

static void gradient(weft_vjp *vjp)
{
    vjp->din[0] = vjp->dout[0];
}

const weft_op weft_op_shift = {
    .name = "shift",
    .infer = weft_infer_same,
    .factors = weft_factors_pass,
    .gradient = gradient,
    .element = &element,
};

weft_value weft_shift(weft_value x, double by)
{
    return weft_emit_element(&weft_op_shift, &x, 1, by, 0.0);
}
