/* compose_scan: one of two bodies, as two scans of one trip at most; one of them makes it (scan_guard). */
#include "ir.h"
#include "weft/ops.h"
#include "weft/scan.h"

weft_value weft_cond_begin(weft_value condition)
{
    weft_graph *graph = condition.graph;
    if (!weft_graph_takes(graph, "cond_begin", "condition", (weft_values){&condition, 1}))
        return weft_no_value(graph);
    const weft_value trip = weft_scan_begin(graph, 1);
    return weft_scan_if(condition).id != 0 ? trip : weft_no_value(graph);
}

/* Of a body that is done where it is not 0; the invalid value: the scan is no such body. */
static weft_value condition_of(weft_graph *graph, uint32_t scan)
{
    const uint32_t guard =
        scan != 0 && graph->scans[scan].trips == 1 ? weft_scan_guard_of(graph, scan) : 0;
    if (guard == 0) return weft_no_value(graph);
    return (weft_value){graph, weft_node_of(graph, graph->nodes[guard].in[0])->in[0]};
}

weft_value weft_cond_else(weft_value begun)
{
    weft_graph *graph = begun.graph;
    if (!weft_graph_takes(graph, "cond_else", "begun", (weft_values){&begun, 1}))
        return weft_no_value(graph);
    const weft_value condition = condition_of(graph, weft_node_of(graph, begun.id)->scan);
    if (condition.id == 0)
        return weft_graph_fail(graph, "cond_else: no body of a condition begins with the value; "
                                      "pass what weft_cond_begin returned");
    if (weft_scan_end(begun).id == 0) return weft_no_value(graph);
    return weft_cond_begin(weft_logical_not(condition));
}

weft_value weft_cond_end(weft_value begun)
{
    return weft_scan_end(begun);
}

/* The ended body that a value is of; 0: it is of what is around. */
static uint32_t body_of(weft_value x)
{
    const uint32_t scan = weft_node_of(x.graph, x.id)->scan;
    return weft_scan_holds(x.graph, scan, x.graph->scan) ? 0 : scan;
}

/* A body's value as it is behind it: 0 where the body was not done. */
static weft_value behind(weft_value x)
{
    const uint32_t scan = body_of(x);
    if (scan == 0 || !weft_scan_is_outside(x.graph, "cond", scan)) return x;
    if (weft_shape_of(x)->n_dims == WEFT_MAX_DIMS)
        return weft_graph_fail(x.graph,
                               "cond: the values have %d dims; of a body that is done or not they "
                               "have %d at most. weft_reshape them to fewer in the body",
                               WEFT_MAX_DIMS, WEFT_MAX_DIMS - 1);
    const weft_dim once = {weft_graph_intern(x.graph, "~once"), 1};
    const weft_value stacked = weft_scan_stack_of(x, scan, once, false);
    if (stacked.id == 0) return stacked;
    return weft_reshape(stacked, weft_shape_without(weft_shape_of(stacked), once.name));
}

static weft_value refuse_types(weft_value a, weft_value b)
{
    char x[160], y[160];
    weft_shape_print(weft_shape_of(a), x, sizeof x);
    weft_shape_print(weft_shape_of(b), y, sizeof y);
    return weft_graph_fail(a.graph,
                           "cond: of the first body comes %s%s and of the other %s%s; both have "
                           "the same dims and dtype",
                           weft_dtype_name(weft_dtype_of(a)), x, weft_dtype_name(weft_dtype_of(b)),
                           y);
}

weft_value weft_cond(weft_value a, weft_value b)
{
    weft_graph *graph = a.graph;
    if (!weft_graph_takes(graph, "cond", "a", (weft_values){&a, 1}) ||
        !weft_graph_takes(graph, "cond", "b", (weft_values){&b, 1}))
        return weft_no_value(graph);
    const weft_value is_a = condition_of(graph, body_of(a)), is_b = condition_of(graph, body_of(b));
    if (is_a.id == 0 && is_b.id == 0)
        return weft_graph_fail(graph, "cond: neither value is of a condition's body that has "
                                      "ended; pass what was made behind weft_cond_begin, and "
                                      "behind weft_cond_else");
    const weft_node *other = is_b.id != 0 ? weft_node_of(graph, is_b.id) : NULL;
    if (is_a.id != 0 && other != NULL && (other->n_in == 0 || other->in[0] != is_a.id))
        return weft_graph_fail(graph, "cond: the values are of bodies of two conditions; pass one "
                                      "of the body behind weft_cond_begin, and one of that behind "
                                      "its weft_cond_else");
    if (weft_dtype_of(a) != weft_dtype_of(b) ||
        !weft_shape_same_dims(weft_shape_of(a), weft_shape_of(b)))
        return refuse_types(a, b);
    const weft_shape shape = *weft_shape_of(a);
    a = behind(a);
    b = weft_transpose(behind(b), shape);
    return is_a.id != 0 ? weft_where(is_a, a, b) : weft_where(is_b, b, a);
}
