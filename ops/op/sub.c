/* sub: a - b, broadcast by name. The difference of two partial sums is a partial sum.
 *
 * Gradient: da = dy, db = -dy, summed over the dims they lack.
 */
#include "element.h"
#include "weft/ops.h"

WEFT_ELEMENT_2W(x - y, (uint32_t)x - (uint32_t)y, (uint64_t)x - (uint64_t)y)

static void gradient(weft_vjp *vjp)
{
    if (vjp->wanted[0]) vjp->din[0] = weft_sum_to(vjp->dout[0], vjp->in[0]);
    if (vjp->wanted[1]) vjp->din[1] = weft_neg(weft_sum_to(vjp->dout[0], vjp->in[1]));
}

const weft_op weft_op_sub = {
    .name = "sub",
    .infer = weft_infer_broadcast,
    .factors = weft_factors_pass,
    .additive = 1 | 2,
    .gradient = gradient,
    .element = &element,
};

weft_value weft_sub(weft_value a, weft_value b)
{
    const weft_value in[] = {a, b};
    return weft_emit_element(&weft_op_sub, in, 2, 0.0, 0.0);
}
