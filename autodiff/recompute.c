/* recompute.c: parts of a program whose values the way back computes again, in place of keeping them.
 *
 * When a walk comes into a part from behind, it copies the part's nodes. Gradients of the part read these copies in
 * place of its nodes. The copies read the values that enter the part unchanged, and values from a part around in its
 * copies. Copies and what gradients build from them carry the number of the visit (weft_node.again), by which the
 * compiler knows that they are not what they repeat. They are where the walk was: behind the gradient that arrives.
 * Copies without a reader are dropped.
 *
 * Scans in the part are copied with their bodies, and the backward pass of one reads the copy's residuals
 * (scan_gradient.c). So for a scan in a part in the body of a scan, only the parts' trips are kept. Variables and
 * inputs are not computed again, nor what the scan around carries or sees.
 */
#include <stdlib.h>

#include "same.h"
#include "walk.h"
#include "weft/autodiff.h"

/* ---- the builders ------------------------------------------------------------------------------ */

/* The value with which a part begins. Not in the table of ops: it has no kernel, and no pass but expand meets it. */
static const weft_op op = {.name = "recompute_begin",
                           .infer = weft_same_infer,
                           .factors = weft_factors_pass,
                           .linear = 1,
                           .selects = true,
                           .gradient = weft_same_gradient,
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
    return weft_hand_back(value);
}

/* ---- on the way back --------------------------------------------------------------------------- */

struct weft_visit {
    uint32_t again;           /* the visit's number; 0: the walk has not come to it yet */
    uint32_t first, n;        /* values of the part's nodes                             */
    uint32_t *copy;           /* [n] 0: it is not computed again                        */
    uint32_t n_scans, *scans; /* [n_scans] that make the trips of one in the part again; 0: none */
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
        free(w->visits[p].copy), free(w->visits[p].scans);
    free(w->visits);
    w->visits = NULL;
}

/* The part around, if no scan is between. */
static uint32_t around(const weft_graph *graph, uint32_t part)
{
    const uint32_t parent = graph->parts[part].parent;
    return graph->parts[parent].scan == graph->parts[part].scan ? parent : 0;
}

/* ---- scans in a part ----------------------------------------------------------------------------- */

static uint32_t scan_again(const weft_visit *visit, uint32_t scan)
{
    return scan < visit->n_scans ? visit->scans[scan] : 0;
}

/* The scan of the part that begins with this node; 0: none does. */
static uint32_t begins(const weft_graph *graph, const weft_visit *visit,
                       const weft_recompute_part *its, const weft_node *node)
{
    const weft_scan *scan = &graph->scans[node->scan];
    const bool is_begin = node->scan != its->scan && node->scan != 0 && scan->trip == node->out;
    return is_begin && (scan->parent == its->scan || scan_again(visit, scan->parent) != 0)
               ? node->scan
               : 0;
}

static bool is_repeated(const weft_visit *visit, const weft_node *node, uint32_t scan)
{
    if (node->scan != scan && scan_again(visit, node->scan) == 0) return false;
    if (weft_is_of_scan(node->op))
        return scan_again(visit, (uint32_t)weft_scan_of(node)->scan) != 0;
    return !node->op->is_outside && !node->op->makes_token;
}

/* Which scans there are, until they are copied by their own number; and what their bodies read of what is around the part,
 * which has to stand before them. */
static void look_at_scans(weft_walk *w, uint32_t part)
{
    weft_graph *graph = w->graph;
    const weft_recompute_part its = graph->parts[part];
    weft_visit *visit = &w->visits[part];
    for (uint32_t id = its.begin; id < its.end && graph->error.status == WEFT_OK; id++) {
        const weft_node node = graph->nodes[id]; /* a copy: building moves the array */
        const uint32_t scan = begins(graph, visit, &its, &node);
        if (scan != 0) visit->scans[scan] = scan;
        if (node.scan == its.scan || !is_repeated(visit, &node, its.scan)) continue;
        for (int i = 0; i < node.n_in; i++)
            if (graph->tensors[node.in[i]].node < its.begin ||
                !is_repeated(visit, weft_node_of(graph, node.in[i]), its.scan))
                weft_part_sees(w, part, node.in[i]);
    }
}

/* It makes the same trips, with the same numbers: no stream is drawn in it. */
static uint32_t open_again(weft_graph *graph, uint32_t scan)
{
    const uint32_t again = weft_scan_open(graph, graph->scans[scan].trips);
    if (again == 0) return 0;
    graph->scans[again].over = graph->scans[scan].over;
    graph->scans[again].repeats = scan;
    graph->scans[again].random_end = graph->scans[again].random_begin;
    return again;
}

/* The attributes of an op of a scan that is copied. */
static bool set_scan(weft_graph *graph, weft_node *copy, const weft_visit *visit)
{
    weft_scan_attributes *attributes =
        weft_arena_copy(graph->arena, copy->attributes, copy->attribute_bytes);
    if (attributes == NULL) {
        weft_fail_memory(&graph->error, copy->attribute_bytes);
        return false;
    }
    attributes->scan = scan_again(visit, (uint32_t)attributes->scan);
    copy->attributes = attributes;
    return true;
}

/* ---- the copies ---------------------------------------------------------------------------------- */

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

/* A node in the body that it is of, `around` being that of the part. */
static void repeat_node(weft_walk *w, uint32_t part, uint32_t id, uint32_t around)
{
    weft_graph *graph = w->graph;
    weft_visit *visit = &w->visits[part];
    weft_node node = graph->nodes[id];
    const uint32_t its = graph->parts[part].scan;
    const uint32_t begun = begins(graph, visit, &graph->parts[part], &node);
    uint32_t in[WEFT_MAX_IN];
    for (int i = 0; i < node.n_in; i++)
        in[i] = weft_part_sees(w, part, node.in[i]).id;
    const uint32_t body = begun != 0 ? graph->scans[begun].parent : node.scan;
    graph->scan = body == its ? around : scan_again(visit, body);
    if (begun != 0) visit->scans[begun] = open_again(graph, begun);
    if (weft_is_of_scan(node.op) && !set_scan(graph, &node, visit)) return;
    const uint32_t out = graph->error.status == WEFT_OK ? repeat(graph, &node, in) : 0;
    if (out != 0 && begun != 0) graph->scans[visit->scans[begun]].trip = out;
    for (uint32_t i = 0; out != 0 && i < node.n_out; i++)
        visit->copy[node.out + i - visit->first] = out + i;
}

static void repeat_all(weft_walk *w, uint32_t part)
{
    weft_graph *graph = w->graph;
    const weft_recompute_part its = graph->parts[part];
    const uint32_t around = graph->scan;
    look_at_scans(w, part);
    for (uint32_t id = its.begin; id < its.end && graph->error.status == WEFT_OK; id++) {
        if (is_repeated(&w->visits[part], &graph->nodes[id], its.scan))
            repeat_node(w, part, id, around);
        graph->scan = around;
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
    visit->n_scans = graph->n_scans;
    visit->copy = calloc(visit->n, sizeof *visit->copy);
    visit->scans = calloc(visit->n_scans + 1, sizeof *visit->scans);
    if (visit->copy != NULL && visit->scans != NULL)
        repeat_all(w, part);
    else
        weft_fail_memory(&graph->error, visit->n * sizeof *visit->copy);
    graph->again = outer;
    return visit->again;
}

uint32_t weft_part_copy(const weft_walk *w, uint32_t part, uint32_t value)
{
    for (uint32_t p = part; p != 0; p = around(w->graph, p)) {
        const weft_visit *visit = &w->visits[p];
        if (visit->copy == NULL || value < visit->first || value - visit->first >= visit->n)
            continue;
        if (visit->copy[value - visit->first] != 0) return visit->copy[value - visit->first];
    }
    return 0;
}

uint32_t weft_part_scan(const weft_walk *w, uint32_t part, uint32_t scan)
{
    return part == 0 ? 0 : scan_again(&w->visits[part], scan);
}

weft_value weft_part_sees(weft_walk *w, uint32_t part, uint32_t value)
{
    const uint32_t copy = weft_part_copy(w, part, value);
    return copy != 0 ? (weft_value){w->graph, copy} : weft_walk_sees(w, value);
}
