/* normalizer: what a softmax over a dim divides by, as two results: the maximum of x, and log_sum, the log of the sum of
 * exp(x - maximum). They are not added up, since a logarithm added to a large maximum is rounded away.
 *
 * No kernel: it becomes lse_state and lse_finish, so a split dim costs two numbers a row.
 * Gradient: dx = dlog_sum exp((x - maximum) - log_sum), which is dlog_sum softmax(x). The maximum is taken for a constant: right
 * for all that weft_normalizer_of is used for, which no shift of both x and the maximum changes.
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
    site->out[site->n_out++] = site->out[0];
    return WEFT_OK;
}

static void gradient(weft_vjp *vjp)
{
    if (vjp->dout[1].id == 0) return; /* of the maximum: a constant */
    const weft_value softmax = weft_exp(weft_sub(weft_sub(vjp->in[0], vjp->out[0]), vjp->out[1]));
    vjp->din[0] = weft_mul(softmax, vjp->dout[1]);
}

static void expand(weft_vjp *vjp)
{
    const weft_dim_attributes *attributes = vjp->site->attributes;
    weft_value state = weft_emit_state(&weft_op_lse_state, WEFT_LSE, attributes->dim, vjp->in[0]);
    vjp->out[0] = weft_emit(vjp->graph, &weft_op_lse_finish, &state, 1, NULL, 0);
    vjp->out[1] = weft_result(vjp->out[0], 1);
}

const weft_op weft_op_normalizer = {
    .name = "normalizer",
    .attributes = &weft_attributes_dim,
    .infer = infer,
    .factors = weft_factors_pass,
    .gradient = gradient,
    .expand = expand,
    .expands = true,
};

weft_normalizer weft_normalizer_of(weft_value x, weft_dim dim)
{
    const weft_value maximum = weft_emit_dim(&weft_op_normalizer, &x, 1, dim);
    return (weft_normalizer){maximum, weft_result(maximum, 1)};
}
