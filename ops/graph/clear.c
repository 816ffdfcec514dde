/* clear.c: a graph after an error: what a failed builder had begun goes, and building goes on.
 *
 * Node ids are in order of building, so what a builder made is the end of the array: going back is forgetting the end.
 * Names stay in the arena until the graph dies.
 */
#include "ir.h"

weft_graph_point weft_graph_here(const weft_graph *graph)
{
    return (weft_graph_point){graph->n_nodes, graph->n_random, graph->n_scans,
                              graph->scan,    graph->n_parts,  graph->part};
}

void weft_graph_rewind(weft_graph *graph, weft_graph_point to)
{
    if (to.n_nodes < graph->n_nodes) {
        graph->n_tensors = graph->nodes[to.n_nodes].out;
        graph->n_nodes = to.n_nodes;
    }
    graph->n_random = to.n_random;
    graph->n_scans = to.n_scans;
    graph->scan = to.scan;
    graph->n_parts = to.n_parts;
    graph->part = to.part;
    for (uint32_t p = to.part; p != 0; p = graph->parts[p].parent)
        graph->parts[p].end = UINT32_MAX; /* it had not ended then */
    if (graph->built.n_nodes > graph->n_nodes) graph->built = to;
    if (graph->marked >= graph->n_tensors) graph->marked = 0;
    graph->handed_back = 0;
    if (graph->loss_scale.step >= graph->n_tensors) graph->loss_scale = (weft_loss_scaling){0};
    if (graph->loss_scale.is_finite >= graph->n_tensors) graph->loss_scale.is_finite = 0;
}

void weft_graph_clear_error(weft_graph *graph)
{
    if (weft_graph_status(graph) == WEFT_OK || graph == NULL) return;
    const bool has_origins = graph->built.n_nodes > 1;
    if (has_origins) weft_graph_rewind(graph, graph->built);
    weft_error_clear(&graph->error);
    graph->error_has_origin = false;
    graph->phase = WEFT_FORWARD;
    graph->place_as = 0;
    graph->assign_if = 0;
}
