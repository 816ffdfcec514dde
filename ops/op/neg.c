/* neg: y = -x. Linear: a partial sum may stay partial.
 *
 * Gradient: dx = -dy.
 */
#include "element.h"
#include "weft/ops.h"

WEFT_BLOCK_1(block_f32, float, float, -x)
WEFT_BLOCK_1(block_f64, double, double, -x)
WEFT_BLOCK_1(block_i32, int32_t, int32_t, 0u - (uint32_t)x) /* wraps around */
WEFT_BLOCK_1(block_i64, int64_t, int64_t, 0u - (uint64_t)x)
static const weft_element element = {.size = sizeof(weft_element),
                                     .block[WEFT_F32][WEFT_F32] = block_f32,
                                     .block[WEFT_F64][WEFT_F64] = block_f64,
                                     .block[WEFT_I32][WEFT_I32] = block_i32,
                                     .block[WEFT_I64][WEFT_I64] = block_i64,
                                     .text[WEFT_F32][WEFT_F32] = "-x",
                                     .text[WEFT_F64][WEFT_F64] = "-x",
                                     .text[WEFT_I32][WEFT_I32] = "0u - (uint32_t)x",
                                     .text[WEFT_I64][WEFT_I64] = "0u - (uint64_t)x"};

static void gradient(weft_vjp *vjp)
{
    vjp->din[0] = weft_neg(vjp->dout[0]);
}

const weft_op weft_op_neg = {
    .name = "neg",
    .infer = weft_infer_same,
    .factors = weft_factors_pass,
    .linear = 1,
    .selects = true,
    .gradient = gradient,
    .element = &element,
};

weft_value weft_neg(weft_value x)
{
    return weft_emit_element(&weft_op_neg, &x, 1, 0.0, 0.0);
}
