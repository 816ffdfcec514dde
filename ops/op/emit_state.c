/* emit_state: a reduction to a state of several numbers (a maximum and a sum, a mean and a moment) instead of one. */
#include "op.h"

#include <string.h>

weft_value weft_emit_state(const weft_op *op, weft_combine combine, const char *dim, weft_value x)
{
    x = weft_wide(x);
    weft_shape out = weft_shape_without(weft_shape_of(x), dim);
    out.dims[out.n_dims++] = weft_state_dim(x.graph, combine);
    weft_reduced_attributes attributes;
    memset(&attributes, 0, sizeof attributes);
    if (!weft_graph_shape(x.graph, op->name, &out, &attributes.out)) return weft_no_value(x.graph);
    attributes.reduce.combine = combine;
    attributes.reduce.dim = weft_graph_intern(x.graph, dim);
    return weft_emit(x.graph, op, &x, 1, &attributes, sizeof attributes);
}
