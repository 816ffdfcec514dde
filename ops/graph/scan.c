/* scan.c: the scans of a graph: which there are, which is open, what their bodies may read. */
#include "ir.h"
#include "weft/scan.h"

bool weft_scan_holds(const weft_graph *graph, uint32_t outer, uint32_t inner)
{
    while (inner > outer)
        inner = graph->scans[inner].parent;
    return inner == outer;
}

uint32_t weft_scan_open(weft_graph *graph, int64_t trips)
{
    const uint32_t begin = graph->n_scans == 0 ? 1 : graph->n_scans;
    if (begin >= graph->cap_scans) { /* the old ones stay in the arena: there are few */
        const uint32_t cap = 2 * graph->cap_scans + 8;
        weft_scan *scans = weft_arena_take(graph->arena, cap * sizeof *scans);
        if (scans == NULL) {
            if (graph->error.status == WEFT_OK)
                weft_fail_memory(&graph->error, cap * sizeof *scans);
            return 0;
        }
        for (uint32_t s = 1; s < begin; s++)
            scans[s] = graph->scans[s];
        graph->scans = scans;
        graph->cap_scans = cap;
    }
    graph->scans[begin] = (weft_scan){.parent = graph->scan,
                                      .trips = trips,
                                      .random_begin = graph->n_random,
                                      .random_end = UINT32_MAX};
    graph->n_scans = begin + 1;
    graph->scan = begin;
    return begin;
}

uint32_t weft_scan_of_stream(const weft_graph *graph, uint32_t stream)
{
    uint32_t found = 0; /* those within come after those around them */
    for (uint32_t s = 1; s < graph->n_scans; s++)
        if (stream > graph->scans[s].random_begin && stream <= graph->scans[s].random_end)
            found = s;
    return found;
}

uint32_t weft_scan_over(const weft_graph *graph, uint32_t scan)
{
    while (scan != 0 && graph->scans[scan].over.dim == NULL)
        scan = graph->scans[scan].parent;
    return scan;
}

uint32_t weft_scan_mark(uint32_t level, int64_t trip)
{
    uint64_t hash = ((uint64_t)level << 32) + (uint64_t)(trip + 1);
    for (int i = 0; i < 2; i++) {
        hash *= 0x9E3779B97F4A7C15u;
        hash ^= hash >> 29;
    }
    return (uint32_t)(hash ^ hash >> 32);
}

bool weft_scan_sees(weft_graph *graph, const weft_op *op, uint32_t value)
{
    const weft_node *node = weft_node_of(graph, value);
    const bool is_within = weft_scan_holds(graph, node->scan, graph->scan);
    char origin[160];
    if (is_within || op->reads_bodies) return true;
    weft_origin_print(node, origin, sizeof origin);
    weft_graph_fail(graph,
                    "%s: the result of %s is of a scan's body, another in each trip; outside, take "
                    "weft_scan_last of what is carried, or weft_scan_stack",
                    op->name, origin);
    return false;
}

bool weft_scan_is_outside(weft_graph *graph, const char *call, uint32_t scan)
{
    if (weft_scan_holds(graph, graph->scans[scan].parent, graph->scan) &&
        !weft_scan_holds(graph, scan, graph->scan))
        return true;
    weft_graph_fail(graph,
                    weft_scan_holds(graph, scan, graph->scan)
                        ? "%s: the scan has not ended; call weft_scan_end before"
                        : "%s: the scan is in another one's body, where it is to be called",
                    call);
    return false;
}

weft_value weft_scan_emit(weft_graph *graph, const weft_op *op, const weft_value *in, int n_in,
                          weft_scan_attributes attributes)
{
    return weft_emit(graph, op, in, n_in, &attributes, weft_op_attributes(op)->bytes);
}

weft_value weft_scan_emit_dim(const weft_op *op, weft_value x, weft_dim dim,
                              weft_scan_attributes attributes)
{
    if (!weft_graph_dim(x.graph, op->name, dim, &attributes.dim)) return weft_no_value(x.graph);
    return weft_scan_emit(x.graph, op, &x, 1, attributes);
}

void weft_scan_factors(const weft_site *site, weft_factors *factors)
{
    weft_factors_by_name(site, WEFT_NOT_PARTIAL, factors);
    weft_factors_whole(site, weft_scan_of_site(site)->dim.dim, factors);
}
