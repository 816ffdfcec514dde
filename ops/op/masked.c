/* masked: x where the mask is not 0, else 0; broadcast by name, of one dtype. Gradients of pick make it.
 *
 * It chooses, never multiplies: beside an infinite slope the elements that were not picked have 0. Linear in x, as mul is: a sum that
 * is not finished may be chosen from, and no zero lies beside it, which where would read.
 * Gradient: dx = dy where the mask is not 0, else 0, summed over the dims that x lacks.
 */
#include "element.h"
#include "weft/ops.h"

WEFT_ELEMENT_2W(x != 0 ? y : 0, x != 0 ? y : 0, x != 0 ? y : 0)

static void gradient(weft_vjp *vjp)
{
    const weft_value in[] = {vjp->in[0], vjp->dout[0]};
    if (!vjp->wanted[1]) return;
    vjp->din[1] = weft_sum_to(weft_emit_element(&weft_op_masked, in, 2, 0.0, 0.0), vjp->in[1]);
}

const weft_op weft_op_masked = {
    .name = "masked",
    .infer = weft_infer_broadcast,
    .factors = weft_factors_pass,
    .linear = 2,
    .selects = true,
    .gradient = gradient,
    .element = &element,
};
