/* recompute.c: parts of a program whose values the way back computes again, in place of keeping them.
 *
 * When a walk comes into a part from behind, it copies the part's nodes. What gradients of the part read of it they find in
 * these copies, which read as they are the values that enter the part; what enters from a part around, in its copies. Copies and
 * what gradients build from them carry the number of the visit (weft_node.again), by which the compiler knows that they are not
 * what they repeat. They are where the walk was: behind the gradient that arrives. What nobody reads is dropped.
 *
 * Variables and inputs, and what scans in the part have left, are not computed again.
 */
#include <stdlib.h>

#include "same.h"
#include "walk.h"
#include "weft/autodiff.h"

/* ---- the builders ------------------------------------------------------------------------------ */

static void gradient(weft_vjp *vjp)
{
    vjp->din[0] = vjp->dout[0];
}

/* The value with which a part begins. Not in the table of ops: it has no kernel, and no pass but expand meets it. */
static const weft_op op = {.name = "recompute_begin",
                           .infer = weft_same_infer,
                           .factors = weft_factors_pass,
                           .linear = 1,
                           .selects = true,
                           .gradient = gradient,
                           .expand = weft_same_expand,
                           .expands = true};

weft_value weft_recompute_begin(weft_value x)
{
    weft_graph *graph = x.graph;
    const weft_graph_point here = graph != NULL ? weft_graph_here(graph) : (weft_graph_point){0};
    if (weft_graph_status(graph) != WEFT_OK || !weft_part_open(graph)) return weft_no_value(graph);
    const weft_value inside = weft_emit_own(graph, &op, &x, 1, NULL, 0);
    if (inside.id == 0) weft_graph_rewind(graph, here);
    return inside;
}

/* Whether the part has made a value, which is more than to hand in what was there. */
static bool is_made_in(const weft_graph *graph, uint32_t part, uint32_t value)
{
    const uint32_t node = graph->tensors[value].node;
    return node > graph->parts[part].begin && !graph->nodes[node].op->is_outside;
}

weft_value weft_recompute_end(weft_value value)
{
    weft_graph *graph = value.graph;
    char origin[160];
    if (!weft_graph_takes(graph, "recompute_end", "value", (weft_values){&value, 1}))
        return weft_no_value(graph);
    const uint32_t part = graph->part;
    if (part == 0)
        return weft_graph_fail(graph, "recompute_end: no part is open; begin one with "
                                      "weft_recompute_begin");
    weft_part_print(graph, part, origin, sizeof origin);
    if (graph->scan != graph->parts[part].scan)
        return weft_graph_fail(graph,
                               "recompute_end: the part of %s is not of the scan's body that is "
                               "open; call weft_scan_end before",
                               origin);
    if (!is_made_in(graph, part, value.id))
        return weft_graph_fail(graph,
                               "recompute_end: the value was not made in the part of %s, so there "
                               "is nothing to compute again; pass what the part has made",
                               origin);
    graph->parts[part].end = graph->n_nodes;
    graph->part = graph->parts[part].parent;
    return value;
}

/* ---- on the way back --------------------------------------------------------------------------- */

struct weft_visit {
    uint32_t again;    /* the visit's number; 0: the walk has not come to it yet */
    uint32_t first, n; /* values of the part's nodes                             */
    uint32_t *copy;    /* [n] 0: it is not computed again                        */
};

bool weft_visits_open(weft_walk *w)
{
    weft_graph *graph = w->graph;
    if (graph->n_parts == 0) return true;
    w->visits = calloc(graph->n_parts, sizeof *w->visits);
    if (w->visits == NULL) weft_fail_memory(&graph->error, graph->n_parts * sizeof *w->visits);
    return w->visits != NULL;
}

void weft_visits_close(weft_walk *w)
{
    for (uint32_t p = 1; w->visits != NULL && p < w->graph->n_parts; p++)
        free(w->visits[p].copy);
    free(w->visits);
    w->visits = NULL;
}

/* The part around, if no scan is between. */
static uint32_t around(const weft_graph *graph, uint32_t part)
{
    const uint32_t parent = graph->parts[part].parent;
    return graph->parts[parent].scan == graph->parts[part].scan ? parent : 0;
}

static bool is_repeated(const weft_node *node, uint32_t scan)
{
    return node->scan == scan && !node->op->is_outside && !node->op->makes_token &&
           !weft_is_of_scan(node->op);
}

/* The same once more. Its name stays with the first. */
static uint32_t repeat(weft_graph *graph, const weft_node *node, const uint32_t *in)
{
    const uint32_t id = graph->n_nodes, out = weft_node_copy(graph, graph, node, in);
    if (out == 0) return 0;
    weft_node *copy = &graph->nodes[id];
    copy->scan = graph->scan;
    copy->phase = (uint8_t)graph->phase;
    copy->again = graph->again;
    copy->repeats = true;
    for (uint32_t i = 0; i < node->n_out; i++) {
        graph->tensors[out + i].name = NULL;
        graph->tensors[out + i].place_as = graph->tensors[node->out + i].place_as;
    }
    return out;
}

static void repeat_all(weft_walk *w, uint32_t part)
{
    weft_graph *graph = w->graph;
    const weft_part its = graph->parts[part];
    weft_visit *visit = &w->visits[part];
    for (uint32_t id = its.begin; id < its.end && graph->error.status == WEFT_OK; id++) {
        const weft_node node = graph->nodes[id]; /* a copy: building moves the array */
        uint32_t in[WEFT_MAX_IN];
        if (!is_repeated(&node, its.scan)) continue;
        for (int i = 0; i < node.n_in; i++)
            in[i] = weft_part_sees(w, part, node.in[i]).id;
        if (graph->error.status != WEFT_OK) return;
        const uint32_t out = repeat(graph, &node, in);
        for (uint32_t i = 0; out != 0 && i < node.n_out; i++)
            visit->copy[node.out + i - visit->first] = out + i;
    }
}

uint32_t weft_part_again(weft_walk *w, uint32_t part)
{
    weft_graph *graph = w->graph;
    weft_visit *visit = &w->visits[part];
    if (part == 0 || visit->again != 0) return visit->again;
    weft_part_again(w, around(graph, part));
    const uint32_t outer = graph->again, end = graph->parts[part].end;
    visit->again = graph->again = graph->n_nodes; /* no other visit has it */
    visit->first = graph->nodes[graph->parts[part].begin].out;
    visit->n = (end < graph->n_nodes ? graph->nodes[end].out : graph->n_tensors) - visit->first;
    visit->copy = calloc(visit->n, sizeof *visit->copy);
    if (visit->copy != NULL)
        repeat_all(w, part);
    else
        weft_fail_memory(&graph->error, visit->n * sizeof *visit->copy);
    graph->again = outer;
    return visit->again;
}

weft_value weft_part_sees(weft_walk *w, uint32_t part, uint32_t value)
{
    weft_graph *graph = w->graph;
    for (uint32_t p = part; p != 0; p = around(graph, p)) {
        const weft_visit *visit = &w->visits[p];
        if (value < visit->first || value - visit->first >= visit->n) continue;
        const uint32_t copy = visit->copy == NULL ? 0 : visit->copy[value - visit->first];
        if (copy != 0) return (weft_value){graph, copy};
    }
    return weft_walk_sees(w, value);
}
