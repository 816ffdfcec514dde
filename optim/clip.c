/* clip.c: the norm of all gradients together, and scaling them down to a largest norm. */
#include "update.h"

#include "weft/ops.h"

weft_value weft_global_norm(weft_values gradients)
{
    if (gradients.values == NULL || gradients.n_values < 1) return weft_no_value(NULL);
    weft_graph *graph = gradients.values[0].graph;
    if (!weft_graph_takes(graph, "global_norm", "gradients", gradients))
        return weft_no_value(graph);
    const weft_dtype dtype = weft_dtype_of(gradients.values[0]);
    weft_value total = weft_no_value(graph);
    for (int i = 0; i < gradients.n_values; i++) {
        weft_value squares = weft_sum(WEFT_SCALAR, weft_square(gradients.values[i]));
        squares = weft_cast(squares, dtype);
        total = i == 0 ? squares : weft_add(total, squares);
    }
    return weft_sqrt(total);
}

/* As PyTorch's clip_grad_norm_: times min(1, largest / (norm + 1e-6)). */
weft_value weft_clip_scale(weft_value norm, double largest)
{
    weft_value one = weft_constant(norm.graph, weft_dtype_of(norm), WEFT_SCALAR, 1.0);
    weft_value limit = weft_constant(norm.graph, weft_dtype_of(norm), WEFT_SCALAR, largest);
    return weft_minimum(one, weft_div(limit, weft_shift(norm, 1e-6)));
}
