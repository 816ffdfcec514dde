/* place_scan: bodies of scans that stay, placed once.
 *
 * A carried value has one version that goes from trip to trip. It has memory of its own, which begins as a copy of
 * the initial value and gets the next one at the end of each trip, as a variable does at the end of a run. The scan's
 * result is that memory after the last trip. Each trip puts its element into the stack.
 *
 * A guard is a fence: what is made before it is made in every trip, the rest, with all that a trip leaves, in those that it lets
 * go on.
 *
 * Conversions of outside values are made outside (weft_placed.scan), and stand before the body.
 *
 * A carried sum that begins with zero, with the sum as its only reader in the body, stays partial over all trips if
 * the addend can be partial: it is finished once, by its reader after the scan.
 */
#include "place.h"

#include <stdlib.h>
#include <string.h>

static uint32_t around(const weft_graph *graph, const weft_node *node)
{
    return graph->scans[weft_scan_of(node)->scan].parent;
}

weft_scopes weft_scopes_of(const weft_graph *graph, const weft_node *node)
{
    weft_scopes scopes = {node->scan, node->scan, node->scan, WEFT_STEP_COPY};
    if (node->op == &weft_op_scan_each)
        scopes.in = around(graph, node);
    else if (node->op == &weft_op_scan_carry)
        scopes.in = scopes.work = around(graph, node);
    else if (node->op == &weft_op_scan_stack)
        scopes.in = scopes.work = (uint32_t)weft_scan_of(node)->scan;
    else
        scopes.kind = WEFT_STEP_KERNEL;
    return scopes;
}

/* ---- sums over all trips ------------------------------------------------------------------------- */

static bool begins_with_zero(const weft_graph *graph, const weft_node *carry)
{
    const weft_node *initial = weft_node_of(graph, carry->in[0]);
    weft_site site;
    weft_site_of(graph, initial, &site);
    return initial->op->is_zero != NULL && initial->op->is_zero(&site);
}

/* Does what is carried go into its next value through sums alone, which nobody else reads? */
static bool is_summed_up(const weft_lookahead *ahead, uint32_t carry, uint32_t next)
{
    uint32_t at = ahead->joins[carry];
    while (at != 0 && at != next)
        at = ahead->joins[at];
    return at == next && next != 0;
}

static void look_whether_it_lasts(weft_placing *p, uint32_t carry, uint32_t next)
{
    const weft_plan *plan = p->plan;
    const weft_shape *shape = &plan->graph->tensors[carry].type.shape;
    const uint8_t axes = p->ahead.can_be_partial[next];
    int8_t states[WEFT_MAX_AXES];
    if (axes == 0 || !is_summed_up(&p->ahead, carry, next) ||
        !begins_with_zero(plan->graph, weft_node_of(plan->graph, carry)))
        return;
    for (int a = 0; a < weft_mesh_n_axes(plan->mesh); a++)
        states[a] = axes >> a & 1
                        ? WEFT_PARTIAL
                        : (int8_t)weft_spec_state(&p->ahead.wanted[carry], shape->n_dims, a);
    weft_spec_of_states(plan, shape, states, &p->may_last[carry]);
    p->may_last[carry].partial = axes;
    p->may_last[carry].combine = WEFT_SUM;
}

weft_status weft_place_scans_begin(weft_placing *p)
{
    const weft_graph *graph = p->plan->graph;
    weft_arena *arena = p->plan->arena;
    if (graph->n_scans == 0) return WEFT_OK;
    p->begin = weft_arena_take(arena, graph->n_scans * sizeof *p->begin);
    p->carried = weft_arena_take(arena, graph->n_tensors * sizeof *p->carried);
    p->may_last = weft_arena_take(arena, graph->n_tensors * sizeof *p->may_last);
    p->lasting = weft_arena_take(arena, graph->n_tensors * sizeof *p->lasting);
    if (!p->begin || !p->carried || !p->may_last || !p->lasting)
        return weft_fail_memory(p->error, graph->n_tensors * sizeof *p->lasting);
    for (uint32_t id = 1; id < graph->n_nodes; id++)
        if (graph->nodes[id].op == &weft_op_scan_next)
            look_whether_it_lasts(p, graph->nodes[id].in[0], graph->nodes[id].in[1]);
    return WEFT_OK;
}

void weft_place_scans_anew(weft_placing *p)
{
    const weft_graph *graph = p->plan->graph;
    if (graph->n_scans > 0) memcpy(p->lasting, p->may_last, graph->n_tensors * sizeof *p->lasting);
}

/* The body had it finished in every trip: then it is better finished before. */
static void give_up_lasting(weft_placing *p, uint32_t carry)
{
    if (p->lasting[carry].partial == 0 || p->primary[carry] == p->carried[carry]) return;
    p->lasting[carry] = (weft_spec){0};
    p->is_again = true;
}

/* ---- what is carried ----------------------------------------------------------------------------- */

/* In the spec that it has as a partial sum. */
static weft_status carry_lasting(weft_placing *p, uint32_t id)
{
    const weft_node *node = &p->plan->graph->nodes[id];
    const weft_scopes scopes = weft_scopes_of(p->plan->graph, node);
    const weft_spec spec = p->lasting[node->out];
    p->scan = scopes.in;
    const uint32_t from = weft_want(p, node->in[0], &spec, id);
    const uint32_t to = from ? weft_add_version(p, node->out, &spec, scopes.out, node->phase) : 0;
    const weft_step step = {.kind = WEFT_STEP_COPY,
                            .phase = node->phase,
                            .node = id,
                            .scan = scopes.work,
                            .n_in = 1,
                            .n_out = 1,
                            .in = &from,
                            .out = &to};
    if (!to) return p->error->status;
    weft_lookahead_made(&p->ahead, node->out, &spec);
    return weft_plan_step(p->plan, &step) ? WEFT_OK : weft_fail_memory(p->error, sizeof step);
}

weft_status weft_place_carry(weft_placing *p, uint32_t id)
{
    const weft_node *node = &p->plan->graph->nodes[id];
    WEFT_TRY((p->lasting[node->out].partial ? carry_lasting : weft_place_op)(p, id));
    const uint32_t placed = p->primary[node->out];
    p->plan->placed[placed].carried = node->scan;
    p->carried[node->out] = placed;
    return WEFT_OK;
}

/* Another name for the memory that it was carried in. */
weft_status weft_place_last(weft_placing *p, uint32_t id)
{
    weft_plan *plan = p->plan;
    const weft_node *node = &plan->graph->nodes[id];
    const uint32_t carried = p->carried[node->in[0]];
    const weft_spec spec = plan->placed[carried].spec;
    const uint32_t last = weft_add_version(p, node->out, &spec, node->scan, node->phase);
    if (!last) return p->error->status;
    plan->placed[last].shares = carried;
    plan->placed[last].reason = plan->placed[carried].reason;
    weft_lookahead_made(&p->ahead, node->out, &spec);
    return WEFT_OK;
}

/* The memory of what is carried gets the next value. What is carried itself, and what lies in its memory, is copied first: all
 * change at once. */
static weft_status place_next(weft_placing *p, uint32_t id)
{
    weft_plan *plan = p->plan;
    const weft_node *node = &plan->graph->nodes[id],
                    *maker = weft_node_of(plan->graph, node->in[1]);
    const uint32_t to = p->carried[node->in[0]];
    const weft_spec spec = plan->placed[to].spec;
    p->scan = node->scan;
    give_up_lasting(p, node->in[0]);
    uint32_t from = weft_want(p, node->in[1], &spec, id);
    if (!from) return p->error->status;
    if (plan->placed[to].reason == NULL) plan->placed[to].reason = plan->placed[from].reason;
    if (from == to) return WEFT_OK;
    if (maker->op == &weft_op_scan_carry && maker->scan == node->scan) {
        const uint32_t old = weft_add_version(p, node->in[1], &spec, node->scan, node->phase);
        if (!old) return p->error->status;
        WEFT_TRY(weft_copy_into(p, id, from, old, WEFT_BECAUSE_OLD));
        from = old;
    }
    return weft_copy_into(p, id, from, to, WEFT_BECAUSE_STORE);
}

/* ---- begin and end -------------------------------------------------------------------------------- */

static weft_status add_fence(weft_placing *p, weft_step_kind kind, uint32_t scan)
{
    const weft_graph *graph = p->plan->graph;
    const uint32_t trip = graph->tensors[graph->scans[scan].trip].node;
    const weft_step step = {
        .kind = kind, .phase = graph->nodes[trip].phase, .node = trip, .scan = scan};
    return weft_plan_step(p->plan, &step) ? WEFT_OK : weft_fail_memory(p->error, sizeof step);
}

static weft_status begin_scan(weft_placing *p, uint32_t scan)
{
    p->begin[scan] = p->plan->n_steps;
    p->open = scan;
    return add_fence(p, WEFT_STEP_BEGIN, scan);
}

/* Every rank has the whole number, and goes the same way by it. */
weft_status weft_place_guard(weft_placing *p, uint32_t id)
{
    const weft_node *node = &p->plan->graph->nodes[id];
    const weft_spec whole = {0};
    p->scan = node->scan;
    const uint32_t from = weft_want(p, node->in[0], &whole, id);
    const weft_step step = {.kind = WEFT_STEP_GUARD,
                            .phase = node->phase,
                            .node = id,
                            .scan = node->scan,
                            .n_in = 1,
                            .in = &from};
    if (!from) return p->error->status;
    return weft_plan_step(p->plan, &step) ? WEFT_OK : weft_fail_memory(p->error, sizeof step);
}

/* Where some trips may not be made, what is stacked begins with zeros: then the begin makes it. */
static weft_status begin_stacks(weft_placing *p, uint32_t scan)
{
    weft_plan *plan = p->plan;
    const weft_graph *graph = plan->graph;
    weft_step *begin = &plan->steps[p->begin[scan]];
    uint32_t *out = weft_arena_take(plan->arena, graph->n_nodes * sizeof *out);
    if (out == NULL) return weft_fail_memory(p->error, graph->n_nodes * sizeof *out);
    for (uint32_t id = 1; id < graph->n_nodes; id++)
        if (graph->nodes[id].op == &weft_op_scan_stack &&
            weft_scan_of(&graph->nodes[id])->scan == scan)
            out[begin->n_out++] = p->primary[graph->nodes[id].out];
    begin->out = out;
    return WEFT_OK;
}

/* What was asked for in the body, and is of the outside, stands before it. */
static weft_status move_out(weft_placing *p, uint32_t scan)
{
    const weft_graph *graph = p->plan->graph;
    weft_step *steps = p->plan->steps + p->begin[scan];
    const uint32_t n = p->plan->n_steps - p->begin[scan];
    uint32_t n_in = 0, n_out = 0;
    weft_step *within = malloc(n * sizeof *within);
    if (within == NULL) return weft_fail_memory(p->error, n * sizeof *within);
    for (uint32_t i = 0; i < n; i++) {
        if (weft_scan_holds(graph, scan, steps[i].scan))
            within[n_in++] = steps[i];
        else
            steps[n_out++] = steps[i];
    }
    memcpy(steps + n_out, within, n_in * sizeof *within);
    free(within);
    return WEFT_OK;
}

/* What is stacked is read before anything that is carried changes. */
static weft_status end_scan(weft_placing *p, uint32_t scan)
{
    const weft_graph *graph = p->plan->graph;
    const uint32_t begin = graph->tensors[graph->scans[scan].trip].node;
    for (uint32_t id = begin; id < graph->n_nodes; id++)
        if (graph->nodes[id].op == &weft_op_scan_stack &&
            weft_scan_of(&graph->nodes[id])->scan == scan)
            WEFT_TRY(weft_place_op(p, id));
    if (weft_scan_guard_of(graph, scan) != 0) WEFT_TRY(begin_stacks(p, scan));
    for (uint32_t id = begin; id < graph->n_nodes; id++)
        if (graph->nodes[id].op == &weft_op_scan_next && graph->nodes[id].scan == scan)
            WEFT_TRY(place_next(p, id));
    WEFT_TRY(move_out(p, scan));
    p->open = graph->scans[scan].parent;
    return add_fence(p, WEFT_STEP_END, scan);
}

weft_status weft_place_fences(weft_placing *p, uint32_t id)
{
    const weft_graph *graph = p->plan->graph;
    const weft_node *node = id < graph->n_nodes ? &graph->nodes[id] : NULL;
    const uint32_t scan = node != NULL ? node->scan : 0;
    while (!weft_scan_holds(graph, p->open, scan))
        WEFT_TRY(end_scan(p, p->open));
    return scan != 0 && graph->scans[scan].trip == node->out ? begin_scan(p, scan) : WEFT_OK;
}
