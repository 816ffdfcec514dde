/* copy: an empty graph into which passes copy nodes of another; it takes its names from that one's arena. */
#include "ir.h"

#include <stdlib.h>

weft_graph *weft_graph_like(const weft_graph *like)
{
    weft_graph *graph = calloc(1, sizeof *graph);
    if (!graph) return NULL;
    graph->arena = like->arena;
    graph->seed = like->seed;
    graph->n_random = like->n_random;
    graph->scans = like->scans;
    graph->n_scans = like->n_scans;
    graph->n_nodes = graph->n_tensors = 1; /* id 0 is invalid */
    graph->built = weft_graph_here(graph);
    graph->cap_nodes = like->n_nodes + 16;
    graph->cap_tensors = like->n_tensors + 16;
    graph->nodes = calloc(graph->cap_nodes, sizeof *graph->nodes);
    graph->tensors = calloc(graph->cap_tensors, sizeof *graph->tensors);
    if (!graph->nodes || !graph->tensors) weft_graph_like_destroy(&graph);
    return graph;
}

void weft_graph_like_destroy(weft_graph **graph)
{
    if (!*graph) return;
    free((*graph)->nodes);
    free((*graph)->tensors);
    free(*graph);
    *graph = NULL;
}
