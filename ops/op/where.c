/* where: a where the condition is not 0, else b; broadcast by name.
 *
 * It chooses, never multiplies: a NaN or infinity in the branch not taken does not leak. Linear in
 * a and b together. Gradient: dy goes to the branch that was taken.
 */
#include "element.h"
#include "weft/ops.h"

WEFT_ELEMENT_3(c != 0 ? x : y)

static weft_status infer(weft_site *site, weft_error *error)
{
    WEFT_TRY(weft_check_ids(site, 0, error));
    if (site->in[1].dtype != site->in[2].dtype)
        return weft_fail(error, WEFT_USAGE,
                         "%s is %s and %s is %s; both branches have one dtype. "
                         "weft_cast one",
                         weft_site_name(site, 1), weft_dtype_name(site->in[1].dtype),
                         weft_site_name(site, 2), weft_dtype_name(site->in[2].dtype));
    site->n_out = 1;
    site->out[0].dtype = site->in[1].dtype;
    return weft_broadcast_shape(site, &site->out[0].shape, error);
}

static void gradient(weft_vjp *vjp)
{
    weft_value zero = weft_constant(vjp->graph, weft_dtype_of(vjp->out[0]), WEFT_SCALAR, 0.0);
    if (vjp->wanted[1])
        vjp->din[1] = weft_sum_to(weft_where(vjp->in[0], vjp->dout[0], zero), vjp->in[1]);
    if (vjp->wanted[2])
        vjp->din[2] = weft_sum_to(weft_where(vjp->in[0], zero, vjp->dout[0]), vjp->in[2]);
}

const weft_op weft_op_where = {
    .name = "where",
    .infer = infer,
    .factors = weft_factors_pass,
    .additive = 2 | 4,
    .selects = true,
    .gradient = gradient,
    .element = &element,
};

weft_value weft_where(weft_value condition, weft_value a, weft_value b)
{
    const weft_value in[] = {condition, a, b};
    return weft_emit_element(&weft_op_where, in, 3, 0.0, 0.0);
}
