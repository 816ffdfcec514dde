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

/* Before one element there is none. The product is a constant, but it has a gradient of x: 0. */
static weft_value depending(weft_value one, weft_value x, weft_dim dim)
{
    const weft_value at = weft_iota(x.graph, WEFT_I32, dim);
    const weft_value first = weft_constant(x.graph, WEFT_I32, WEFT_SCALAR, 0.0);
    return weft_where(weft_equal(at, first), one, x);
}

static void expand(weft_vjp *vjp)
{
    const weft_cumulate_attributes *a = vjp->site->attributes;
    const weft_value x = vjp->in[0];
    if (a->blocks > 0) {
        vjp->out[0] = weft_cumulate_by_blocks(&products, x, a);
        return;
    }
    const weft_dim dim = {a->dim, a->size};
    const weft_value before = weft_multiplied_before(x, dim, a->reverse);
    vjp->out[0] = !a->exclusive   ? weft_mul(before, x)
                  : dim.size == 1 ? depending(before, x, dim)
                                  : before;
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
