/* norm_stats: mean and 1 / sqrt(variance + epsilon) over one dim: two results, what layer_norm
 * needs of x.
 *
 * No kernel: it becomes moments_state and moments_finish (Chan et al. 1979: moments of parts
 * combine exactly). Gradient, with n the dim's size: dx = (dmean - drstd rstd^3 (x - mean)) / n.
 */
#include <string.h>

#include "weft/ops.h"
#include "op.h"

typedef struct norm_attributes {
    weft_dim_attributes over;
    double epsilon;
} norm_attributes;
static const weft_field fields[] = {WEFT_FIELD(norm_attributes, over.dim),
                                    WEFT_FIELD(norm_attributes, over.size),
                                    WEFT_FIELD(norm_attributes, epsilon)};
static const weft_attributes described = WEFT_ATTRIBUTES(norm_attributes, fields);

static weft_status infer(weft_site *site, weft_error *error)
{
    const norm_attributes *attributes = site->attributes;
    WEFT_TRY(weft_check_float(site, 0, error));
    WEFT_TRY(weft_check_dim(site, 0, attributes->over.dim, attributes->over.size, error));
    site->n_out = 2;
    site->out[0].dtype = site->in[0].dtype;
    site->out[0].shape = weft_shape_without(&site->in[0].shape, attributes->over.dim);
    site->out[1] = site->out[0];
    return WEFT_OK;
}

static void gradient(weft_vjp *vjp)
{
    const norm_attributes *attributes = vjp->site->attributes;
    weft_value x = vjp->in[0], mean = vjp->out[0], rstd = vjp->out[1];
    weft_value dx = weft_no_value(vjp->graph);
    if (vjp->dout[1].id != 0) {
        weft_value cube = weft_mul(weft_square(rstd), rstd);
        weft_value slope = weft_neg(weft_mul(vjp->dout[1], cube));
        dx = weft_mul(weft_sub(x, mean), slope);
    }
    if (vjp->dout[0].id != 0)
        dx = dx.id != 0 ? weft_add(dx, vjp->dout[0])
                        : weft_broadcast_to(vjp->dout[0], *weft_shape_of(x));
    vjp->din[0] = weft_scale(dx, 1.0 / (double)attributes->over.size);
}

static void expand(weft_vjp *vjp)
{
    const norm_attributes *attributes = vjp->site->attributes;
    const weft_number_attributes epsilon = {attributes->epsilon};
    weft_value state =
        weft_emit_state(&weft_op_moments_state, WEFT_MOMENTS, attributes->over.dim, vjp->in[0]);
    vjp->out[0] =
        weft_emit(vjp->graph, &weft_op_moments_finish, &state, 1, &epsilon, sizeof epsilon);
    vjp->out[1] = weft_result(vjp->out[0], 1);
}

const weft_op weft_op_norm_stats = {
    .name = "norm_stats",
    .attributes = &described,
    .infer = infer,
    .factors = weft_factors_pass,
    .gradient = gradient,
    .expand = expand,
    .expands = true,
};

weft_value weft_norm_stats(weft_value x, weft_dim dim, double epsilon)
{
    x = weft_wide(x);
    norm_attributes attributes;
    memset(&attributes, 0, sizeof attributes);
    if (!weft_graph_dim(x.graph, "norm_stats", dim, &attributes.over))
        return weft_no_value(x.graph);
    attributes.epsilon = epsilon;
    return weft_emit(x.graph, &weft_op_norm_stats, &x, 1, &attributes, sizeof attributes);
}
