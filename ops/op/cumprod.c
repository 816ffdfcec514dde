/* cumprod: element i of a dim is the product of those before it, with its own or without; or of those behind it.
 *
 * Blocks as in cumsum.
 * Gradient: through a tree of multiplications (multiply.c).
 */
#include "cumulate.h"
#include "multiply.h"
#include "weft/ops.h"

static void expand(weft_vjp *vjp)
{
    const weft_cumulate_attributes *a = vjp->site->attributes;
    const weft_value x = vjp->in[0];
    const weft_value before = weft_multiplied_before(x, (weft_dim){a->dim, a->size}, a->reverse);
    vjp->out[0] = a->exclusive ? before : weft_mul(before, x);
}

const weft_op weft_op_cumprod = {
    .name = "cumprod",
    .attributes = &weft_attributes_cumulate,
    .infer = weft_infer_cumulate,
    .factors = weft_factors_cumulate,
    .expand = expand,
};

weft_value weft_cumprod(weft_value x, weft_dim dim, bool exclusive, bool reverse)
{
    static const weft_cumulating products = {
        &weft_op_cumprod,
        weft_mul,
        {[WEFT_F32] = 1, [WEFT_F64] = 1, [WEFT_I32] = 1, [WEFT_I64] = 1}};
    return weft_cumulate(x, dim, exclusive, reverse, &products);
}
