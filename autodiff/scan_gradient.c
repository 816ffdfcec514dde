/* scan_gradient.c: through a scan backwards, by a scan that makes the trips from the last to the first.
 *
 * The gradient of a carried value is carried, if any gradient has read it. The gradient of an outside value is summed
 * over the trips; that of a value seen element by element is stacked. Values of the body that its gradients read are
 * stacked (residuals), or recomputed where they read nothing. The compiler drops values without a reader.
 */
#include <stdlib.h>
#include <string.h>

#include "walk.h"
#include "weft/ops.h"
#include "weft/scan.h"

static bool is_within(const weft_graph *graph, uint32_t scan, uint32_t value)
{
    return weft_scan_holds(graph, scan, weft_node_of(graph, value)->scan);
}

/* The dim along which a scan's residuals are stacked, and those of scans that make it again: no layout can name it. */
static weft_dim residual_dim(weft_graph *graph, uint32_t scan)
{
    char name[32];
    while (graph->scans[scan].repeats != 0)
        scan = graph->scans[scan].repeats;
    snprintf(name, sizeof name, "~%u", scan);
    return (weft_dim){weft_graph_intern(graph, name), graph->scans[scan].trips};
}

/* ---- residuals --------------------------------------------------------------------------------- */

/* What reads nothing is made again, what a trip sees of a tensor is seen again. */
static bool is_made_anew(const weft_node *node)
{
    return node->n_in == 0 || node->op == &weft_op_scan_each;
}

/* Stack what the bodies of `scan` and of those in it have made, those first: a stack is of the body around. */
static void stack_residuals(weft_graph *graph, uint32_t scan, weft_residuals *r)
{
    for (uint32_t s = scan + 1; s < graph->n_scans; s++)
        if (graph->scans[s].parent == scan) stack_residuals(graph, s, r);
    const uint32_t open = graph->scan, n_nodes = graph->n_nodes;
    const weft_dim dim = residual_dim(graph, scan);
    graph->scan = graph->scans[scan].parent;
    for (uint32_t id = 1; id < n_nodes && graph->error.status == WEFT_OK; id++) {
        const weft_node node = graph->nodes[id];
        if (node.scan != scan || node.op->makes_token || is_made_anew(&node)) continue;
        for (uint32_t value = node.out; value < node.out + node.n_out; value++)
            if (graph->tensors[value].type.shape.n_dims < WEFT_MAX_DIMS)
                r->stack[value] =
                    weft_scan_stack_of((weft_value){graph, value}, scan, dim, false).id;
    }
    graph->scan = open;
}

static uint32_t count_stacked(const weft_graph *graph, uint32_t scan)
{
    uint32_t n = graph->n_tensors;
    for (uint32_t s = 1; s < graph->n_scans;
         s++) /* each stacks what it has, and what was stacked in it */
        n += weft_scan_holds(graph, scan, s) ? graph->n_tensors : 0;
    return n;
}

static weft_residuals *take_residuals(weft_graph *graph, uint32_t scan)
{
    weft_residuals *r = calloc(1, sizeof *r);
    if (r != NULL) {
        r->n_values = count_stacked(graph, scan);
        r->stack = calloc(r->n_values, sizeof *r->stack);
        r->now = calloc(r->n_values, sizeof *r->now);
        if (r->stack != NULL && r->now != NULL) {
            stack_residuals(graph, scan, r);
            return r;
        }
        free(r->stack);
        free(r->now);
        free(r);
    }
    if (graph->error.status == WEFT_OK) weft_fail_memory(&graph->error, sizeof *r);
    return NULL;
}

static void give_residuals(weft_residuals **r)
{
    if (*r == NULL) return;
    free((*r)->stack);
    free((*r)->now);
    free(*r);
    *r = NULL;
}

static weft_value make_anew(weft_walk *w, const weft_node *node)
{
    const weft_scan_attributes *attributes = node->attributes;
    if (node->op == &weft_op_scan_trip)
        return weft_scan_trip_of(w->graph, w->mirror, !attributes->is_reversed);
    if (node->op == &weft_op_scan_each)
        return weft_scan_each_of(weft_walk_sees(w, node->in[0]), w->mirror,
                                 (weft_dim){attributes->dim.dim, attributes->dim.size},
                                 !attributes->is_reversed);
    return weft_emit_own(w->graph, node->op, NULL, 0, node->attributes, node->attribute_bytes);
}

weft_value weft_walk_sees(weft_walk *w, uint32_t value)
{
    weft_graph *graph = w->graph;
    weft_residuals *r = w->residuals;
    const uint32_t node = graph->tensors[value].node;
    if (r == NULL) return (weft_value){graph, value};
    if (value < r->n_values && r->now[value] != 0) return (weft_value){graph, r->now[value]};
    if (graph->nodes[node].scan == 0) return (weft_value){graph, value};
    if (w->mirror == 0 || graph->nodes[node].scan != w->scan) return (weft_value){graph, value};
    const weft_node made = graph->nodes[node];
    weft_value seen;
    if (is_made_anew(&made)) {
        const uint32_t index = value - made.out;
        seen = make_anew(w, &made);
        seen.id += seen.id == 0 ? 0 : index;
    } else if (r->stack[value] == 0) {
        return weft_graph_fail(
            graph,
            "gradients: a value of a scan's body has %d dims, and to be kept for "
            "the way back it needs one more; reshape it to fewer",
            WEFT_MAX_DIMS);
    } else {
        seen = weft_scan_each_of(weft_walk_sees(w, r->stack[value]), w->mirror,
                                 residual_dim(graph, w->scan), true);
    }
    r->now[value] = seen.id;
    return seen;
}

/* What the body of a scan in the one that is gone through has left is seen from out here first. */
static void see_from_around(weft_walk *w, uint32_t scan)
{
    weft_graph *graph = w->graph;
    const uint32_t n_nodes = graph->n_nodes;
    if (w->mirror == 0) return;
    for (uint32_t id = 1; id < n_nodes && graph->error.status == WEFT_OK; id++) {
        const weft_node node = graph->nodes[id];
        if (!weft_scan_holds(graph, scan, node.scan)) continue;
        for (int i = 0; i < node.n_in; i++)
            if (!is_within(graph, scan, node.in[i])) weft_walk_sees(w, node.in[i]);
        for (uint32_t value = node.out; node.scan == scan && value < node.out + node.n_out; value++)
            if (value < w->residuals->n_values && w->residuals->stack[value] != 0)
                weft_walk_sees(w, w->residuals->stack[value]);
    }
}

/* Of a scan that is made again (recompute.c), what was left is what the copy has left: as its stacks, and those in its bodies,
 * stand for the scan's; and what the bodies read of the part around are copies. Returns what was seen before; NULL: the same. */
static uint32_t *see_again(weft_walk *w, uint32_t part, uint32_t scan)
{
    weft_graph *graph = w->graph;
    weft_residuals *r = w->residuals;
    const uint32_t again = weft_part_scan(w, part, scan), around = graph->scans[scan].parent;
    weft_residuals *made = again != 0 ? take_residuals(graph, again) : NULL;
    uint32_t *kept = made != NULL ? calloc(w->n_values, sizeof *kept) : NULL;
    for (uint32_t value = 1; kept != NULL && value < w->n_values; value++) {
        uint32_t copy = weft_part_copy(w, part, value), left = value;
        kept[value] = r->now[value];
        if (copy == 0) continue;
        while (r->stack[left] != 0 && made->stack[copy] != 0 &&
               graph->nodes[graph->tensors[left].node].scan != around)
            copy = made->stack[copy], left = r->stack[left];
        if (graph->nodes[graph->tensors[left].node].scan == around) r->now[left] = copy;
    }
    give_residuals(&made);
    return kept;
}

static void see_as_before(weft_walk *w, uint32_t *kept)
{
    for (uint32_t value = 1; kept != NULL && value < w->n_values; value++)
        w->residuals->now[value] = kept[value];
    free(kept);
}

/* ---- what goes in and out of a scan -------------------------------------------------------------- */

/* A value along which gradients go through a scan's border, and what goes along it. */
typedef struct border {
    uint32_t node;  /* carry, each, stack; 0: the body reads the value as it is */
    uint32_t value; /* outside: to which gradients go; 0: none. Of a stack: from which they come */
    weft_value begin; /* made before the mirroring scan: what a carried gradient begins with */
    weft_value inner; /* in the mirroring scan: carried, or to be stacked */
} border;
typedef struct borders {
    border *list;
    uint32_t n, cap;
} borders;

static void add_border(weft_graph *graph, borders *b, border one)
{
    if (b->n == b->cap) {
        const uint32_t cap = 2 * b->cap + 16;
        border *list = realloc(b->list, cap * sizeof *list);
        if (list == NULL) {
            if (graph->error.status == WEFT_OK) weft_fail_memory(&graph->error, cap * sizeof *list);
            return;
        }
        b->list = list;
        b->cap = cap;
    }
    b->list[b->n++] = one;
}

/* Sums over the trips are added up in the dtype that theirs is computed in, and rounded once. */
static weft_value sum_like(weft_graph *graph, uint32_t value)
{
    const weft_type type = graph->tensors[value].type;
    return weft_constant(graph, weft_dtype_computes(type.dtype), type.shape, 0.0);
}

static weft_value zeros_like(weft_graph *graph, uint32_t value)
{
    const weft_type type = graph->tensors[value].type;
    return weft_constant(graph, type.dtype, type.shape, 0.0);
}

/* What flows into a carried value from behind the scan. */
static weft_value gradient_of_last(weft_walk *w, uint32_t carry)
{
    weft_value sum = weft_no_value(w->graph);
    for (uint32_t id = w->first; id < w->end; id++) {
        const weft_node node = w->graph->nodes[id];
        if (node.op != &weft_op_scan_last || node.in[0] != carry || w->gradient[node.out] == 0)
            continue;
        const weft_value part = {w->graph, w->gradient[node.out]};
        sum = sum.id == 0 ? part : weft_add(sum, part);
    }
    return sum.id != 0 ? sum : zeros_like(w->graph, carry);
}

static bool is_listed(const borders *b, uint32_t value)
{
    for (uint32_t i = 0; i < b->n; i++)
        if (b->list[i].node == 0 && b->list[i].value == value) return true;
    return false;
}

/* What is read as it is, from outside the scan. */
static void add_captures(weft_walk *w, uint32_t scan, uint32_t id, borders *b)
{
    const weft_node node = w->graph->nodes[id];
    if (node.op == &weft_op_scan_carry && node.scan == scan) return;
    for (int i = 0; i < node.n_in; i++) {
        const uint32_t value = node.in[i];
        if (value >= w->n_values || !w->depends[value] || is_within(w->graph, scan, value) ||
            is_listed(b, value))
            continue;
        add_border(w->graph, b, (border){.value = value, .begin = sum_like(w->graph, value)});
    }
}

/* What of the scan is read, through its body, by those from whom gradients come; NULL: no memory, which is the graph's error. */
static uint8_t *find_read(weft_walk *w, uint32_t scan)
{
    weft_graph *graph = w->graph;
    uint8_t *reaches = calloc(graph->n_tensors, sizeof *reaches);
    if (reaches == NULL) {
        weft_fail_memory(&graph->error, graph->n_tensors * sizeof *reaches);
        return NULL;
    }
    for (uint32_t id = w->first; id < w->end; id++) {
        const weft_node *node = &graph->nodes[id];
        const bool is_of_it = (node->op == &weft_op_scan_last || node->op == &weft_op_scan_stack) &&
                              weft_scan_of(node)->scan == scan;
        if (is_of_it && w->gradient[node->out] != 0)
            reaches[node->in[0]] |= node->op == &weft_op_scan_last ? WEFT_IS_LEFT : WEFT_IS_READ;
    }
    weft_reach_back(graph, graph->tensors[graph->scans[scan].trip].node, w->end, reaches);
    return reaches;
}

/* What is carried is gone through where somebody reads it, and what it begins with where the first trip does. */
static void add_carry(weft_walk *w, uint32_t id, uint8_t reaches, borders *b)
{
    const weft_node node = w->graph->nodes[id];
    if (reaches != 0 && w->depends[node.out])
        add_border(w->graph, b,
                   (border){.node = id,
                            .value = reaches & WEFT_IS_READ ? node.in[0] : 0,
                            .begin = gradient_of_last(w, node.out)});
}

static void find_borders(weft_walk *w, uint32_t scan, const uint8_t *reaches, borders *b)
{
    weft_graph *graph = w->graph;
    for (uint32_t id = w->first; id < w->end && graph->error.status == WEFT_OK; id++) {
        const weft_node node = graph->nodes[id];
        const bool is_of_it = node.op == &weft_op_scan_stack || node.op == &weft_op_scan_each ||
                                      node.op == &weft_op_scan_carry
                                  ? weft_scan_of(&node)->scan == scan
                                  : false;
        if (node.op == &weft_op_scan_stack && is_of_it && w->gradient[node.out] != 0)
            add_border(graph, b, (border){.node = id, .value = w->gradient[node.out]});
        else if (node.op == &weft_op_scan_carry && is_of_it)
            add_carry(w, id, reaches[node.out], b);
        else if (node.op == &weft_op_scan_each && is_of_it && w->depends[node.out])
            add_border(graph, b, (border){.node = id, .value = node.in[0]});
        else if (weft_scan_holds(graph, scan, node.scan))
            add_captures(w, scan, id, b);
    }
}

/* Whether anything flows into the scan at all. */
static bool is_reached(const weft_walk *w, uint32_t scan)
{
    for (uint32_t id = w->first; id < w->end; id++) {
        const weft_node *node = &w->graph->nodes[id];
        if ((node->op == &weft_op_scan_last || node->op == &weft_op_scan_stack) &&
            weft_scan_of(node)->scan == scan && w->gradient[node->out] != 0)
            return true;
    }
    return false;
}

/* ---- the mirroring scan -------------------------------------------------------------------------- */

static weft_dim dim_of(const weft_node *node)
{
    const weft_scan_attributes *attributes = weft_scan_of(node);
    return (weft_dim){attributes->dim.dim, attributes->dim.size};
}

/* What flows in: into what is carried from the trip that comes after, into what is stacked from behind the scan. */
static void seed(weft_walk *inner, borders *b)
{
    weft_graph *graph = inner->graph;
    for (uint32_t i = 0; i < b->n && graph->error.status == WEFT_OK; i++) {
        border *one = &b->list[i];
        const weft_node node = graph->nodes[one->node];
        if (one->node == 0) continue;
        if (node.op == &weft_op_scan_carry) {
            one->inner = weft_scan_carry(one->begin);
            weft_contribute(inner, weft_scan_next_of(graph, node.out), one->inner, graph->n_nodes);
        } else if (node.op == &weft_op_scan_stack) {
            weft_contribute(inner, node.in[0],
                            weft_scan_each_of((weft_value){graph, one->value}, inner->mirror,
                                              dim_of(&node), !weft_scan_of(&node)->is_reversed),
                            graph->n_nodes);
        }
    }
}

/* What goes on to the trip before, and what is summed over the trips. */
static void carry_on(weft_walk *inner, borders *b)
{
    weft_graph *graph = inner->graph;
    for (uint32_t i = 0; i < b->n && graph->error.status == WEFT_OK; i++) {
        border *one = &b->list[i];
        const weft_node node = graph->nodes[one->node];
        if (one->node == 0) {
            const uint32_t part = inner->gradient[one->value];
            if (part == 0) continue;
            one->inner = weft_scan_carry(one->begin);
            weft_scan_next(one->inner, weft_add(one->inner, weft_wide((weft_value){graph, part})));
        } else if (node.op == &weft_op_scan_carry) {
            const uint32_t part = inner->gradient[node.out];
            weft_scan_next(one->inner,
                           part != 0 ? (weft_value){graph, part} : zeros_like(graph, node.out));
        } else if (node.op == &weft_op_scan_each && inner->gradient[node.out] != 0) {
            one->inner = (weft_value){graph, inner->gradient[node.out]};
            if (weft_node_of(graph, one->inner.id)->scan != inner->mirror)
                one->inner = weft_same(one->inner);
        }
    }
}

/* What comes out, to values around the scan. */
static void hand_out(weft_walk *w, uint32_t mirror, const borders *b)
{
    weft_graph *graph = w->graph;
    for (uint32_t i = 0; i < b->n && graph->error.status == WEFT_OK; i++) {
        const border *one = &b->list[i];
        const weft_node node = graph->nodes[one->node];
        if (one->inner.id == 0 || !w->depends[one->value]) continue;
        if (one->node == 0 || node.op == &weft_op_scan_carry)
            weft_contribute(
                w, one->value,
                weft_cast(weft_scan_last(one->inner), graph->tensors[one->value].type.dtype),
                graph->n_nodes);
        else if (node.op == &weft_op_scan_each)
            weft_contribute(w, one->value,
                            weft_scan_stack_of(one->inner, mirror, dim_of(&node),
                                               !weft_scan_of(&node)->is_reversed),
                            graph->n_nodes);
    }
}

/* Trips that were not made are not gone back through. */
static void guard_alike(weft_walk *inner)
{
    weft_graph *graph = inner->graph;
    const uint32_t guard = weft_scan_guard_of(graph, inner->scan);
    if (guard != 0) weft_scan_guard(weft_walk_sees(inner, graph->nodes[guard].in[0]), false);
}

static void go_through(weft_walk *w, uint32_t scan, borders *b)
{
    weft_graph *graph = w->graph;
    weft_walk inner = *w;
    inner.gradient = calloc(w->n_values, sizeof *inner.gradient);
    inner.fresh = calloc(w->n_values, sizeof *inner.fresh);
    if (inner.gradient == NULL || inner.fresh == NULL) {
        free(inner.gradient);
        free(inner.fresh);
        weft_fail_memory(&graph->error, w->n_values * sizeof *inner.gradient);
        return;
    }
    const weft_value trip = weft_scan_begin(graph, graph->scans[scan].trips);
    if (trip.id != 0) {
        inner.scan = scan;
        inner.mirror = graph->scan;
        graph->scans[inner.mirror].mirrors = scan;
        guard_alike(&inner);
        seed(&inner, b);
        weft_walk_over(&inner);
        carry_on(&inner, b);
        weft_scan_end(trip);
        hand_out(w, inner.mirror, b);
    }
    free(inner.gradient);
    free(inner.fresh);
}

/* From the body of a scan no gradient leads back through one that has ended. */
static void refuse_other_scan(weft_walk *w, uint32_t scan)
{
    weft_graph *graph = w->graph;
    char origin[160];
    weft_origin_print(weft_node_of(graph, graph->scans[scan].trip), origin, sizeof origin);
    if (w->is_of_rows)
        weft_graph_fail(graph,
                        "jacobian: the value is made through the scan of %s, and rows do not lead "
                        "back through one; take weft_gradients_seeded for each element, with a "
                        "seed that is 1 there and 0 elsewhere",
                        origin);
    else
        weft_graph_fail(graph,
                        "gradients: they are taken in the body of a scan, and lead through that of "
                        "%s, which ended before this one began; take them outside, where that is",
                        origin);
}

void weft_back_through_scan(weft_walk *w, uint32_t scan)
{
    weft_graph *graph = w->graph;
    if (!is_reached(w, scan)) return;
    if (w->mirror == 0 && graph->scans[scan].parent != graph->scan) {
        refuse_other_scan(w, scan);
        return;
    }
    const uint32_t outer = graph->again, part = w->visits ? weft_part_of_scan(graph, scan) : 0;
    if (part != 0) graph->again = weft_part_again(w, part);
    weft_residuals *own = NULL;
    if (w->residuals == NULL) w->residuals = own = take_residuals(graph, scan);
    borders b = {0};
    if (w->residuals != NULL) {
        uint32_t *kept = see_again(w, part, scan);
        see_from_around(w, scan);
        uint8_t *reaches = find_read(w, scan);
        if (reaches != NULL) find_borders(w, scan, reaches, &b);
        free(reaches);
        if (graph->error.status == WEFT_OK) go_through(w, scan, &b);
        see_as_before(w, kept);
    }
    free(b.list);
    graph->again = outer;
    if (own != NULL) {
        give_residuals(&own);
        w->residuals = NULL;
    }
}
