/* scan_guard: the trip goes on only where operand 0, a number that every rank has whole, is not 0. No kernel: the compiler
 * knows it.
 *
 * Nodes before it in the body run in any case: the number is made from them. In a trip that does not go on, carried
 * values stay unchanged, and stacked ones are 0. The result is a token, as that of scan_next.
 *
 * The gradient's scan has one too, which reads the same number of the same trip, stacked: so trips that were not made are not
 * gone back through.
 */
#include "ir.h"
#include "weft/ops.h"
#include "weft/scan.h"

static weft_status infer(weft_site *site, weft_error *error)
{
    WEFT_TRY(weft_check_ids(site, 0, error));
    site->n_out = 1;
    site->out[0].dtype = WEFT_I32;
    return WEFT_OK;
}

const weft_op weft_op_scan_guard = {.name = "scan_guard",
                                    .makes_token = true,
                                    .carries_on = true,
                                    .attributes = &weft_attributes_scan_guard,
                                    .infer = infer,
                                    .factors = weft_factors_pass};

uint32_t weft_scan_guard_of(const weft_graph *graph, uint32_t scan)
{
    for (uint32_t id = graph->tensors[graph->scans[scan].trip].node; id < graph->n_nodes; id++)
        if (graph->nodes[id].op == &weft_op_scan_guard && graph->nodes[id].scan == scan) return id;
    return 0;
}

weft_value weft_scan_guard(weft_value condition, bool ends)
{
    weft_graph *graph = condition.graph;
    return weft_scan_emit(graph, &weft_op_scan_guard, &condition, 1,
                          (weft_scan_attributes){.scan = graph->scan, .ends = ends});
}

static bool check(weft_graph *graph, const char *call, weft_value condition)
{
    char shape[160], origin[160];
    if (!weft_graph_takes(graph, call, "condition", (weft_values){&condition, 1})) return false;
    if (graph->scan == 0) {
        weft_graph_fail(graph, "%s: no scan is open; begin one with weft_scan_begin", call);
        return false;
    }
    weft_shape_print(weft_shape_of(condition), shape, sizeof shape);
    if (weft_shape_of(condition)->n_dims != 0) {
        weft_graph_fail(graph,
                        "%s: the condition is %s, and a trip is made on all ranks or on none; make "
                        "one number of it, as by weft_any or weft_all",
                        call, shape);
        return false;
    }
    const uint32_t other = weft_scan_guard_of(graph, graph->scan);
    if (other == 0) return true;
    weft_origin_print(&graph->nodes[other], origin, sizeof origin);
    weft_graph_fail(graph,
                    "%s: the scan has the condition of %s already; make one of both, as by "
                    "weft_logical_and",
                    call, origin);
    return false;
}

/* As 0 or 1, which the body makes: so it is stacked, and says of each trip whether it was made. */
static weft_value guard(const char *call, weft_value condition, bool ends)
{
    weft_graph *graph = condition.graph;
    if (weft_graph_status(graph) != WEFT_OK || !check(graph, call, condition))
        return weft_no_value(graph);
    const weft_dtype dtype = weft_dtype_of(condition);
    if (dtype != WEFT_I32)
        return weft_graph_fail(graph,
                               "%s: the condition is %s, and conditions are i32; compare it, as by "
                               "weft_less, or weft_cast it",
                               call, weft_dtype_name(dtype));
    const weft_value none = weft_constant(graph, dtype, WEFT_SCALAR, 0.0);
    const weft_value holds = weft_not_equal(condition, none);
    return weft_scan_guard(holds, ends).id != 0 ? weft_hand_back(condition) : weft_no_value(graph);
}

weft_value weft_scan_if(weft_value condition)
{
    return guard("scan_if", condition, false);
}

weft_value weft_scan_while(weft_value condition)
{
    return guard("scan_while", condition, true);
}
