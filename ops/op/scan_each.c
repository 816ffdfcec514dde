/* scan_each: the element of x along one dim that belongs to the trip. No kernel: the compiler knows it. */
#include "ir.h"
#include "weft/scan.h"

static weft_status infer(weft_site *site, weft_error *error)
{
    const weft_scan_attributes *attributes = site->attributes;
    WEFT_TRY(weft_check_dim(site, 0, attributes->dim.dim, attributes->dim.size, error));
    site->n_out = 1;
    site->out[0].dtype = site->in[0].dtype;
    site->out[0].shape = weft_shape_without(&site->in[0].shape, attributes->dim.dim);
    return WEFT_OK;
}

const weft_op weft_op_scan_each = {.name = "scan_each",
                                   .attributes = &weft_attributes_scan_dim,
                                   .infer = infer,
                                   .factors = weft_scan_factors,
                                   .linear = 1,
                                   .selects = true};

weft_value weft_scan_each_of(weft_value x, uint32_t scan, weft_dim dim, bool is_reversed)
{
    return weft_scan_emit_dim(&weft_op_scan_each, x, dim,
                              (weft_scan_attributes){.scan = scan, .is_reversed = is_reversed});
}

weft_value weft_scan_each(weft_value x, weft_dim dim)
{
    weft_graph *graph = x.graph;
    if (weft_graph_status(graph) != WEFT_OK) return weft_no_value(graph);
    if (graph->scan == 0)
        return weft_graph_fail(graph, "scan_each: no scan is open; begin one with weft_scan_begin");
    weft_dim_attributes named;
    if (!weft_graph_dim(graph, "scan_each", dim, &named)) return weft_no_value(graph);
    const int64_t trips = graph->scans[graph->scan].trips;
    if (dim.size != trips)
        return weft_graph_fail(graph,
                               "scan_each: %s has %lld elements and the scan has %lld trips; each "
                               "trip sees one",
                               named.dim, (long long)named.size, (long long)trips);
    if (weft_is_value(x) && weft_node_of(graph, x.id)->scan == graph->scan)
        return weft_graph_fail(graph,
                               "scan_each: x is of this scan's body, another in each trip; make it "
                               "before weft_scan_begin");
    return weft_scan_each_of(x, graph->scan, dim, false);
}
