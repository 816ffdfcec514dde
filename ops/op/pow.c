/* pow: a to the power of b, broadcast by name; NaN where a is below 0 and b is not whole.
 *
 * Gradient: da = dy b a^(b-1), db = dy a^b log a (pow_log), summed over the dims they lack; both 0 where a and b are 0.
 */
#include "element.h"
#include "pow.h"
#include "weft/ops.h"

WEFT_BLOCK_2(block_f32, float, float, powf(x, y))
WEFT_BLOCK_2(block_f64, double, double, pow(x, y))
static const weft_element element = {.size = sizeof(weft_element),
                                     .block[WEFT_F32][WEFT_F32] = block_f32,
                                     .block[WEFT_F64][WEFT_F64] = block_f64,
                                     .text[WEFT_F32][WEFT_F32] = "powf(x, y)",
                                     .text[WEFT_F64][WEFT_F64] = "pow(x, y)"};

static void gradient(weft_vjp *vjp)
{
    weft_pow_gradient(vjp, 0);
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
