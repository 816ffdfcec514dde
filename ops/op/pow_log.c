/* pow_log: a^b (log a)^k, k = n0 from 1 on, broadcast by name: the k-th derivative of a^b by b. Only gradients of pow make it.
 *
 * 0 where a^b is 0, which goes faster than any power of the logarithm, and where a and b are 0, where 0^b has no slope. As one
 * op, since a product with log 0 would be no number there, and one that is masked would not know of a.
 * Gradient: da = dy a^(b-1) (b (log a)^k + k (log a)^(k-1)), db = dy a^b (log a)^(k+1), summed over the dims they lack.
 */
#include "element.h"
#include "pow.h"
#include "weft/ops.h"

WEFT_BLOCK_2(block_f32, float, float, weft_pow_log_f64(x, y, n0))
WEFT_BLOCK_2(block_f64, double, double, weft_pow_log_f64(x, y, n0))
static const weft_element element = {.size = sizeof(weft_element),
                                     .block[WEFT_F32][WEFT_F32] = block_f32,
                                     .block[WEFT_F64][WEFT_F64] = block_f64,
                                     .text[WEFT_F32][WEFT_F32] = "weft_pow_log_f64(x, y, n0)",
                                     .text[WEFT_F64][WEFT_F64] = "weft_pow_log_f64(x, y, n0)"};

weft_value weft_pow_log(weft_value a, weft_value b, int k)
{
    const weft_value in[] = {a, b};
    return k == 0 ? weft_pow(a, b) : weft_emit_element(&weft_op_pow_log, in, 2, k, 0.0);
}

/* By a; 0 where a and b are. */
static weft_value slope_by_a(weft_value a, weft_value b, int k)
{
    const weft_value zero = weft_constant(a.graph, weft_dtype_of(a), WEFT_SCALAR, 0.0);
    const weft_value less = weft_shift(b, -1.0);
    weft_value slope = weft_mul(b, weft_pow_log(a, less, k));
    if (k > 0) slope = weft_add(slope, weft_scale(weft_pow_log(a, less, k - 1), k));
    const weft_value is_none = weft_mul(weft_equal(a, zero), weft_equal(b, zero));
    return weft_where(is_none, zero, slope);
}

void weft_pow_gradient(weft_vjp *vjp, int k)
{
    const weft_value a = vjp->in[0], b = vjp->in[1], dy = vjp->dout[0];
    if (vjp->wanted[0]) vjp->din[0] = weft_sum_to(weft_mul(dy, slope_by_a(a, b, k)), a);
    if (vjp->wanted[1]) vjp->din[1] = weft_sum_to(weft_mul(dy, weft_pow_log(a, b, k + 1)), b);
}

static void gradient(weft_vjp *vjp)
{
    const weft_element_attributes *attributes = vjp->site->attributes;
    weft_pow_gradient(vjp, (int)attributes->number[0]);
}

const weft_op weft_op_pow_log = {
    .name = "pow_log",
    .infer = weft_infer_broadcast,
    .factors = weft_factors_pass,
    .gradient = gradient,
    .element = &element,
};
