/* part.c: the parts of a graph that gradients compute again: which there are, which is open, which a node is in. */
#include "ir.h"

bool weft_part_open(weft_graph *graph)
{
    const uint32_t begin = graph->n_parts == 0 ? 1 : graph->n_parts;
    if (begin >= graph->cap_parts) { /* the old ones stay in the arena: there are few */
        const uint32_t cap = 2 * graph->cap_parts + 8;
        weft_recompute_part *parts = weft_arena_take(graph->arena, cap * sizeof *parts);
        if (parts == NULL) {
            if (graph->error.status == WEFT_OK)
                weft_fail_memory(&graph->error, cap * sizeof *parts);
            return false;
        }
        for (uint32_t p = 1; p < begin; p++)
            parts[p] = graph->parts[p];
        graph->parts = parts;
        graph->cap_parts = cap;
    }
    graph->parts[begin] = (weft_recompute_part){
        .parent = graph->part, .scan = graph->scan, .begin = graph->n_nodes, .end = UINT32_MAX};
    graph->n_parts = begin + 1;
    graph->part = begin;
    return true;
}

static uint32_t part_of(const weft_graph *graph, uint32_t node, uint32_t scan)
{
    uint32_t low = 0, high = graph->n_parts; /* the last that begins before it, or with it */
    while (low + 1 < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (graph->parts[middle].begin <= node)
            low = middle;
        else
            high = middle;
    }
    while (low != 0 && (graph->parts[low].end <= node || graph->parts[low].scan != scan))
        low = graph->parts[low].parent;
    return low;
}

uint32_t weft_part_of(const weft_graph *graph, uint32_t node)
{
    return part_of(graph, node, graph->nodes[node].scan);
}

uint32_t weft_part_of_scan(const weft_graph *graph, uint32_t scan)
{
    return part_of(graph, graph->tensors[graph->scans[scan].trip].node, graph->scans[scan].parent);
}

int weft_part_print(const weft_graph *graph, uint32_t part, char *text, size_t bytes)
{
    return weft_origin_print(&graph->nodes[graph->parts[part].begin], text, bytes);
}

bool weft_part_is_closed(weft_graph *graph, const char *call, uint32_t scan)
{
    char origin[160];
    if (graph->part == 0 || graph->parts[graph->part].scan < scan) return true;
    weft_part_print(graph, graph->part, origin, sizeof origin);
    weft_graph_fail(graph, "%s: the part of %s has not ended; call weft_recompute_end before", call,
                    origin);
    return false;
}
