/* group: one token for several values or tokens. No kernel: the compiler knows it.
 *
 * A node has at most WEFT_MAX_IN operands, so many values make a tree of groups.
 */
#include "ir.h"

static weft_status infer(weft_site *site, weft_error *error)
{
    (void)error;
    site->n_out = 1;
    site->out[0].dtype = WEFT_I32;
    return WEFT_OK;
}

const weft_op weft_op_group = {.name = "group",
                               .makes_token = true,
                               .takes_tokens = true,
                               .infer = infer,
                               .factors = weft_factors_pass};

weft_value weft_group(weft_graph *graph, weft_values values)
{
    if (weft_graph_status(graph) != WEFT_OK) return weft_no_value(graph);
    if (weft_values_given(values) < 1)
        return weft_graph_fail(graph, "group: no values; pass at least one");
    weft_value in[WEFT_MAX_IN];
    int n_in = 0;
    for (int i = 0; i < values.n_values; i++) {
        in[n_in++] = values.values[i];
        if (n_in < WEFT_MAX_IN || i + 1 == values.n_values) continue;
        in[0] = weft_emit(graph, &weft_op_group, in, n_in, NULL, 0);
        n_in = 1;
    }
    return weft_emit(graph, &weft_op_group, in, n_in, NULL, 0);
}
