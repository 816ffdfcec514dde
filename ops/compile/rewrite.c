/* rewrite.c: liveness, and the exchange of one graph for another. */
#include "rewrite.h"

#include <stdlib.h>
#include <string.h>

/* Whatever a live node reads, and is placed as. */
static void mark_operands(weft_rewrite *rewrite)
{
    const weft_graph *from = rewrite->from;
    for (uint32_t id = from->n_nodes - 1; id > 0; id--) {
        if (!rewrite->is_live[id]) continue;
        const weft_node *node = &from->nodes[id];
        for (int i = 0; i < node->n_in; i++)
            rewrite->is_live[from->tensors[node->in[i]].node] = true;
        for (int i = 0; i < node->n_out; i++) {
            uint32_t as = from->tensors[node->out + (uint32_t)i].place_as;
            if (as) rewrite->is_live[from->tensors[as].node] = true;
        }
    }
}

/* The scan that a node is of, for which its trips are made: of what is stacked, that in whose trips it is, whatever body the value is of. */
static uint32_t scan_of(const weft_node *node)
{
    return node->op == &weft_op_scan_stack ? (uint32_t)weft_scan_of(node)->scan : node->scan;
}

/* A scan is done for any of its body, in the trips that its guard says, and what is carried is live in the trip before too. True: something became live. */
static bool mark_scans(weft_rewrite *rewrite)
{
    const weft_graph *from = rewrite->from;
    bool is_more = false;
    for (uint32_t id = 1; id < from->n_nodes && from->n_scans > 0; id++) {
        const weft_node *node = &from->nodes[id];
        const bool is_next =
            node->op == &weft_op_scan_next && rewrite->is_live[from->tensors[node->in[0]].node];
        const bool is_guard = node->op == &weft_op_scan_guard &&
                              rewrite->is_live[from->tensors[from->scans[node->scan].trip].node];
        if ((is_next || is_guard) && !rewrite->is_live[id]) rewrite->is_live[id] = is_more = true;
        for (uint32_t s = rewrite->is_live[id] ? scan_of(node) : 0; s != 0;
             s = from->scans[s].parent) {
            const uint32_t trip = from->tensors[from->scans[s].trip].node;
            if (!rewrite->is_live[trip]) rewrite->is_live[trip] = is_more = true;
        }
    }
    return is_more;
}

/* Outputs are the values with a `kept` mark; everything they depend on is live. */
static void mark_live(weft_rewrite *rewrite)
{
    const weft_graph *from = rewrite->from;
    for (uint32_t value = 1; value < from->n_tensors; value++)
        if (rewrite->plan->kept[value]) rewrite->is_live[from->tensors[value].node] = true;
    do
        mark_operands(rewrite);
    while (mark_scans(rewrite));
}

weft_status weft_rewrite_begin(weft_plan *plan, weft_rewrite *rewrite, weft_error *error)
{
    *rewrite = (weft_rewrite){.plan = plan, .from = plan->graph};
    rewrite->to = weft_graph_like(plan->graph);
    rewrite->value = weft_arena_take(plan->arena, plan->graph->n_tensors * sizeof(uint32_t));
    rewrite->is_live = weft_arena_take(plan->arena, plan->graph->n_nodes * sizeof(bool));
    rewrite->is_gone = weft_arena_take(plan->arena, plan->graph->n_tensors * sizeof(bool));
    if (!rewrite->to || !rewrite->value || !rewrite->is_live || !rewrite->is_gone) {
        weft_graph_like_destroy(&rewrite->to);
        return weft_fail_memory(error, plan->graph->n_tensors * sizeof(weft_tensor));
    }
    mark_live(rewrite);
    return WEFT_OK;
}

void weft_rewrite_tags(weft_rewrite *rewrite, uint32_t from, uint32_t to)
{
    const weft_tensor *old = &rewrite->from->tensors[from];
    weft_tensor *new = &rewrite->to->tensors[to];
    if (old->name) new->name = old->name;
    if (old->placement) new->placement = old->placement;
    if (old->placement) new->placed_by = old->placed_by;
    if (old->place_as) new->place_as = rewrite->value[old->place_as];
}

void weft_rewrite_copy(weft_rewrite *rewrite, const weft_node *node)
{
    uint32_t in[UINT8_MAX];
    for (int i = 0; i < node->n_in; i++)
        in[i] = rewrite->value[node->in[i]];
    uint32_t first = weft_node_copy(rewrite->to, rewrite->from, node, in);
    for (int i = 0; i < node->n_out; i++)
        rewrite->value[node->out + (uint32_t)i] = first ? first + (uint32_t)i : 0;
}

/* Outputs keep their marks, user's values keep their meaning. */
static weft_status carry_over(weft_rewrite *rewrite, weft_error *error)
{
    weft_plan *plan = rewrite->plan;
    uint32_t *kept = weft_arena_take(plan->arena, (rewrite->to->n_tensors + 1) * sizeof *kept);
    if (!kept) return weft_fail_memory(error, rewrite->to->n_tensors * sizeof *kept);
    for (uint32_t value = 1; value < rewrite->from->n_tensors; value++)
        if (plan->kept[value]) kept[rewrite->value[value]] = 1;
    for (uint32_t value = 0; value < plan->n_user_values; value++) {
        const uint32_t was = plan->user_value[value];
        plan->user_value[value] = rewrite->is_gone[was] ? 0 : rewrite->value[was];
    }
    plan->kept = kept;
    return WEFT_OK;
}

/* Scans that are in the new graph as they were have their trips there. */
static weft_status carry_scans(weft_rewrite *rewrite, weft_error *error)
{
    weft_graph *to = rewrite->to;
    const size_t bytes = to->n_scans * sizeof *to->scans;
    if (to->n_scans == 0 || to->scans != rewrite->from->scans) return WEFT_OK;
    to->scans = weft_arena_copy(to->arena, to->scans, bytes);
    if (to->scans == NULL) return weft_fail_memory(error, bytes);
    for (uint32_t s = 1; s < to->n_scans; s++)
        to->scans[s].trip = rewrite->value[to->scans[s].trip];
    return WEFT_OK;
}

void weft_rewrite_origin(weft_rewrite *rewrite, const weft_node *node, uint32_t first)
{
    weft_graph *to = rewrite->to;
    weft_graph_error_at(to, &node->origin);
    for (uint32_t id = first; id < to->n_nodes; id++) {
        to->nodes[id].origin = node->origin;
        to->nodes[id].phase = node->phase;
        to->nodes[id].again = node->again;
        to->nodes[id].repeats = node->repeats;
    }
}

weft_status weft_rewrite_end(weft_rewrite *rewrite, weft_error *error)
{
    weft_status status = rewrite->to->error.status;
    if (status != WEFT_OK)
        weft_fail(error, status, "%s", rewrite->to->error.message);
    else
        status = carry_over(rewrite, error);
    if (status == WEFT_OK) status = carry_scans(rewrite, error);
    if (status != WEFT_OK) {
        weft_graph_like_destroy(&rewrite->to);
        return status;
    }
    weft_graph_like_destroy(&rewrite->plan->graph);
    rewrite->plan->graph = rewrite->to;
    return WEFT_OK;
}
