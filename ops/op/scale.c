/* scale: y = x n, n a number. Linear: a partial sum may stay partial.
 *
 * Gradient: dx = n dy.
 */
#include "element.h"
#include "weft/ops.h"

WEFT_ELEMENT_1(x *n0)

static void gradient(weft_vjp *vjp)
{
    const weft_element_attributes *attributes = vjp->site->attributes;
    vjp->din[0] = weft_scale(vjp->dout[0], attributes->number[0]);
}

const weft_op weft_op_scale = {
    .name = "scale",
    .infer = weft_infer_same,
    .factors = weft_factors_pass,
    .linear = 1,
    .selects = true,
    .gradient = gradient,
    .element = &element,
};

weft_value weft_scale(weft_value x, double by)
{
    return weft_emit_element(&weft_op_scale, &x, 1, by, 0.0);
}
