/* pow: a to the power of b, broadcast by name; NaN where a is below 0 and b is not whole.
 *
 * Gradient: da = dy b a^(b-1), db = dy y log a, summed over the dims they lack; 0 where b, or a, is 0.
 */
#include "element.h"
#include "weft/ops.h"

WEFT_BLOCK_2(block_f32, float, float, powf(x, y))
WEFT_BLOCK_2(block_f64, double, double, pow(x, y))
static const weft_element element = {.size = sizeof(weft_element),
                                     .block[WEFT_F32][WEFT_F32] = block_f32,
                                     .block[WEFT_F64][WEFT_F64] = block_f64,
                                     .text[WEFT_F32][WEFT_F32] = "powf(x, y)",
                                     .text[WEFT_F64][WEFT_F64] = "pow(x, y)"};

/* x, but 0 where `of` is: there the other factor may be infinite. */
static weft_value unless_0(weft_value of, weft_value x)
{
    weft_value zero = weft_constant(x.graph, weft_dtype_of(x), WEFT_SCALAR, 0.0);
    return weft_where(weft_equal(of, zero), zero, x);
}

static void gradient(weft_vjp *vjp)
{
    const weft_value a = vjp->in[0], b = vjp->in[1], dy = vjp->dout[0];
    const weft_value along_a = unless_0(b, weft_mul(b, weft_pow(a, weft_shift(b, -1.0))));
    const weft_value along_b = unless_0(a, weft_mul(vjp->out[0], weft_log(a)));
    if (vjp->wanted[0]) vjp->din[0] = weft_sum_to(weft_mul(dy, along_a), a);
    if (vjp->wanted[1]) vjp->din[1] = weft_sum_to(weft_mul(dy, along_b), b);
}

const weft_op weft_op_pow = {
    .name = "pow",
    .infer = weft_infer_broadcast,
    .factors = weft_factors_pass,
    .gradient = gradient,
    .element = &element,
};

weft_value weft_pow(weft_value a, weft_value b)
{
    const weft_value in[] = {a, b};
    return weft_emit_element(&weft_op_pow, in, 2, 0.0, 0.0);
}
