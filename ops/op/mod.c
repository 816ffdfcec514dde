/* mod: what is left of a when b is taken off as often as floor_div says, broadcast by name: it has the sign of b.
 * Integers by 0 give 0.
 *
 * Gradient: da = dy, db = -dy floor_div(a, b), summed over the dims they lack.
 */
#include "element.h"
#include "weft/ops.h"

WEFT_ELEMENT_2W(weft_mod_f64(x, y), weft_mod_i64(x, y), weft_mod_i64(x, y))

static void gradient(weft_vjp *vjp)
{
    if (vjp->wanted[0]) vjp->din[0] = weft_sum_to(vjp->dout[0], vjp->in[0]);
    if (!vjp->wanted[1]) return;
    const weft_value times = weft_floor_div(vjp->in[0], vjp->in[1]);
    vjp->din[1] = weft_neg(weft_sum_to(weft_mul(vjp->dout[0], times), vjp->in[1]));
}

const weft_op weft_op_mod = {
    .name = "mod",
    .infer = weft_infer_broadcast,
    .factors = weft_factors_pass,
    .gradient = gradient,
    .element = &element,
};

weft_value weft_mod(weft_value a, weft_value b)
{
    const weft_value in[] = {a, b};
    return weft_emit_element(&weft_op_mod, in, 2, 0.0, 0.0);
}
