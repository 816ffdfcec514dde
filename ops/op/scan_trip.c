/* scan_trip: the number of the trip, from 0; with it a scan begins. No kernel: the compiler knows it. */
#include "ir.h"
#include "weft/scan.h"

static weft_status infer(weft_site *site, weft_error *error)
{
    (void)error;
    site->n_out = 1;
    site->out[0].dtype = WEFT_I32;
    return WEFT_OK;
}

const weft_op weft_op_scan_trip = {.name = "scan_trip",
                                   .attributes = &weft_attributes_scan_trip,
                                   .infer = infer,
                                   .factors = weft_factors_pass};

bool weft_is_of_scan(const weft_op *op)
{
    return op == &weft_op_scan_trip || op == &weft_op_scan_carry || op == &weft_op_scan_next ||
           op == &weft_op_scan_guard || op == &weft_op_scan_each || op == &weft_op_scan_last ||
           op == &weft_op_scan_stack;
}

weft_value weft_scan_trip_of(weft_graph *graph, uint32_t scan, bool is_reversed)
{
    return weft_scan_emit(graph, &weft_op_scan_trip, NULL, 0,
                          (weft_scan_attributes){.scan = scan, .is_reversed = is_reversed});
}

weft_value weft_scan_begin(weft_graph *graph, int64_t trips)
{
    enum { MOST = 1 << 20 };
    if (weft_graph_status(graph) != WEFT_OK) return weft_no_value(graph);
    if (trips < 1 || trips > MOST)
        return weft_graph_fail(graph, "scan_begin: %lld trips; there are from 1 to %d",
                               (long long)trips, (int)MOST);
    const uint32_t scan = weft_scan_open(graph, trips);
    const weft_value trip = weft_scan_trip_of(graph, scan, false);
    if (trip.id != 0) graph->scans[scan].trip = trip.id;
    return trip;
}

weft_value weft_scan_begin_over(weft_graph *graph, int64_t trips, weft_dim whole)
{
    weft_dim_attributes over;
    if (weft_graph_status(graph) != WEFT_OK) return weft_no_value(graph);
    if (!weft_graph_dim(graph, "scan_begin_over", whole, &over)) return weft_no_value(graph);
    if (trips >= 1 && over.size % trips != 0)
        return weft_graph_fail(graph,
                               "scan_begin_over: %s has %lld elements and there are %lld trips; "
                               "each goes over as many, so their number divides the size",
                               over.dim, (long long)over.size, (long long)trips);
    if (weft_scan_over(graph, graph->scan) != 0)
        return weft_graph_fail(graph,
                               "scan_begin_over: the body is of a scan over %s already; take "
                               "weft_scan_begin for the one in it",
                               graph->scans[weft_scan_over(graph, graph->scan)].over.dim);
    const weft_value trip = weft_scan_begin(graph, trips);
    if (trip.id != 0) graph->scans[graph->scan].over = over;
    return trip;
}

/* Values carried in the body that have no next one; 0: all have. */
static uint32_t find_unfinished(const weft_graph *graph, uint32_t scan)
{
    for (uint32_t id = (uint32_t)(weft_node_of(graph, graph->scans[scan].trip) - graph->nodes);
         id < graph->n_nodes; id++) {
        const weft_node *node = &graph->nodes[id];
        if (node->op != &weft_op_scan_carry || node->scan != scan) continue;
        if (weft_scan_next_of(graph, node->out) == 0) return node->out;
    }
    return 0;
}

weft_value weft_scan_end(weft_value trip)
{
    weft_graph *graph = trip.graph;
    char origin[160];
    if (weft_graph_status(graph) != WEFT_OK) return weft_no_value(graph);
    if (graph->scan == 0)
        return weft_graph_fail(graph, "scan_end: no scan is open; begin one with weft_scan_begin");
    weft_scan *scan = &graph->scans[graph->scan];
    weft_origin_print(weft_node_of(graph, scan->trip), origin, sizeof origin);
    if (trip.id != scan->trip)
        return weft_graph_fail(
            graph, "scan_end: the innermost open scan is that of %s; pass its trip", origin);
    if (!weft_part_is_closed(graph, "scan_end", graph->scan)) return weft_no_value(graph);
    const uint32_t unfinished = find_unfinished(graph, graph->scan);
    if (unfinished != 0) {
        weft_origin_print(weft_node_of(graph, unfinished), origin, sizeof origin);
        return weft_graph_fail(graph,
                               "scan_end: the value of %s has nothing to be in the next trip; "
                               "say it with weft_scan_next",
                               origin);
    }
    scan->random_end = graph->n_random;
    graph->scan = scan->parent;
    return weft_hand_back(trip);
}
