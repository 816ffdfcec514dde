/* scan_last: what is carried, as the last trip left it. No kernel: the compiler knows it. */
#include "ir.h"
#include "weft/scan.h"

const weft_op weft_op_scan_last = {.name = "scan_last",
                                   .attributes = &weft_attributes_scan,
                                   .infer = weft_infer_same,
                                   .factors = weft_factors_pass,
                                   .linear = 1,
                                   .reads_bodies = true};

weft_value weft_scan_last(weft_value carry)
{
    weft_graph *graph = carry.graph;
    if (weft_graph_status(graph) != WEFT_OK) return weft_no_value(graph);
    if (!weft_is_value(carry) || weft_node_of(graph, carry.id)->op != &weft_op_scan_carry)
        return weft_graph_fail(graph,
                               "scan_last: the value is not carried; pass what weft_scan_carry "
                               "returned, or weft_scan_stack it");
    const uint32_t scan = weft_node_of(graph, carry.id)->scan;
    if (!weft_scan_is_outside(graph, "scan_last", scan)) return weft_no_value(graph);
    return weft_scan_emit(graph, &weft_op_scan_last, &carry, 1,
                          (weft_scan_attributes){.scan = scan});
}
