/* same: y = x, a value of its own. Gradient: dx = dy.
 *
 * The compiler puts x in its place wherever nobody can tell the two apart, and a copy elsewhere
 * (ops/compile/expand.c). Builders that have nothing to do return their operand, which costs nothing in builders made
 * of them; the program gets this op from them (weft_built).
 */
#include "same.h"
#include "weft/ops.h"

const weft_op weft_op_same = {
    .name = "same",
    .infer = weft_same_infer,
    .factors = weft_factors_pass,
    .linear = 1,
    .selects = true,
    .gradient = weft_same_gradient,
    .expand = weft_same_expand,
    .expands = true,
};

weft_value weft_same(weft_value x)
{
    return weft_emit(x.graph, &weft_op_same, &x, 1, NULL, 0);
}

weft_value weft_built(const char *builder, const char *file, int line, weft_value value)
{
    weft_graph *graph = value.graph;
    if (graph == NULL) return value;
    const bool was_there =
        weft_is_value(value) && graph->tensors[value.id].node < graph->built.n_nodes;
    if (was_there && graph->handed_back != value.id &&
        !weft_node_of(graph, value.id)->op->makes_token)
        value = weft_same(value);
    graph->handed_back = 0;
    return weft_at(builder, file, line, value);
}
