/* mul: a b, broadcast by name. Linear in each operand.
 *
 * Gradient: da = dy b, summed over the dims that a lacks; where there are any, that is an einsum,
 * so that the product is never stored.
 */
#include "element.h"
#include "weft/ops.h"

WEFT_ELEMENT_2W(x *y, (uint32_t)x *(uint32_t)y, (uint64_t)x *(uint64_t)y)

static void gradient(weft_vjp *vjp)
{
    for (int i = 0; i < 2; i++) {
        if (!vjp->wanted[i]) continue;
        const weft_shape *mine = weft_shape_of(vjp->in[i]);
        const bool is_broadcast = mine->n_dims < weft_shape_of(vjp->out[0])->n_dims;
        vjp->din[i] = is_broadcast
                          ? weft_einsum(*mine, vjp->dout[0], vjp->in[1 - i])
                          : weft_sum_to(weft_mul(vjp->dout[0], vjp->in[1 - i]), vjp->in[i]);
    }
}

const weft_op weft_op_mul = {
    .name = "mul",
    .infer = weft_infer_broadcast,
    .factors = weft_factors_pass,
    .linear = 1 | 2,
    .selects = true,
    .gradient = gradient,
    .element = &element,
};

weft_value weft_mul(weft_value a, weft_value b)
{
    const weft_value in[] = {a, b};
    return weft_emit_element(&weft_op_mul, in, 2, 0.0, 0.0);
}
