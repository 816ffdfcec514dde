/* average.c: averages of weights, kept beside them: running means (EMA), or all alike from some update on (SWA).
 *
 * An average is a slot of its variable, so it is stored, saved and restored as the optimizer's are.
 * source  Polyak and Juditsky 1992; Izmailov et al. 2018, "Averaging weights leads to wider optima and better generalization"
 */
#include "update.h"

#include "weft/ops.h"

static const char slot_name[] = "average";

static weft_value number(weft_graph *graph, double x)
{
    return weft_constant(graph, WEFT_F64, WEFT_SCALAR, x);
}

/* How much the weights after this update count, f64: 1 until from + every; then 1/n, or 1 - decay if that is more, where they
 * are number n, and nothing between.
 */
static weft_value weight_of(weft_graph *graph, const weft_average_options *o)
{
    const double every = o->every > 0 ? (double)o->every : 1.0;
    weft_value gone = weft_shift(weft_step_number(graph), -(double)o->from);
    weft_value n = weft_floor(weft_scale(gone, 1.0 / every));
    weft_value one = number(graph, 1.0);
    weft_value weight = weft_div(one, weft_maximum(n, one));
    if (o->decay > 0.0) weight = weft_maximum(weight, number(graph, 1.0 - o->decay));
    weft_value is_counted = weft_equal(weft_mul(n, number(graph, every)), gone);
    weft_value is_first = weft_less(gone, number(graph, every));
    weight = weft_where(is_counted, weight, number(graph, 0.0));
    return weft_where(is_first, one, weight);
}

/* average = average (1 - weight) + new weight: exactly the new ones where the weight is 1. */
static weft_value keep(weft_value variable, weft_value fresh, weft_value weight)
{
    weft_graph *graph = variable.graph;
    const weft_dtype dtype = weft_dtype_of(variable);
    weft_value slot = weft_slot(variable, slot_name, weft_constant_of(0.0));
    weft_value rest = weft_cast(weft_sub(number(graph, 1.0), weight), dtype);
    graph->place_as = variable.id;
    weft_value part = weft_mul(fresh, weft_cast(weight, dtype));
    weft_value mean = weft_add(weft_mul(slot, rest), part);
    graph->place_as = 0;
    return weft_assign(slot, mean);
}

/* Variables proper: no slots, nor what the loss scale keeps. */
static bool is_weight(const weft_graph *graph, uint32_t variable)
{
    const weft_loss_scaling *l = &graph->loss_scale;
    if (weft_owner_of(graph, variable) != 0) return false;
    return variable != l->scale && variable != l->good && variable != l->updates;
}

/* Is it one that a group before has led to? `weight` was made before all of these. */
static bool is_kept(weft_value variable, weft_value weight)
{
    const weft_node *slot = weft_slot_called(variable, slot_name);
    return slot != NULL && slot->out > weight.id;
}

/* Of all that `token` assigns, through groups. Returns a token of it and the averages. */
static weft_value keep_all(weft_value token, weft_value weight, weft_value all)
{
    weft_graph *graph = token.graph;
    if (weft_graph_status(graph) != WEFT_OK) return all;
    const weft_node node = *weft_node_of(graph, token.id); /* nodes move while others are made */
    if (node.op == &weft_op_assign && is_weight(graph, node.in[0])) {
        const weft_value variable = {graph, node.in[0]}, fresh = {graph, node.in[1]};
        if (is_kept(variable, weight)) return all;
        return weft_group(graph, WEFT_VALUES(all, keep(variable, fresh, weight)));
    }
    for (int i = 0; node.op == &weft_op_group && i < node.n_in; i++)
        all = keep_all((weft_value){graph, node.in[i]}, weight, all);
    return all;
}

static bool is_good(weft_graph *graph, const weft_average_options *o)
{
    if (!(o->decay >= 0.0 && o->decay < 1.0))
        weft_graph_fail(graph, "average: decay is %g; it is at least 0 and below 1", o->decay);
    else if (o->from < 0 || o->every < 0)
        weft_graph_fail(graph, "average: from update %lld, every %lld; neither is negative",
                        (long long)o->from, (long long)o->every);
    return weft_graph_status(graph) == WEFT_OK;
}

weft_value weft_average(weft_value update, const weft_average_options *options)
{
    weft_graph *graph = update.graph;
    const weft_average_options o = options != NULL ? *options : (weft_average_options){0};
    if (!weft_graph_takes(graph, "average", "update", (weft_values){&update, 1}) ||
        !is_good(graph, &o))
        return weft_no_value(graph);
    const weft_graph_point begin = weft_graph_here(graph);
    const weft_phase phase = graph->phase;
    graph->phase = WEFT_UPDATE;
    graph->assign_if = graph->loss_scale.is_finite;
    const weft_value all = keep_all(update, weight_of(graph, &o), update);
    graph->assign_if = graph->place_as = 0;
    graph->phase = phase;
    if (all.id == update.id && weft_graph_status(graph) == WEFT_OK)
        weft_graph_fail(graph, "average: what it got updates no variable; pass what an optimizer "
                               "returned");
    if (weft_graph_status(graph) == WEFT_OK) return all;
    weft_graph_rewind(graph, begin);
    return weft_no_value(graph);
}

weft_value weft_averaged(weft_value variable)
{
    if (!weft_is_value(variable)) return weft_no_value(variable.graph);
    if (weft_node_of(variable.graph, variable.id)->op != &weft_op_variable)
        return weft_graph_fail(variable.graph, "averaged: this is no variable; pass what "
                                               "weft_variable returned");
    const weft_node *slot = weft_slot_called(variable, slot_name);
    return slot == NULL ? weft_no_value(variable.graph)
                        : weft_hand_back((weft_value){variable.graph, slot->out});
}

/* ---- evaluation ------------------------------------------------------------------------------ */

weft_value weft_average_swap(weft_graph *graph)
{
    weft_value all = weft_no_value(graph);
    if (graph == NULL || weft_graph_status(graph) != WEFT_OK) return all;
    const weft_graph_point begin = weft_graph_here(graph);
    const weft_phase phase = graph->phase;
    const uint32_t n = graph->n_nodes;
    graph->phase = WEFT_UPDATE;
    for (uint32_t id = 1; id < n && weft_graph_status(graph) == WEFT_OK; id++) {
        if (graph->nodes[id].op != &weft_op_variable) continue;
        const weft_value variable = {graph, graph->nodes[id].out};
        const weft_value slot = weft_averaged(variable);
        if (slot.id == 0) continue;
        const weft_value pair[] = {weft_assign(variable, slot), weft_assign(slot, variable)};
        const weft_value both = weft_group(graph, (weft_values){pair, 2});
        all = all.id == 0 ? both : weft_group(graph, WEFT_VALUES(all, both));
    }
    graph->phase = phase;
    if (all.id == 0)
        weft_graph_fail(graph,
                        "average_swap: the graph has no averages; make them with weft_average");
    if (weft_graph_status(graph) == WEFT_OK) return all;
    weft_graph_rewind(graph, begin);
    return weft_no_value(graph);
}
