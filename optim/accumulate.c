/* accumulate.c: gradients that outlive the run: added up in slots, run after run, until somebody uses and clears them.
 *
 * The slots are stored as all slots are, so under ZeRO a rank adds up its shard.
 */
#include <string.h>

#include "update.h"
#include "weft/ops.h"

static void void_all(weft_graph *graph, weft_value *kept, int n)
{
    for (int i = 0; kept != NULL && i < n && n <= WEFT_MOST_VALUES; i++)
        kept[i] = weft_no_value(graph);
}

/* slot += gradient, where the variable is stored. */
static weft_value add_to_slot(const weft_update *u, weft_value variable, weft_value gradient,
                              weft_value *slot)
{
    *slot = weft_update_slot(u, variable, "gradient", weft_shape_of(variable));
    return weft_assign(*slot, weft_add(*slot, gradient));
}

static weft_value accumulate(const weft_update *u, weft_value *kept)
{
    weft_graph *graph = u->graph;
    const weft_values variables = u->options.variables, gradients = u->options.gradients;
    weft_value token = weft_no_value(graph);
    for (int i = 0; i < variables.n_values && weft_graph_status(graph) == WEFT_OK; i++) {
        weft_bring_home(variables.values[i], gradients.values[i]);
        weft_update_at(u, variables.values[i]);
        const weft_value own = add_to_slot(u, variables.values[i], gradients.values[i], &kept[i]);
        weft_update_at(u, weft_no_value(graph));
        token = i == 0 ? own : weft_group(graph, WEFT_VALUES(token, own));
    }
    return token;
}

weft_value weft_accumulate(weft_values variables, weft_values gradients, weft_value *kept)
{
    weft_graph *graph =
        variables.values != NULL && variables.n_values > 0 ? variables.values[0].graph : NULL;
    const weft_update u = {.name = "accumulate",
                           .graph = graph,
                           .options = {.variables = variables, .gradients = gradients}};
    void_all(graph, kept, variables.n_values);
    if (weft_graph_status(graph) != WEFT_OK) return weft_no_value(graph);
    if (gradients.n_values == 0)
        return weft_graph_fail(graph, "accumulate: gradients has no values; list one for each of "
                                      "variables");
    if (kept == NULL)
        return weft_graph_fail(graph, "accumulate: there is no room for %d slots; pass an array",
                               variables.n_values);
    if (!weft_check_lists(&u, weft_no_value(graph))) return weft_no_value(graph);
    const weft_graph_point begin = weft_graph_here(graph);
    const weft_phase phase = graph->phase;
    graph->phase = WEFT_UPDATE;
    const weft_value token = accumulate(&u, kept);
    graph->phase = phase;
    graph->place_as = 0;
    if (weft_graph_status(graph) == WEFT_OK) return token;
    weft_graph_rewind(graph, begin);
    void_all(graph, kept, variables.n_values);
    return weft_no_value(graph);
}

/* slot = 0 */
static weft_value clear(weft_value slot)
{
    weft_graph *graph = slot.graph;
    if (weft_owner_of(graph, slot.id) == 0) {
        char place[160];
        weft_origin_print(weft_node_of(graph, slot.id), place, sizeof place);
        return weft_graph_fail(graph,
                               "accumulate_clear: the result of %s is no slot; pass what "
                               "weft_accumulate put into kept",
                               place);
    }
    graph->place_as = slot.id;
    weft_value zero = weft_constant(graph, weft_dtype_of(slot), *weft_shape_of(slot), 0.0);
    graph->place_as = 0;
    return weft_assign(slot, zero);
}

weft_value weft_accumulate_clear(weft_values kept)
{
    weft_graph *graph = kept.values != NULL && kept.n_values > 0 ? kept.values[0].graph : NULL;
    if (!weft_graph_takes(graph, "accumulate_clear", "kept", kept)) return weft_no_value(graph);
    const weft_graph_point begin = weft_graph_here(graph);
    const weft_phase phase = graph->phase;
    weft_value token = weft_no_value(graph);
    graph->phase = WEFT_UPDATE;
    for (int i = 0; i < kept.n_values && weft_graph_status(graph) == WEFT_OK; i++) {
        const weft_value own = clear(kept.values[i]);
        token = i == 0 ? own : weft_group(graph, WEFT_VALUES(token, own));
    }
    graph->phase = phase;
    if (weft_graph_status(graph) == WEFT_OK) return token;
    weft_graph_rewind(graph, begin);
    return weft_no_value(graph);
}
