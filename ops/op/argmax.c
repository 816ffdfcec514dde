/* argmax: the global index of the largest element along one dim, as i32; of equal ones the lowest.
 *
 * No kernel: it becomes argmax_state and argmax_finish. No gradient.
 */
#include "weft/ops.h"
#include "op.h"

static weft_status infer(weft_site *site, weft_error *error)
{
    const weft_dim_attributes *attributes = site->attributes;
    WEFT_TRY(weft_check_float(site, 0, error));
    WEFT_TRY(weft_check_dim(site, 0, attributes->dim, attributes->size, error));
    site->n_out = 1;
    site->out[0].dtype = WEFT_I32;
    site->out[0].shape = weft_shape_without(&site->in[0].shape, attributes->dim);
    return WEFT_OK;
}

static void expand(weft_vjp *vjp)
{
    const weft_dim_attributes *attributes = vjp->site->attributes;
    weft_value state =
        weft_emit_state(&weft_op_argmax_state, WEFT_ARGMAX, attributes->dim, vjp->in[0]);
    vjp->out[0] = weft_emit(vjp->graph, &weft_op_argmax_finish, &state, 1, NULL, 0);
}

const weft_op weft_op_argmax = {
    .name = "argmax",
    .attributes = &weft_attributes_dim,
    .infer = infer,
    .factors = weft_factors_pass,
    .expand = expand,
    .expands = true,
};

weft_value weft_argmax(weft_value x, weft_dim dim)
{
    if (!weft_takes_float(x, "argmax")) return weft_no_value(x.graph);
    x = weft_wide(x);
    return weft_emit_dim(&weft_op_argmax, &x, 1, dim);
}
