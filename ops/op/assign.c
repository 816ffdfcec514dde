/* assign: at the end of a run, the variable takes the value. No kernel: the compiler knows it.
 *
 * The result is a token, an i32 scalar that is never computed: something to name the update by.
 */
#include "ir.h"
#include "weft/ops.h"

static weft_status infer(weft_site *site, weft_error *error)
{
    WEFT_TRY(weft_check_dims(site, error));
    WEFT_TRY(weft_check_same_dtype(site, error));
    if (!weft_shape_same_order(&site->in[0].shape, &site->in[1].shape)) {
        char a[160], b[160];
        weft_shape_print(&site->in[0].shape, a, sizeof a);
        weft_shape_print(&site->in[1].shape, b, sizeof b);
        return weft_fail(error, WEFT_USAGE,
                         "the variable %s is %s and %s is %s; both must have the same "
                         "dims. Sum or broadcast the value first",
                         weft_site_name(site, 0), a, weft_site_name(site, 1), b);
    }
    site->n_out = 1;
    site->out[0].dtype = WEFT_I32;
    return WEFT_OK;
}

const weft_op weft_op_assign = {
    .name = "assign", .makes_token = true, .infer = infer, .factors = weft_factors_pass};

weft_value weft_assign(weft_value variable, weft_value value)
{
    weft_graph *graph = variable.graph;
    if (weft_graph_status(graph) != WEFT_OK) return weft_no_value(graph);
    if (!weft_is_value(variable) || weft_node_of(graph, variable.id)->op != &weft_op_variable)
        return weft_graph_fail(graph,
                               "assign: the first argument is no variable; pass what weft_variable "
                               "or weft_slot returned");
    if (value.graph == graph && weft_shape_same_dims(weft_shape_of(value), weft_shape_of(variable)))
        value = weft_transpose(value, *weft_shape_of(variable));
    if (graph->assign_if != 0 && weft_is_value(value))
        value = weft_where((weft_value){graph, graph->assign_if}, value, variable);
    const weft_value in[] = {variable, value};
    return weft_emit(graph, &weft_op_assign, in, 2, NULL, 0);
}
