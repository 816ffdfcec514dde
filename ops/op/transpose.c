/* transpose: the same dims in another order. Linear.
 *
 * Gradient: dy in x's order.
 */
#include <string.h>

#include "weft/ops.h"
#include "op.h"

static weft_status infer(weft_site *site, weft_error *error)
{
    const weft_shape *out = site->attributes;
    for (int d = 0; d < out->n_dims; d++)
        WEFT_TRY(weft_check_dim(site, 0, out->dims[d].name, out->dims[d].size, error));
    if (out->n_dims != site->in[0].shape.n_dims) {
        char x[160], text[160];
        weft_shape_print(&site->in[0].shape, x, sizeof x);
        weft_shape_print(out, text, sizeof text);
        return weft_fail(error, WEFT_USAGE,
                         "%s is %s and the result is to be %s; both have the same dims. "
                         "weft_sum removes dims",
                         weft_site_name(site, 0), x, text);
    }
    site->n_out = 1;
    site->out[0] = (weft_type){site->in[0].dtype, *out};
    return WEFT_OK;
}

static void gradient(weft_vjp *vjp)
{
    vjp->din[0] = weft_transpose(vjp->dout[0], *weft_shape_of(vjp->in[0]));
}

const weft_op weft_op_transpose = {
    .name = "transpose",
    .attributes = &weft_attributes_shape,
    .infer = infer,
    .factors = weft_factors_pass,
    .linear = 1,
    .selects = true,
    .gradient = gradient,
};

weft_value weft_transpose(weft_value x, weft_shape out)
{
    weft_shape shape;
    if (!weft_graph_shape(x.graph, "transpose", &out, &shape)) return weft_no_value(x.graph);
    const weft_shape *now = weft_shape_of(x);
    if (x.id != 0 && weft_shape_same_order(now, &shape)) {
        bool is_same = true;
        for (int d = 0; d < shape.n_dims; d++)
            is_same = is_same && now->dims[d].size == shape.dims[d].size;
        if (is_same) return x;
    }
    return weft_emit(x.graph, &weft_op_transpose, &x, 1, &shape, sizeof shape);
}
