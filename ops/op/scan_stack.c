/* scan_stack: a value of a scan's body in all trips, along a first dim. No kernel: the compiler knows it. */
#include "ir.h"
#include "weft/scan.h"

static weft_status infer(weft_site *site, weft_error *error)
{
    const weft_scan_attributes *attributes = site->attributes;
    const weft_shape *x = &site->in[0].shape;
    weft_shape *out = &site->out[0].shape;
    if (x->n_dims == WEFT_MAX_DIMS)
        return weft_fail(error, WEFT_USAGE,
                         "%s has %d dims, and stacked it has one more; the most is %d",
                         weft_site_name(site, 0), x->n_dims, WEFT_MAX_DIMS);
    site->n_out = 1;
    site->out[0].dtype = site->in[0].dtype;
    out->n_dims = x->n_dims + 1;
    out->dims[0] = (weft_dim){attributes->dim.dim, attributes->dim.size};
    for (int d = 0; d < x->n_dims; d++)
        out->dims[d + 1] = x->dims[d];
    return WEFT_OK; /* a name that stands twice now is found by weft_emit */
}

const weft_op weft_op_scan_stack = {.name = "scan_stack",
                                    .attributes = &weft_attributes_scan_dim,
                                    .infer = infer,
                                    .factors = weft_scan_factors,
                                    .linear = 1,
                                    .selects = true,
                                    .reads_bodies = true};

weft_value weft_scan_stack_of(weft_value x, uint32_t scan, weft_dim dim, bool is_reversed)
{
    return weft_scan_emit_dim(&weft_op_scan_stack, x, dim,
                              (weft_scan_attributes){.scan = scan, .is_reversed = is_reversed});
}

weft_value weft_scan_stack(weft_value x, weft_dim dim)
{
    weft_graph *graph = x.graph;
    if (weft_graph_status(graph) != WEFT_OK) return weft_no_value(graph);
    const uint32_t scan = weft_is_value(x) ? weft_node_of(graph, x.id)->scan : 0;
    if (scan == 0)
        return weft_graph_fail(graph, "scan_stack: x is of no scan's body; stack what a body made");
    if (!weft_scan_is_outside(graph, "scan_stack", scan)) return weft_no_value(graph);
    weft_dim_attributes named;
    if (!weft_graph_dim(graph, "scan_stack", dim, &named)) return weft_no_value(graph);
    const int64_t trips = graph->scans[scan].trips;
    if (dim.size != trips)
        return weft_graph_fail(
            graph,
            "scan_stack: %s is to have %lld elements and the scan has %lld trips; "
            "there is one of each",
            named.dim, (long long)named.size, (long long)trips);
    return weft_scan_stack_of(x, scan, dim, false);
}
