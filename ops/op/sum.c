/* sum: over the dims that the result lacks, which come out as partial sums where they are split.
 * Linear.
 *
 * Gradient: dy, repeated along the summed dims.
 */
#include <string.h>

#include "weft/ops.h"
#include "ir.h"

static void gradient(weft_vjp *vjp)
{
    vjp->din[0] = weft_broadcast_to(vjp->dout[0], *weft_shape_of(vjp->in[0]));
}

static double flops(const weft_site *site)
{
    return weft_count_of(&site->in[0].shape);
}

const weft_op weft_op_sum = {
    .name = "sum",
    .attributes = &weft_attributes_reduced,
    .infer = weft_infer_reduce,
    .factors = weft_factors_reduce,
    .linear = 1,
    .gradient = gradient,
    .flops = flops,
    .row = &(const weft_row){.combine = WEFT_SUM},
};

/* Whether x has all dims of `out` with their sizes; if not, that is the graph's error. */
static bool has_all(const weft_op *op, weft_value x, const weft_shape *out)
{
    const weft_tensor *tensor = &x.graph->tensors[x.id];
    const weft_site site = {.n_in = 1, .in[0] = tensor->type, .in_name[0] = tensor->name};
    weft_error error = {WEFT_OK, -1, ""};
    for (int d = 0; d < out->n_dims; d++)
        if (weft_check_dim(&site, 0, out->dims[d].name, out->dims[d].size, &error) != WEFT_OK) {
            weft_graph_fail(x.graph, "%s: %s", op->name, error.message);
            return false;
        }
    return true;
}

weft_value weft_emit_reduce_to(const weft_op *op, weft_combine combine, weft_shape out,
                               weft_value x)
{
    weft_shape checked;
    weft_reduced_attributes attributes;
    const weft_dtype dtype = weft_dtype_of(x);
    x = weft_wide(x); /* so partial sums are of f32 */
    memset(&attributes, 0, sizeof attributes);
    if (!weft_graph_shape(x.graph, op->name, &out, &checked)) return weft_no_value(x.graph);
    if (weft_is_value(x) && !has_all(op, x, &out)) return weft_no_value(x.graph);
    attributes.reduce.combine = combine;
    const weft_shape *shape = weft_shape_of(x);
    for (int d = 0; d < shape->n_dims; d++) /* the kernel keeps x's order; a transpose may follow */
        if (weft_shape_find(&out, shape->dims[d].name) >= 0)
            attributes.out.dims[attributes.out.n_dims++] = shape->dims[d];
    if (!weft_is_value(x) || attributes.out.n_dims < shape->n_dims)
        x = weft_emit(x.graph, op, &x, 1, &attributes, sizeof attributes);
    return x.id == 0 ? x : weft_transpose(weft_cast(x, dtype), out);
}

weft_value weft_sum(weft_shape out, weft_value x)
{
    return weft_emit_reduce_to(&weft_op_sum, WEFT_SUM, out, x);
}

weft_value weft_sum_to(weft_value x, weft_value like)
{
    return weft_sum(*weft_shape_of(like), x);
}
