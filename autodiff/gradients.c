/* gradients.c: reverse mode on the logical graph: walk the nodes backwards, ask each op for the
 * gradients of its operands, add up what meets at a value.
 *
 * Node ids are in order of building, so descending ids are a reverse topological order. Only nodes
 * on a way from `with_respect_to` to `of` are visited. An op without a gradient but with an
 * expansion is differentiated through the expansion: its nodes are appended, and the same walk runs
 * over them alone.
 */
#include <stdlib.h>
#include <string.h>

#include "walk.h"
#include "weft/autodiff.h"
#include "weft/ops.h"

/* ---- which nodes matter ---------------------------------------------------------------------- */

/* Whether gradients can flow through an op at all, by itself or with the scan that it belongs to. */
static bool flows(const weft_op *op)
{
    return weft_flows(op) || op == &weft_op_scan_carry || op == &weft_op_scan_each ||
           op == &weft_op_scan_last || op == &weft_op_scan_stack;
}

static bool is_float(const weft_graph *graph, uint32_t value)
{
    return weft_dtype_is_float(graph->tensors[value].type.dtype);
}

static bool any_depends(const weft_walk *w, const weft_node *node)
{
    for (int i = 0; i < node->n_in; i++)
        if (w->depends[node->in[i]]) return true;
    return false;
}

/* True: what a carried value is in the next trip depends, which had not been seen before. */
static bool mark_once(weft_walk *w)
{
    bool is_more = false;
    for (uint32_t id = w->first; id < w->end; id++) {
        const weft_node *node = &w->graph->nodes[id];
        if (node->op == &weft_op_scan_next && w->depends[node->in[1]] && !w->depends[node->in[0]])
            w->depends[node->in[0]] = is_more = true;
        if (!flows(node->op) || !any_depends(w, node)) continue;
        for (uint32_t out = node->out; out < node->out + node->n_out; out++)
            if (is_float(w->graph, out)) w->depends[out] = true;
    }
    return is_more;
}

static void mark_dependence(weft_walk *w, const weft_value *with_respect_to, int n)
{
    for (int i = 0; i < n; i++)
        w->depends[with_respect_to[i].id] = is_float(w->graph, with_respect_to[i].id);
    while (mark_once(w)) /* what is carried depends on what it is in the next trip */
        continue;
}

/* The same from what is read to what that reads. True: a value is read in the next trip, which had not been seen before. */
static bool reach_once(const weft_graph *graph, uint32_t first, uint32_t end, uint8_t *reaches)
{
    bool is_more = false;
    for (uint32_t id = end; id-- > first;) {
        const weft_node *node = &graph->nodes[id];
        bool used = false;
        for (uint32_t out = node->out; out < node->out + node->n_out; out++)
            used = used || ((reaches[out] & WEFT_IS_READ) && is_float(graph, out));
        if (node->op == &weft_op_scan_last) {
            if (used) reaches[node->in[0]] |= WEFT_IS_LEFT;
            continue;
        }
        if (node->op == &weft_op_scan_carry && reaches[node->out] == WEFT_IS_LEFT &&
            weft_scan_guard_of(graph, node->scan) !=
                0) /* a trip that is not made leaves it as it was */
            reaches[node->out] |= WEFT_IS_READ, used = is_float(graph, node->out);
        for (int i = 0; used && flows(node->op) && i < node->n_in; i++)
            reaches[node->in[i]] |= WEFT_IS_READ;
        if (node->op == &weft_op_scan_next && reaches[node->in[0]] != 0 &&
            !(reaches[node->in[1]] & WEFT_IS_READ)) {
            reaches[node->in[1]] |= WEFT_IS_READ;
            is_more = true;
        }
    }
    return is_more;
}

void weft_reach_back(const weft_graph *graph, uint32_t first, uint32_t end, uint8_t *reaches)
{
    while (reach_once(graph, first, end,
                      reaches)) /* what is read in a trip is made in the one before */
        continue;
}

static bool walk_open(weft_walk *w, weft_graph *graph, uint32_t first,
                      const weft_value *with_respect_to, int n)
{
    *w = (weft_walk){.graph = graph,
                     .first = first,
                     .end = graph->n_nodes,
                     .n_values = graph->n_tensors,
                     .scan = graph->scan};
    w->depends = calloc(w->n_values, sizeof *w->depends);
    w->gradient = calloc(w->n_values, sizeof *w->gradient);
    w->fresh = calloc(w->n_values, sizeof *w->fresh);
    if (w->depends == NULL || w->gradient == NULL || w->fresh == NULL) {
        if (graph->error.status == WEFT_OK)
            weft_fail_memory(&graph->error, w->n_values * sizeof *w->gradient);
        return false;
    }
    mark_dependence(w, with_respect_to, n);
    return true;
}

static void walk_close(weft_walk *w)
{
    weft_visits_close(w);
    free(w->depends);
    free(w->gradient);
    free(w->fresh);
}

/* ---- one node -------------------------------------------------------------------------------- */

/* A gradient in the dtype that its own is computed in: as it was before it was rounded, if a node from `first` on did that,
 * else widened. What is older was rounded where it ended, for others too. */
static weft_value unrounded(weft_value x, uint32_t first)
{
    const weft_dtype computes = weft_dtype_computes(weft_dtype_of(x));
    const uint32_t id = x.graph->tensors[x.id].node;
    const weft_node *node = &x.graph->nodes[id];
    if (id < first || node->op != &weft_op_cast) return weft_cast(x, computes);
    const weft_value before = {x.graph, node->in[0]};
    return weft_dtype_of(before) == computes ? before : weft_cast(x, computes);
}

/* Add a contribution to a value's gradient, in the value's order of dims. What meets is added in the dtype that it is
 * computed in and rounded once: so addends that are partial sums can stay so, and the sum alone is finished. Nodes from
 * `first` on were made for this contribution; those from fresh[value] on, for what has met so far. */
void weft_contribute(weft_walk *w, uint32_t value, weft_value part, uint32_t first)
{
    weft_graph *graph = w->graph;
    if (part.id == 0 || graph->error.status != WEFT_OK) return;
    part = weft_sum_to(part, (weft_value){graph, value});
    const weft_value so_far = {graph, w->gradient[value]};
    if (so_far.id == 0) {
        w->fresh[value] = first;
    } else if (graph->error.status == WEFT_OK) {
        const weft_value sum = weft_add(unrounded(so_far, w->fresh[value]), unrounded(part, first));
        part = weft_cast(sum, weft_dtype_of(part));
    }
    w->gradient[value] = part.id;
}

/* An op without a gradient of its own: build what it equals and walk through that. */
static void through_expansion(const weft_op *op, weft_vjp *vjp)
{
    weft_graph *graph = vjp->graph;
    const uint32_t first = graph->n_nodes;
    op->expand(vjp);
    if (graph->error.status != WEFT_OK) return;
    weft_value asked[WEFT_MAX_IN];
    int operand[WEFT_MAX_IN], n_asked = 0;
    for (int i = 0; i < vjp->site->n_in; i++)
        if (vjp->wanted[i]) operand[n_asked] = i, asked[n_asked++] = vjp->in[i];
    weft_walk inner;
    if (walk_open(&inner, graph, first, asked, n_asked)) {
        for (int i = 0; i < vjp->site->n_out; i++)
            if (vjp->dout[i].id != 0)
                weft_contribute(&inner, vjp->out[i].id, vjp->dout[i], graph->n_nodes);
        weft_walk_over(&inner);
        for (int i = 0; i < n_asked; i++) {
            bool counted = false; /* one value may be two operands: its gradient holds both parts */
            for (int k = 0; k < i; k++)
                counted = counted || asked[k].id == asked[i].id;
            if (!counted) vjp->din[operand[i]] = (weft_value){graph, inner.gradient[asked[i].id]};
        }
    }
    walk_close(&inner);
}

/* The nodes built from `first` on come from where the forward node does. */
static void inherit_origin(weft_graph *graph, uint32_t first, const weft_origin *origin)
{
    for (uint32_t id = first; id < graph->n_nodes; id++)
        if (graph->nodes[id].origin.file == NULL) graph->nodes[id].origin = *origin;
}

/* "mul: x is ..." becomes "gradients: of gelu at mlp.c:41: x is ...". */
static void name_forward_node(weft_graph *graph, const weft_node *node)
{
    char forward[160], rest[sizeof graph->error.message];
    const char *colon = strstr(graph->error.message, ": ");
    weft_origin_print(node, forward, sizeof forward);
    snprintf(rest, sizeof rest, "%s", colon == NULL ? graph->error.message : colon + 2);
    snprintf(graph->error.message, sizeof graph->error.message, "gradients: of %s: %s", forward,
             rest);
}

static void back_through(weft_walk *w, uint32_t id)
{
    const weft_node node = w->graph->nodes[id]; /* a copy: building moves the array */
    weft_site site;
    weft_vjp vjp = {.site = &site, .graph = w->graph};
    const uint32_t part = w->visits == NULL ? 0 : weft_part_of(w->graph, id);
    const uint32_t outer = w->graph->again;
    if (part != 0) w->graph->again = weft_part_again(w, part);
    const uint32_t first = w->graph->n_nodes;
    weft_site_of(w->graph, &node, &site);
    for (int i = 0; i < node.n_in; i++) {
        vjp.in[i] = weft_part_sees(w, part, node.in[i]);
        vjp.wanted[i] = w->depends[node.in[i]];
    }
    for (int i = 0; i < node.n_out; i++) {
        vjp.out[i] = weft_part_sees(w, part, node.out + (uint32_t)i);
        vjp.dout[i] = (weft_value){w->graph, w->gradient[node.out + (uint32_t)i]};
    }
    w->graph->nodes[id].has_gradient = true;
    if (node.op->gradient != NULL)
        node.op->gradient(&vjp);
    else
        through_expansion(node.op, &vjp);
    for (int i = 0; i < node.n_in; i++)
        if (vjp.wanted[i]) weft_contribute(w, node.in[i], vjp.din[i], first);
    w->graph->again = outer;
    inherit_origin(w->graph, first, &node.origin);
    const bool is_inner = w->first > 1; /* of an expansion, which the program did not write */
    if (w->graph->error.status != WEFT_OK && !w->graph->error_has_origin && !is_inner)
        name_forward_node(w->graph, &node);
}

/* Whether a node is of the body that is gone through: of the scan that is mirrored, or of those that are open. */
static bool is_of(const weft_walk *w, uint32_t scan)
{
    return w->mirror != 0 ? scan == w->scan : weft_scan_holds(w->graph, scan, w->scan);
}

static bool has_gradient(const weft_walk *w, const weft_node *node)
{
    for (uint32_t out = node->out; out < node->out + node->n_out; out++)
        if (w->gradient[out] != 0) return true;
    return false;
}

void weft_walk_over(weft_walk *w)
{
    for (uint32_t id = w->end; id-- > w->first && w->graph->error.status == WEFT_OK;) {
        const weft_node *node = &w->graph->nodes[id];
        if (is_of(w, node->scan)) {
            if (weft_flows(node->op) && any_depends(w, node) && has_gradient(w, node))
                back_through(w, id);
        } else if (w->graph->scans[node->scan].trip == node->out &&
                   is_of(w, w->graph->scans[node->scan].parent)) {
            weft_back_through_scan(w, node->scan); /* all that reads it came after its beginning */
        }
    }
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* A value as a sentence names it. */
static const char *describe(weft_value value, char text[240])
{
    const weft_tensor *tensor = &value.graph->tensors[value.id];
    char origin[160];
    if (tensor->name != NULL) {
        snprintf(text, 240, "%s", tensor->name);
    } else {
        weft_origin_print(weft_node_of(value.graph, value.id), origin, sizeof origin);
        snprintf(text, 240, "the result of %s", origin);
    }
    return text;
}

static void refuse(weft_value value, const char *what)
{
    char text[240];
    weft_graph_fail(value.graph, "gradients: %s %s", describe(value, text), what);
}

static void refuse_independence(weft_value of, int n_of, weft_value by)
{
    char text[2][240];
    weft_graph_fail(of.graph, "gradients: %s%s not depend, through floats, on %s",
                    describe(of, text[0]), n_of > 1 ? " and the others do" : " does",
                    describe(by, text[1]));
}

static bool is_token(weft_value value)
{
    return weft_node_of(value.graph, value.id)->op->makes_token;
}

/* What gradients are asked of and by, and the seeds. */
typedef struct request {
    weft_values of, seeds, with_respect_to;
} request;

/* The graph that can carry an error: of the first value given; NULL: there is none. */
static weft_graph *graph_of(const request *r)
{
    const weft_values lists[] = {r->of, r->with_respect_to};
    for (int i = 0; i < 2; i++)
        if (lists[i].values != NULL && lists[i].n_values > 0) return lists[i].values[0].graph;
    return NULL;
}

static bool check_seed(weft_value of, weft_value seed)
{
    char a[200], b[200], text[240];
    if (weft_dtype_of(of) == weft_dtype_of(seed) &&
        weft_shape_same_dims(weft_shape_of(of), weft_shape_of(seed)))
        return true;
    weft_shape_print(weft_shape_of(of), a, sizeof a);
    weft_shape_print(weft_shape_of(seed), b, sizeof b);
    weft_graph_fail(of.graph,
                    "gradients: %s is %s%s and its seed is %s%s; a seed has the dims and the dtype "
                    "of its value",
                    describe(of, text), weft_dtype_name(weft_dtype_of(of)), a,
                    weft_dtype_name(weft_dtype_of(seed)), b);
    return false;
}

static bool check(weft_graph *graph, const request *r, const weft_value *gradients)
{
    const weft_values of = r->of, seeds = r->seeds;
    if (!weft_graph_takes(graph, "gradients", "of", of) ||
        !weft_graph_takes(graph, "gradients", "seeds", seeds) ||
        !weft_graph_takes(graph, "gradients", "with_respect_to", r->with_respect_to))
        return false;
    if (of.n_values == 0)
        weft_graph_fail(graph, "gradients: of has no values; pass at least one");
    else if (seeds.n_values != 0 && seeds.n_values != of.n_values)
        weft_graph_fail(graph,
                        "gradients: of has %d values and seeds has %d; give each its seed, or "
                        "none at all",
                        of.n_values, seeds.n_values);
    else if (gradients == NULL && r->with_respect_to.n_values > 0)
        weft_graph_fail(graph, "gradients: there is no room for %d gradients; pass an array",
                        r->with_respect_to.n_values);
    for (int i = 0; i < of.n_values && graph->error.status == WEFT_OK; i++) {
        if (is_token(of.values[i]))
            refuse(of.values[i], "names an update and has no elements; pass a float value");
        else if (!is_float(graph, of.values[i].id))
            refuse(of.values[i], "is i32; only float values have gradients");
        else if (seeds.n_values > 0)
            check_seed(of.values[i], seeds.values[i]);
    }
    if (graph->error.status == WEFT_OK) weft_part_is_closed(graph, "gradients", graph->scan);
    for (int i = 0; i < r->with_respect_to.n_values && graph->error.status == WEFT_OK; i++)
        if (is_token(r->with_respect_to.values[i]))
            refuse(r->with_respect_to.values[i], "names an update; nothing can depend on it");
    return graph->error.status == WEFT_OK;
}

/* What flows into `of` to begin with. */
static void plant_seed(weft_walk *w, weft_value of, const weft_value *seed)
{
    weft_graph *graph = w->graph;
    weft_contribute(w, of.id,
                    seed != NULL ? *seed
                                 : weft_constant(graph, weft_dtype_of(of), *weft_shape_of(of), 1.0),
                    graph->n_nodes);
}

static void build(weft_walk *w, const request *r, weft_value *gradients, int flags)
{
    weft_graph *graph = w->graph;
    for (int i = 0; i < r->of.n_values; i++)
        plant_seed(w, r->of.values[i], r->seeds.n_values > 0 ? &r->seeds.values[i] : NULL);
    weft_walk_over(w);
    for (int i = 0; i < r->with_respect_to.n_values && graph->error.status == WEFT_OK; i++) {
        const weft_value value = r->with_respect_to.values[i];
        const uint32_t id = w->gradient[value.id];
        if (id == 0 && !(flags & WEFT_ZEROS_ALLOWED))
            refuse_independence(r->of.values[0], r->of.n_values, value);
        gradients[i] = id != 0
                           ? (weft_value){graph, id}
                           : weft_constant(graph, weft_dtype_of(value), *weft_shape_of(value), 0.0);
        if (gradients[i].id < w->n_values) gradients[i] = weft_same(gradients[i]); /* a seed */
    }
}

static void void_all(weft_graph *graph, const request *r, weft_value *gradients)
{
    const int n = gradients == NULL ? 0 : r->with_respect_to.n_values;
    for (int i = 0; i < n && n <= WEFT_MOST_VALUES; i++)
        gradients[i] = weft_no_value(graph);
}

static weft_value take(const request *r, weft_value *gradients, int flags)
{
    weft_graph *graph = graph_of(r);
    void_all(graph, r, gradients);
    if (!check(graph, r, gradients)) return weft_no_value(graph);
    const weft_graph_point begin = weft_graph_here(graph);
    const weft_phase phase = graph->phase;
    graph->phase = WEFT_BACKWARD;
    weft_walk w;
    const bool is_open =
        walk_open(&w, graph, 1, r->with_respect_to.values, r->with_respect_to.n_values);
    w.is_of_rows = (flags & WEFT_OF_ROWS) != 0;
    if (is_open && weft_visits_open(&w)) build(&w, r, gradients, flags);
    walk_close(&w);
    graph->phase = phase;
    if (graph->error.status == WEFT_OK)
        return r->with_respect_to.n_values > 0 ? weft_hand_back(gradients[0])
                                               : weft_no_value(graph);
    weft_graph_rewind(graph, begin);
    void_all(graph, r, gradients);
    return weft_no_value(graph);
}

weft_value weft_gradients_seeded(weft_values of, weft_values seeds, weft_values with_respect_to,
                                 weft_value *gradients, int flags)
{
    const request r = {of, seeds, with_respect_to};
    return take(&r, gradients, flags);
}

weft_value weft_gradients(weft_value of, weft_values with_respect_to, weft_value *gradients,
                          int flags)
{
    const request r = {.of = {&of, 1}, .with_respect_to = with_respect_to};
    return take(&r, gradients, flags);
}

int weft_trainable(weft_value of, weft_value *variables, int room)
{
    weft_graph *graph = of.graph;
    if (!weft_graph_takes(graph, "trainable", "of", (weft_values){&of, 1})) return 0;
    uint8_t *reaches = calloc(graph->n_tensors, sizeof *reaches); /* whether of depends on it */
    if (reaches == NULL) {
        weft_fail_memory(&graph->error, graph->n_tensors);
        return 0;
    }
    reaches[of.id] = WEFT_IS_READ;
    weft_reach_back(graph, 1, graph->n_nodes, reaches);
    int n = 0;
    for (uint32_t id = 1; id < graph->n_nodes; id++) {
        const weft_node *node = &graph->nodes[id];
        if (node->op != &weft_op_variable || reaches[node->out] == 0 || !is_float(graph, node->out))
            continue;
        if (((const weft_variable_attributes *)node->attributes)->owner != 0) continue;
        if (variables != NULL && n < room) variables[n] = (weft_value){graph, node->out};
        n++;
    }
    free(reaches);
    return n;
}
