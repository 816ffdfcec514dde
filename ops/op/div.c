/* div: a / b, broadcast by name. Linear in a. Division of i32 truncates; by 0 it gives 0.
 *
 * Gradient: da = dy / b, db = -dy y / b, summed over the dims they lack.
 */
#include "element.h"
#include "weft/ops.h"

WEFT_ELEMENT_2W(x / y,
                y == 0    ? 0
                : y == -1 ? (int32_t)(0u - (uint32_t)x)
                          : x / y,
                y == 0    ? 0
                : y == -1 ? (int64_t)(0u - (uint64_t)x)
                          : x / y)

static void gradient(weft_vjp *vjp)
{
    weft_value quotient = weft_div(vjp->dout[0], vjp->in[1]);
    if (vjp->wanted[0]) vjp->din[0] = weft_sum_to(quotient, vjp->in[0]);
    if (vjp->wanted[1])
        vjp->din[1] = weft_neg(weft_sum_to(weft_mul(quotient, vjp->out[0]), vjp->in[1]));
}

const weft_op weft_op_div = {
    .name = "div",
    .infer = weft_infer_broadcast,
    .factors = weft_factors_pass,
    .linear = 1,
    .selects = true,
    .gradient = gradient,
    .element = &element,
};

weft_value weft_div(weft_value a, weft_value b)
{
    const weft_value in[] = {a, b};
    return weft_emit_element(&weft_op_div, in, 2, 0.0, 0.0);
}
