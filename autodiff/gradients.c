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

#include "ir.h"
#include "weft/autodiff.h"
#include "weft/ops.h"

/* One walk: over nodes [first, end), from seeded values back to others. */
typedef struct walk {
    weft_graph *graph;
    uint32_t first, end; /* nodes                                          */
    uint32_t n_values;   /* when the walk began: later values are gradients */
    bool *depends;       /* [n_values] on a value that is asked for         */
    uint32_t *gradient;  /* [n_values] value id so far; 0: none             */
} walk;

static void walk_over(walk *w);

/* ---- which nodes matter ---------------------------------------------------------------------- */

/* Whether gradients can flow through an op at all. */
static bool flows(const weft_op *op)
{
    return op->gradient != NULL || op->expand != NULL;
}

static bool is_float(const weft_graph *graph, uint32_t value)
{
    return graph->tensors[value].type.dtype != WEFT_I32;
}

static bool any_depends(const walk *w, const weft_node *node)
{
    for (int i = 0; i < node->n_in; i++)
        if (w->depends[node->in[i]]) return true;
    return false;
}

static void mark_dependence(walk *w, const weft_value *with_respect_to, int n)
{
    for (int i = 0; i < n; i++)
        w->depends[with_respect_to[i].id] = is_float(w->graph, with_respect_to[i].id);
    for (uint32_t id = w->first; id < w->end; id++) {
        const weft_node *node = &w->graph->nodes[id];
        if (!flows(node->op) || !any_depends(w, node)) continue;
        for (uint32_t out = node->out; out < node->out + node->n_out; out++)
            if (is_float(w->graph, out)) w->depends[out] = true;
    }
}

static bool walk_open(walk *w, weft_graph *graph, uint32_t first, const weft_value *with_respect_to,
                      int n)
{
    *w =
        (walk){.graph = graph, .first = first, .end = graph->n_nodes, .n_values = graph->n_tensors};
    w->depends = calloc(w->n_values, sizeof *w->depends);
    w->gradient = calloc(w->n_values, sizeof *w->gradient);
    if (w->depends == NULL || w->gradient == NULL) {
        if (graph->error.status == WEFT_OK)
            weft_fail_memory(&graph->error, w->n_values * sizeof *w->gradient);
        return false;
    }
    mark_dependence(w, with_respect_to, n);
    return true;
}

static void walk_close(walk *w)
{
    free(w->depends);
    free(w->gradient);
}

/* ---- one node -------------------------------------------------------------------------------- */

/* Add a contribution to a value's gradient, in the value's order of dims. */
static void contribute(walk *w, uint32_t value, weft_value part)
{
    if (part.id == 0 || w->graph->error.status != WEFT_OK) return;
    part = weft_sum_to(part, (weft_value){w->graph, value});
    const uint32_t so_far = w->gradient[value];
    if (so_far != 0) part = weft_add((weft_value){w->graph, so_far}, part);
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
    walk inner;
    if (walk_open(&inner, graph, first, asked, n_asked)) {
        for (int i = 0; i < vjp->site->n_out; i++)
            if (vjp->dout[i].id != 0) contribute(&inner, vjp->out[i].id, vjp->dout[i]);
        walk_over(&inner);
        for (int i = 0; i < n_asked; i++) {
            bool counted = false; /* one value may be two operands: its gradient holds both parts */
            for (int k = 0; k < i; k++)
                counted = counted || asked[k].id == asked[i].id;
            if (!counted) vjp->din[operand[i]] = (weft_value){graph, inner.gradient[asked[i].id]};
        }
    }
    walk_close(&inner);
}

/* The nodes built from `first` on stand where the forward node stands. */
static void inherit_place(weft_graph *graph, uint32_t first, const char *file, int line)
{
    for (uint32_t id = first; id < graph->n_nodes; id++) {
        if (graph->nodes[id].file != NULL) continue;
        graph->nodes[id].file = file;
        graph->nodes[id].line = line;
    }
}

static void back_through(walk *w, weft_node node)
{
    weft_site site;
    weft_vjp vjp = {.site = &site, .graph = w->graph};
    const uint32_t first = w->graph->n_nodes;
    weft_site_of(w->graph, &node, &site);
    for (int i = 0; i < node.n_in; i++) {
        vjp.in[i] = (weft_value){w->graph, node.in[i]};
        vjp.wanted[i] = w->depends[node.in[i]];
    }
    for (int i = 0; i < node.n_out; i++) {
        vjp.out[i] = (weft_value){w->graph, node.out + (uint32_t)i};
        vjp.dout[i] = (weft_value){w->graph, w->gradient[node.out + (uint32_t)i]};
    }
    if (node.op->gradient != NULL)
        node.op->gradient(&vjp);
    else
        through_expansion(node.op, &vjp);
    for (int i = 0; i < node.n_in; i++)
        if (vjp.wanted[i]) contribute(w, node.in[i], vjp.din[i]);
    inherit_place(w->graph, first, node.file, node.line);
}

static void walk_over(walk *w)
{
    for (uint32_t id = w->end; id-- > w->first && w->graph->error.status == WEFT_OK;) {
        const weft_node node = w->graph->nodes[id]; /* a copy: building moves the array */
        if (!flows(node.op) || !any_depends(w, &node)) continue;
        bool has_gradient = false;
        for (uint32_t out = node.out; out < node.out + node.n_out; out++)
            has_gradient = has_gradient || w->gradient[out] != 0;
        if (has_gradient) back_through(w, node);
    }
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* A value as a sentence names it. */
static const char *describe(weft_value value, char text[240])
{
    const weft_tensor *tensor = &value.graph->tensors[value.id];
    char place[160];
    if (tensor->name != NULL) {
        snprintf(text, 240, "%s", tensor->name);
    } else {
        weft_node_print_place(weft_node_of(value.graph, value.id), place, sizeof place);
        snprintf(text, 240, "the result of %s", place);
    }
    return text;
}

/* Record an error at once: there is no macro around weft_gradients that could say where. */
static bool refuse(weft_graph *graph, const char *what, weft_value of, weft_value by)
{
    char text[2][240];
    weft_graph_fail(graph, "gradients: %s %s %s", describe(of, text[0]), what,
                    describe(by, text[1]));
    graph->error_is_placed = true;
    return false;
}

static bool check(weft_value of, weft_values with_respect_to)
{
    weft_graph *graph = of.graph;
    if (weft_graph_status(graph) != WEFT_OK) return false;
    bool valid = of.id != 0 && of.id < graph->n_tensors;
    for (int i = 0; i < with_respect_to.n_values; i++) {
        const weft_value value = with_respect_to.values[i];
        valid = valid && value.graph == graph && value.id != 0 && value.id < graph->n_tensors;
    }
    if (!valid) {
        weft_graph_fail(graph,
                        "gradients: an argument is not a value of this graph; pass what builders "
                        "returned");
        graph->error_is_placed = true;
        return false;
    }
    if (!is_float(graph, of.id))
        return refuse(graph, "is i32; only float values have gradients, not even by", of,
                      with_respect_to.n_values > 0 ? with_respect_to.values[0] : of);
    return true;
}

static void build(walk *w, weft_value of, weft_values with_respect_to, weft_value *gradients,
                  int flags)
{
    weft_graph *graph = of.graph;
    const weft_node home = *weft_node_of(graph, of.id);
    const uint32_t first = graph->n_nodes;
    weft_value seed = weft_constant(graph, weft_dtype_of(of), *weft_shape_of(of), 1.0);
    inherit_place(graph, first, home.file, home.line);
    contribute(w, of.id, seed);
    walk_over(w);
    for (int i = 0; i < with_respect_to.n_values; i++) {
        const weft_value value = with_respect_to.values[i];
        const uint32_t id = w->gradient[value.id];
        if (id == 0 && !(flags & WEFT_ZEROS_ALLOWED))
            refuse(graph, "does not depend, through floats, on", of, value);
        gradients[i] = id != 0
                           ? (weft_value){graph, id}
                           : weft_constant(graph, weft_dtype_of(value), *weft_shape_of(value), 0.0);
    }
    inherit_place(graph, first, home.file, home.line);
}

void weft_gradients(weft_value of, weft_values with_respect_to, weft_value *gradients, int flags)
{
    for (int i = 0; i < with_respect_to.n_values; i++)
        gradients[i] = weft_no_value(of.graph);
    if (!check(of, with_respect_to)) return;
    weft_graph *graph = of.graph;
    const weft_phase phase = graph->phase;
    graph->phase = WEFT_BACKWARD;
    walk w;
    if (walk_open(&w, graph, 1, with_respect_to.values, with_respect_to.n_values))
        build(&w, of, with_respect_to, gradients, flags);
    walk_close(&w);
    graph->phase = phase;
    if (graph->error.status == WEFT_OK) return;
    graph->error_is_placed = true; /* the next builder's place is not where it happened */
    for (int i = 0; i < with_respect_to.n_values; i++)
        gradients[i] = weft_no_value(graph);
}

int weft_trainable(weft_value of, weft_value *variables, int room)
{
    weft_graph *graph = of.graph;
    if (weft_graph_status(graph) != WEFT_OK || of.id == 0) return 0;
    bool *reaches = calloc(graph->n_tensors, sizeof *reaches); /* of depends on it */
    if (reaches == NULL) {
        weft_fail_memory(&graph->error, graph->n_tensors);
        return 0;
    }
    reaches[of.id] = true;
    for (uint32_t id = graph->n_nodes; id-- > 1;) {
        const weft_node *node = &graph->nodes[id];
        bool used = false;
        for (uint32_t out = node->out; out < node->out + node->n_out; out++)
            used = used || (reaches[out] && is_float(graph, out));
        for (int i = 0; used && flows(node->op) && i < node->n_in; i++)
            reaches[node->in[i]] = true;
    }
    int n = 0;
    for (uint32_t id = 1; id < graph->n_nodes; id++) {
        const weft_node *node = &graph->nodes[id];
        if (node->op != &weft_op_variable || !reaches[node->out] || !is_float(graph, node->out))
            continue;
        if (((const weft_variable_attributes *)node->attributes)->owner != 0) continue;
        if (n < room) variables[n] = (weft_value){graph, node->out};
        n++;
    }
    free(reaches);
    return n;
}
