/* in_order: y = x's elements along a dim in order, which its first operand has already, from where they were taken by their indices;
 * the second is x.
 *
 * A copy, but where x is split in a way in which its order is made by columns (order_columns.c): then these have the elements too, and
 * nobody takes them by indices out of all of x. Linear in the first, and in both. Gradient: through the first.
 */
#include <string.h>

#include "order.h"
#include "weft/ops.h"

static weft_status infer(weft_site *site, weft_error *error)
{
    const weft_order_attributes *a = site->attributes;
    WEFT_TRY(weft_check_same_dtype(site, error));
    WEFT_TRY(weft_check_dim(site, 0, a->to, a->count, error));
    WEFT_TRY(weft_check_dim(site, 1, a->dim, a->size, error));
    site->n_out = 1;
    site->out[0] = site->in[0];
    return WEFT_OK;
}

/* By place; x is whole along the dim. */
static void factors(const weft_site *site, weft_factors *factors)
{
    const weft_order_attributes *a = site->attributes;
    const weft_shape *out = &site->out[0].shape;
    factors->n_factors = 0;
    for (int d = 0; d < out->n_dims; d++) {
        weft_factor *factor = weft_factor_new(factors, WEFT_NOT_PARTIAL);
        factor->in[0] = factor->out[0] = (int8_t)d;
        if (strcmp(out->dims[d].name, a->to) != 0) factor->in[1] = (int8_t)d;
    }
}

static void gradient(weft_vjp *vjp)
{
    vjp->din[0] = vjp->dout[0];
}

static void expand(weft_vjp *vjp)
{
    vjp->out[0] = weft_order_by_columns(vjp->in[1], vjp->site->attributes).x;
}

static bool is_apart(const weft_site *site, const weft_spec *in, const weft_mesh *mesh)
{
    return weft_order_goes_by_columns(site, 1, in, mesh);
}

const weft_op weft_op_in_order = {
    .name = "in_order",
    .attributes = &weft_attributes_order,
    .infer = infer,
    .factors = factors,
    .linear = 1,
    .additive = 1 | 2,
    .selects = true,
    .gradient = gradient,
    .expand = expand,
    .is_apart = is_apart,
};
