/* unpick_product: dw[dim, in, out] = the sum, over rows with the coordinate along dim as their id, of x[.., in]
 * dy[.., out]: the gradient of pick_product to its matrices.
 *
 * Cut along rows with a partial sum, along in, out, and the dim: then a rank sums the rows of its own matrices. Linear in both.
 * Gradient: of x and of dy, pick_product with what comes back to the matrices.
 */
#include <string.h>

#include "product.h"
#include "weft/ops.h"

static weft_status infer(weft_site *site, weft_error *error)
{
    const weft_dim_attributes *a = site->attributes;
    const weft_shape *x = &site->in[0].shape, *dy = &site->in[1].shape;
    if (x->n_dims < 1 || dy->n_dims < 1)
        return weft_fail(error, WEFT_USAGE, "both operands have rows; one is a single number");
    const weft_dim dims[] = {{a->dim, a->size}, x->dims[x->n_dims - 1], dy->dims[dy->n_dims - 1]};
    WEFT_TRY(weft_check_float(site, 0, error));
    WEFT_TRY(weft_check_ids(site, 2, error));
    WEFT_TRY(weft_check_dims(site, error));
    site->n_out = 1;
    site->out[0] = (weft_type){site->in[0].dtype, weft_shape_make(dims, 3)};
    return WEFT_OK;
}

static void factors(const weft_site *site, weft_factors *factors)
{
    const int in = site->in[0].shape.n_dims - 1, out = site->in[1].shape.n_dims - 1;
    factors->n_factors = 0;
    for (int d = 0; d < out; d++) {
        weft_factor *factor = weft_factor_new(factors, WEFT_SUM);
        factor->in[1] = factor->in[2] = (int8_t)d;
        if (d < in) factor->in[0] = (int8_t)d;
    }
    weft_factor *row = weft_factor_new(factors, WEFT_NOT_PARTIAL);
    row->in[0] = (int8_t)in, row->out[0] = 1;
    weft_factor *column = weft_factor_new(factors, WEFT_NOT_PARTIAL);
    column->in[1] = (int8_t)out, column->out[0] = 2;
    weft_factor_new(factors, WEFT_NOT_PARTIAL)->out[0] = 0;
}

static double flops(const weft_site *site)
{
    const weft_dim_attributes *a = site->attributes;
    const weft_shape *x = &site->in[0].shape, *dw = &site->out[0].shape;
    const double share = (double)dw->dims[0].size / (double)a->size;
    return 2.0 * share * weft_count_of(&site->in[1].shape) * (double)x->dims[x->n_dims - 1].size;
}

static void gradient(weft_vjp *vjp)
{
    const weft_dim_attributes *a = vjp->site->attributes;
    const weft_dim dim = {a->dim, a->size};
    const weft_value x = vjp->in[0], dy = vjp->in[1], ids = vjp->in[2], dw = vjp->dout[0];
    if (vjp->wanted[0]) vjp->din[0] = weft_sum_to(weft_pick_product(dy, dw, ids, dim), x);
    if (vjp->wanted[1]) vjp->din[1] = weft_pick_product(x, dw, ids, dim);
}

const weft_op weft_op_unpick_product = {
    .name = "unpick_product",
    .attributes = &weft_attributes_dim,
    .infer = infer,
    .factors = factors,
    .linear = 1 | 2,
    .gradient = gradient,
    .flops = flops,
};

weft_value weft_unpick_product(weft_value x, weft_value dy, weft_value ids, weft_dim dim)
{
    const weft_value in[] = {x, dy, ids};
    return weft_emit_dim(&weft_op_unpick_product, in, 3, dim);
}
