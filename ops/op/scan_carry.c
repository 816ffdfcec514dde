/* scan_carry: what goes from trip to trip, as this trip finds it. No kernel: the compiler knows it.
 *
 * Operand 0 is the initial value, which is of the outside.
 */
#include "ir.h"
#include "weft/scan.h"

const weft_op weft_op_scan_carry = {.name = "scan_carry",
                                    .attributes = &weft_attributes_scan,
                                    .infer = weft_infer_same,
                                    .factors = weft_factors_pass,
                                    .linear = 1};

weft_value weft_scan_carry(weft_value initial)
{
    weft_graph *graph = initial.graph;
    if (weft_graph_status(graph) != WEFT_OK) return weft_no_value(graph);
    if (graph->scan == 0)
        return weft_graph_fail(graph,
                               "scan_carry: no scan is open; begin one with weft_scan_begin");
    if (weft_is_value(initial) && weft_node_of(graph, initial.id)->scan == graph->scan)
        return weft_graph_fail(graph,
                               "scan_carry: the initial value is of this scan's body, another in "
                               "each trip; make it before weft_scan_begin");
    return weft_scan_emit(graph, &weft_op_scan_carry, &initial, 1,
                          (weft_scan_attributes){.scan = graph->scan});
}
