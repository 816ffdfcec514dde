/* logsumexp: y = log of the sum of exp(x) over one dim, without overflow.
 *
 * No kernel: it becomes lse_state and lse_finish, so a split dim costs two numbers a row.
 * Gradient: dx = dy exp(x - y), which is dy softmax(x).
 */
#include <string.h>

#include "weft/ops.h"
#include "op.h"

static weft_status infer(weft_site *site, weft_error *error)
{
    const weft_dim_attributes *attributes = site->attributes;
    WEFT_TRY(weft_check_float(site, 0, error));
    WEFT_TRY(weft_check_dim(site, 0, attributes->dim, attributes->size, error));
    site->n_out = 1;
    site->out[0].dtype = site->in[0].dtype;
    site->out[0].shape = weft_shape_without(&site->in[0].shape, attributes->dim);
    return WEFT_OK;
}

static void gradient(weft_vjp *vjp)
{
    weft_value softmax = weft_exp(weft_sub(vjp->in[0], vjp->out[0]));
    vjp->din[0] = weft_mul(softmax, vjp->dout[0]);
}

static void expand(weft_vjp *vjp)
{
    const weft_dim_attributes *attributes = vjp->site->attributes;
    weft_value state = weft_emit_state(&weft_op_lse_state, WEFT_LSE, attributes->dim, vjp->in[0]);
    vjp->out[0] = weft_emit(vjp->graph, &weft_op_lse_finish, &state, 1, NULL, 0);
}

const weft_op weft_op_logsumexp = {
    .name = "logsumexp",
    .attributes = &weft_attributes_dim,
    .infer = infer,
    .factors = weft_factors_pass,
    .gradient = gradient,
    .expand = expand,
    .expands = true,
};

weft_value weft_logsumexp(weft_value x, weft_dim dim)
{
    x = weft_wide(x);
    return weft_emit_dim(&weft_op_logsumexp, &x, 1, dim);
}
