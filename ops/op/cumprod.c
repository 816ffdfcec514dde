/* cumprod: element i of a dim is the product of those before it, with its own or without; or of those behind it.
 *
 * Blocks as in cumsum, and so is the gradient of a long dim.
 * Gradient of one block: through a tree of multiplications (multiply.c).
 */
#include "cumulate.h"
#include "multiply.h"
#include "weft/ops.h"

static const weft_cumulating products = {
    &weft_op_cumprod, weft_mul, {[WEFT_F32] = 1, [WEFT_F64] = 1, [WEFT_I32] = 1, [WEFT_I64] = 1}};

static void expand(weft_vjp *vjp)
{
    const weft_cumulate_attributes *a = vjp->site->attributes;
    const weft_value x = vjp->in[0];
    if (a->blocks > 0) {
        vjp->out[0] = weft_cumulate_by_blocks(&products, x, a);
        return;
    }
    const weft_value before = weft_multiplied_before(x, (weft_dim){a->dim, a->size}, a->reverse);
    vjp->out[0] = a->exclusive ? before : weft_mul(before, x);
}

const weft_op weft_op_cumprod = {
    .name = "cumprod",
    .attributes = &weft_attributes_cumulate,
    .infer = weft_infer_cumulate,
    .factors = weft_factors_cumulate,
    .expand = expand,
    .is_apart = weft_cumulate_is_apart,
};

weft_value weft_cumprod(weft_value x, weft_dim dim, bool exclusive, bool reverse)
{
    return weft_cumulate(x, dim, exclusive, reverse, &products);
}
