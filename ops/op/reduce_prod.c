/* reduce_prod: the product over the dims that the result lacks; products of parts where they are split.
 *
 * Gradient: dy times the product of all others, through a tree of multiplications (multiply.c).
 */
#include "multiply.h"
#include "weft/ops.h"

static void expand(weft_vjp *vjp)
{
    const weft_shape all = vjp->site->in[0].shape, rows = vjp->site->out[0].shape;
    weft_value y = vjp->in[0];
    for (int d = 0; d < all.n_dims; d++)
        if (weft_shape_find(&rows, all.dims[d].name) < 0) y = weft_multiplied(y, all.dims[d]);
    vjp->out[0] = y.id == 0 ? y : weft_transpose(y, rows);
}

static double flops(const weft_site *site)
{
    return weft_count_of(&site->in[0].shape);
}

const weft_op weft_op_reduce_prod = {
    .name = "reduce_prod",
    .attributes = &weft_attributes_reduced,
    .infer = weft_infer_reduce,
    .factors = weft_factors_reduce,
    .expand = expand,
    .flops = flops,
};

weft_value weft_prod(weft_shape out, weft_value x)
{
    return weft_emit_reduce_to(&weft_op_reduce_prod, WEFT_PROD, out, x);
}
