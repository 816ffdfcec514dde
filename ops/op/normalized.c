/* normalized: x less its mean, by its deviation, as others made it; its gradient is read off the result.
 *
 * A norm keeps its result for what multiplies it. With y that result, r = 1 / sqrt(variance + epsilon) and n elements in a row,
 *
 *     dx = r (dy - sum(dy) / n - y sum(dy y) / n)
 *
 * so x, and x less its mean, need not be kept beside it. Without a mean (rms_norm) the sum of dy is left out. The operands are
 * y, x, r and, if there is one, the mean; rows are the dims that r lacks. Gradients flow to x alone. It expands to y.
 */
#include "op.h"
#include "same.h"
#include "weft/ops.h"

enum { Y, X, R, MEAN };

static weft_status infer(weft_site *site, weft_error *error)
{
    if (site->n_in != R + 1 && site->n_in != MEAN + 1)
        return weft_fail(error, WEFT_USAGE,
                         "%d operands; it takes the result, x, 1 / deviation and maybe the mean",
                         site->n_in);
    WEFT_TRY(weft_check_float(site, Y, error));
    WEFT_TRY(weft_check_same_dtype(site, error));
    WEFT_TRY(weft_check_dims(site, error));
    if (!weft_shape_same_dims(&site->in[Y].shape, &site->in[X].shape))
        return weft_fail(error, WEFT_USAGE, "%s and %s have other dims; both must have the same",
                         weft_site_name(site, Y), weft_site_name(site, X));
    return weft_same_infer(site, error);
}

static void gradient(weft_vjp *vjp)
{
    const weft_value y = vjp->out[0], dy = vjp->dout[0], r = vjp->in[R];
    const weft_shape rows = *weft_shape_of(r);
    const double part = weft_count_of(&rows) / weft_count_of(weft_shape_of(y));
    const weft_value along = weft_scale(weft_einsum(rows, dy, y), part);
    weft_value apart = weft_sub(dy, weft_mul(y, along));
    if (vjp->site->n_in > MEAN) apart = weft_sub(apart, weft_scale(weft_sum(rows, dy), part));
    vjp->din[X] = weft_mul(apart, r);
}

const weft_op weft_op_normalized = {
    .name = "normalized",
    .infer = infer,
    .factors = weft_factors_pass,
    .gradient = gradient,
    .expand = weft_same_expand,
    .expands = true,
};

weft_value weft_normalized(weft_value y, weft_value x, weft_value r, weft_value mean)
{
    const weft_value in[] = {y, x, r, mean};
    return weft_emit(y.graph, &weft_op_normalized, in, mean.id != 0 ? MEAN + 1 : R + 1, NULL, 0);
}
