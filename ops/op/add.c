/* add: a + b, broadcast by name. Two partial sums add up to a partial sum.
 *
 * Gradient: da = db = dy, summed over the dims they lack.
 */
#include "element.h"
#include "weft/ops.h"

WEFT_ELEMENT_2W(x + y, (uint32_t)x + (uint32_t)y, (uint64_t)x + (uint64_t)y)

static void gradient(weft_vjp *vjp)
{
    for (int i = 0; i < 2; i++)
        if (vjp->wanted[i]) vjp->din[i] = weft_sum_to(vjp->dout[0], vjp->in[i]);
}

const weft_op weft_op_add = {
    .name = "add",
    .infer = weft_infer_broadcast,
    .factors = weft_factors_pass,
    .additive = 1 | 2,
    .gradient = gradient,
    .element = &element,
};

weft_value weft_add(weft_value a, weft_value b)
{
    const weft_value in[] = {a, b};
    return weft_emit_element(&weft_op_add, in, 2, 0.0, 0.0);
}
