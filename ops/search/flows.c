/* flows: which values between kernels are exchanged under every layout, and what can go on meanwhile.
 *
 * A *flow* is a way from the result of a kernel to an operand of another one, through ops that are no kernels. Let v be the first operand,
 * in the graph's order, to which the result p flows. Where the kernel of p leaves a partial sum, and the one that reads v is cut, the sum
 * is finished on the way: as much as a reduce_scatter is sent. Where p is not whole on every rank, and v has to be, it becomes whole on
 * the way: as much as an all_gather is sent. Two such events of other operands v and w are never one: a value on the ways to both would
 * have its p flow to the earlier one, which then would be the first. So events add up. An event sends no fewer
 * bytes than the smallest value on the way has. A partial sum is finished before an op that is not linear.
 *
 * A gradient flows to a value that is placed as its variable is. It goes to where that is stored, and a variable comes from there.
 *
 * An event has works before it, and works behind it. The others may go on *beside* it. Where no kernel is beside it, it is tight: the step
 * is as much longer.
 */
#include "flows.h"

#include "regions.h"

#include <math.h>
#include <string.h>

extern const weft_op weft_op_scan_next, weft_op_scan_last;

enum { MOST_FLOWS = 48, HEAVY = 4 };

/* ---- flows ---------------------------------------------------------------------------------------------- */

double weft_flows_bytes(const search_flows *f, uint32_t value)
{
    const weft_type *type = &f->graph->tensors[value].type;
    return weft_count_of(&type->shape) * (double)weft_dtype_bytes(type->dtype);
}

static bool is_linear(const weft_op *op, int operand)
{
    return (op->linear | op->additive) >> operand & 1;
}

/* One more way of the same result: the larger of both is sent at least, and the smaller one is known of ways that go on. */
static void merge(flow *to, const flow *other)
{
    to->bytes = fmax(to->bytes, other->bytes);
    if (to->may_be_partial == other->may_be_partial)
        to->partial_bytes = fmax(to->partial_bytes, other->partial_bytes);
    else if (to->may_be_partial)
        *to = (flow){to->from, to->bytes, other->partial_bytes, false};
}

static void arrive(search_flows *f, uint32_t value, const flow *flows)
{
    arrivals *to = &f->arrivals[value];
    for (int i = 0; i < to->n; i++)
        if (to->list[i].from == flows->from) {
            merge(&to->list[i], flows);
            return;
        }
    if (!to->list) to->list = weft_arena_take(f->arena, MOST_FLOWS * sizeof *to->list);
    if (to->list && to->n < MOST_FLOWS)
        to->list[to->n++] = *flows;
    else
        f->sources[flows->from].is_lost = true;
}

static bool is_over(const search_flows *f, uint32_t from)
{
    const flow_source *s = &f->sources[from];
    return s->to != 0 || s->of != 0 || s->is_lost;
}

static bool have_same_dims(const search_flows *f, uint32_t a, uint32_t b)
{
    return weft_shape_same_dims(&f->graph->tensors[a].type.shape, &f->graph->tensors[b].type.shape);
}

/* What has come to a value that is placed as a variable, and has its dims, is its gradient. */
static void end_as_gradient(search_flows *f, uint32_t value)
{
    const uint32_t variable = f->graph->tensors[value].place_as;
    const arrivals *at = &f->arrivals[value];
    for (int i = 0; variable != 0 && i < at->n; i++) {
        flow_source *s = &f->sources[at->list[i].from];
        if (is_over(f, at->list[i].from) || !have_same_dims(f, at->list[i].from, variable))
            continue;
        s->of = variable;
        s->bytes = at->list[i].bytes;
        s->partial_bytes = at->list[i].partial_bytes;
        f->n_gradients[variable]++;
    }
}

/* Through an op that is no kernel. */
static void pass(search_flows *f, const weft_node *node, int operand, uint32_t to)
{
    const arrivals *from = &f->arrivals[node->in[operand]];
    const double bytes = weft_flows_bytes(f, to);
    for (int i = 0; i < from->n; i++) {
        flow flows = from->list[i];
        if (is_over(f, flows.from)) continue;
        flows.bytes = fmin(flows.bytes, bytes);
        flows.may_be_partial = flows.may_be_partial && is_linear(node->op, operand);
        if (flows.may_be_partial) flows.partial_bytes = fmin(flows.partial_bytes, bytes);
        arrive(f, to, &flows);
    }
}

/* What comes to a kernel's operand first. */
static void end_at(search_flows *f, uint32_t value, uint32_t reader)
{
    const arrivals *at = &f->arrivals[value];
    flow_target *to = &f->targets[value];
    for (int i = 0; i < at->n; i++) {
        flow_source *s = &f->sources[at->list[i].from];
        if (is_over(f, at->list[i].from)) continue;
        s->to = value;
        s->bytes = at->list[i].bytes;
        s->partial_bytes = at->list[i].partial_bytes;
        if (at->list[i].from > to->source) to->source = at->list[i].from;
        if (to->reader == 0) to->reader = reader;
    }
    to->n_readers++;
}

static void take_kernel(search_flows *f, uint32_t n)
{
    const weft_node *node = &f->graph->nodes[n];
    for (int i = 0; i < node->n_in; i++) {
        const uint32_t variable = f->variable[node->in[i]];
        if (variable) f->n_readers[node->phase][variable]++;
        end_at(f, node->in[i], n);
    }
    for (int o = 0; o < node->n_out; o++) {
        const uint32_t value = node->out + (uint32_t)o;
        const double bytes = weft_flows_bytes(f, value);
        arrive(f, value, &(flow){value, bytes, bytes, true});
    }
}

static void take_node(search_flows *f, uint32_t n)
{
    const weft_node *node = &f->graph->nodes[n];
    if (node->op == &weft_op_variable) f->variable[node->out] = node->out;
    if (node->op->recodes && node->n_in == 1) f->variable[node->out] = f->variable[node->in[0]];
    if (node->op == &weft_op_scan_next) {
        f->next[node->in[0]] = n;
        pass(f, node, 1, node->in[0]);
    }
    if (f->is_kernel[n]) take_kernel(f, n);
    for (int o = 0; o < node->n_out; o++)
        for (int i = 0; i < node->n_in && !f->is_kernel[n] && !node->op->makes_token; i++)
            pass(f, node, i, node->out + (uint32_t)o);
    for (int o = 0; o < node->n_out; o++)
        end_as_gradient(f, node->out + (uint32_t)o);
}

/* ---- what goes on beside an event ------------------------------------------------------------------- */

/* The node that says what the last trip has left, where this one reads that; 0: it does not. */
static uint32_t last_of(const search_flows *f, const weft_node *node)
{
    return node->op == &weft_op_scan_last ? f->next[node->in[0]] : 0;
}

static void mark_before(const search_flows *f, uint32_t n, bool *marks)
{
    memset(marks, 0, f->graph->n_nodes * sizeof *marks);
    marks[n] = true;
    for (uint32_t m = n; m > 0; m--) {
        const weft_node *node = &f->graph->nodes[m];
        if (!marks[m]) continue;
        for (int i = 0; i < node->n_in; i++)
            marks[weft_flows_node(f, node->in[i])] = true;
        marks[last_of(f, node)] = true;
    }
    marks[0] = false;
}

/* Those that read the value, and so on. */
static void mark_behind(const search_flows *f, uint32_t value, bool *marks)
{
    memset(marks, 0, f->graph->n_nodes * sizeof *marks);
    for (uint32_t m = weft_flows_node(f, value) + 1; m < f->graph->n_nodes; m++) {
        const weft_node *node = &f->graph->nodes[m];
        for (int i = 0; i < node->n_in; i++)
            marks[m] |= node->in[i] == value || marks[weft_flows_node(f, node->in[i])];
        if (last_of(f, node)) marks[m] |= marks[last_of(f, node)];
    }
}

/* What is on all ways of an event is before it or behind it. */
static void mark_between(search_flows *f, uint32_t begin, uint32_t end)
{
    memset(f->from, 0, f->graph->n_nodes * sizeof *f->from);
    memset(f->to, 0, f->graph->n_nodes * sizeof *f->to);
    f->from[begin] = f->to[end] = 1;
    for (uint32_t n = begin + 1; n <= end; n++)
        for (int i = 0; i < f->graph->nodes[n].n_in; i++)
            f->from[n] += f->from[weft_flows_node(f, f->graph->nodes[n].in[i])];
    for (uint32_t n = end; n > begin; n--)
        for (int i = 0; i < f->graph->nodes[n].n_in; i++)
            f->to[weft_flows_node(f, f->graph->nodes[n].in[i])] += f->to[n];
    for (uint32_t n = begin; n <= end; n++)
        if (f->from[n] > 0 && f->from[n] * f->to[n] == f->from[end]) f->before[n] = true;
}

/* Works neither before nor behind. */
static bool has_kernel_beside(const search_flows *f)
{
    for (uint32_t n = 1; n < f->graph->n_nodes; n++)
        if (f->computes[n] && !f->before[n] && !f->behind[n]) return true;
    return false;
}

static void note_beside(search_flows *f, uint8_t order)
{
    for (uint32_t n = 1; n < f->graph->n_nodes; n++)
        if (!f->before[n] && !f->behind[n]) f->order[n] |= order;
}

/* Events one behind the other are a chain: each begins with a kernel that waits for the one before. Those on the way forward beside which
 * kernels go on are left out, since there are few, and the kernels are many. */
static void look_at_event(search_flows *f, uint32_t value, uint32_t *last)
{
    flow_target *t = &f->targets[value];
    const uint32_t from = weft_flows_node(f, t->source);
    if (*last != 0) {
        mark_behind(f, *last, f->behind);
        if (!f->behind[from]) return;
    }
    mark_before(f, from, f->before);
    mark_behind(f, value, f->behind);
    mark_between(f, from, weft_flows_node(f, value));
    const bool is_tight = !has_kernel_beside(f);
    if (!is_tight && f->graph->nodes[t->reader].phase == WEFT_FORWARD) return;
    *last = value;
    t->kind = is_tight ? WEFT_TOLL_TIGHT : WEFT_TOLL_CHAINED;
    if (is_tight) note_beside(f, WEFT_WORK_BESIDE_TIGHT);
    note_beside(f, WEFT_WORK_BESIDE);
}

/* In the order of the kernels that read them. */
static void look_at_events(search_flows *f)
{
    uint32_t last = 0;
    for (uint32_t n = 1; n < f->graph->n_nodes; n++) {
        const weft_node *node = &f->graph->nodes[n];
        for (int i = 0; i < node->n_in; i++)
            if (f->targets[node->in[i]].source != 0 && f->targets[node->in[i]].reader == n &&
                last != node->in[i])
                look_at_event(f, node->in[i], &last);
    }
}

/* Works that are before all gradients. */
static void look_at_gradients(search_flows *f)
{
    for (uint32_t n = 1; n < f->graph->n_nodes; n++)
        f->order[n] |= WEFT_WORK_FIRST;
    bool is_any = false;
    for (uint32_t v = 1; v < f->graph->n_tensors; v++) {
        if (f->sources[v].of == 0) continue;
        is_any = true;
        mark_before(f, weft_flows_node(f, v), f->before);
        for (uint32_t n = 1; n < f->graph->n_nodes; n++)
            if (!f->before[n] || n == weft_flows_node(f, v))
                f->order[n] &= (uint8_t)~WEFT_WORK_FIRST;
    }
    for (uint32_t n = 1; n < f->graph->n_nodes && !is_any; n++)
        f->order[n] &= (uint8_t)~WEFT_WORK_FIRST;
}

/* Of the readers of one operand those pay beside which nothing goes on, where there are any. */
static void count_payers(search_flows *f)
{
    for (uint32_t n = 1; n < f->graph->n_nodes; n++)
        for (int i = 0; i < f->graph->nodes[n].n_in && f->is_kernel[n]; i++) {
            flow_target *t = &f->targets[f->graph->nodes[n].in[i]];
            if (f->order[n] & WEFT_WORK_BESIDE) continue;
            if (t->n_chained++ == 0) t->whole = n;
        }
    for (uint32_t v = 1; v < f->graph->n_tensors; v++)
        if (f->targets[v].whole == 0) f->targets[v].whole = f->targets[v].reader;
}

/* ---- the whole ----------------------------------------------------------------------------------------- */

static bool open_lists(search_flows *f)
{
    const size_t nodes = f->graph->n_nodes, tensors = f->graph->n_tensors;
    f->computes = weft_arena_take(f->arena, nodes * sizeof *f->computes);
    f->is_kernel = weft_arena_take(f->arena, nodes * sizeof *f->is_kernel);
    f->order = weft_arena_take(f->arena, nodes * sizeof *f->order);
    f->before = weft_arena_take(f->arena, nodes * sizeof *f->before);
    f->behind = weft_arena_take(f->arena, nodes * sizeof *f->behind);
    f->ids = weft_arena_take(f->arena, nodes * sizeof *f->ids);
    f->from = weft_arena_take(f->arena, nodes * sizeof *f->from);
    f->to = weft_arena_take(f->arena, nodes * sizeof *f->to);
    f->arrivals = weft_arena_take(f->arena, tensors * sizeof *f->arrivals);
    f->sources = weft_arena_take(f->arena, tensors * sizeof *f->sources);
    f->targets = weft_arena_take(f->arena, tensors * sizeof *f->targets);
    f->variable = weft_arena_take(f->arena, tensors * sizeof *f->variable);
    f->next = weft_arena_take(f->arena, tensors * sizeof *f->next);
    f->n_gradients = weft_arena_take(f->arena, tensors * sizeof *f->n_gradients);
    bool is_open = f->computes && f->is_kernel && f->order && f->before && f->behind && f->ids &&
                   f->from && f->to && f->arrivals && f->sources && f->targets && f->variable &&
                   f->next && f->n_gradients;
    for (int p = 0; p < WEFT_PHASES; p++) {
        f->n_readers[p] = weft_arena_take(f->arena, tensors * sizeof **f->n_readers);
        is_open = is_open && f->n_readers[p];
    }
    return is_open;
}

/* Many flops for each number that it reads or makes: nobody does that as often as there are ranks without need. What does less is
 * part of the way. So are ops that other layouts write otherwise: what these do can be cut in other ways. */
static bool is_cut_by_factors(const weft_graph *graph, const weft_node *node)
{
    weft_site site;
    double numbers = 0;
    if (!node->op->factors || !node->op->flops || node->op->variants || node->op->is_apart)
        return false;
    weft_site_of(graph, node, &site);
    for (int i = 0; i < site.n_in; i++)
        numbers += weft_count_of(&site.in[i].shape);
    for (int o = 0; o < site.n_out; o++)
        numbers += weft_count_of(&site.out[o].shape);
    return node->op->flops(&site) > HEAVY * numbers;
}

search_flows *weft_flows_find(const weft_plan *plan, weft_arena *arena)
{
    search_flows *f = weft_arena_take(arena, sizeof *f);
    if (!f) return NULL;
    *f = (search_flows){.plan = plan, .graph = plan->graph, .arena = arena};
    if (!open_lists(f)) return NULL;
    for (uint32_t s = 0; s < plan->n_steps; s++) {
        const weft_step *step = &plan->steps[s];
        if (step->kind != WEFT_STEP_KERNEL) continue;
        weft_workload work;
        weft_step_workload(plan, step, 0, &work);
        f->ids[step->node] = work.id;
        f->computes[step->node] = true;
        f->is_kernel[step->node] = is_cut_by_factors(f->graph, &f->graph->nodes[step->node]);
    }
    for (uint32_t n = 1; n < f->graph->n_nodes; n++)
        take_node(f, n);
    look_at_events(f);
    look_at_gradients(f);
    count_payers(f);
    return f;
}

/* Of a loop the bytes that its ops without this order read and write, as a part of all: others may be done elsewhere. */
static double part_without(const search_flows *f, const weft_step *step, uint8_t order)
{
    const int n_segments = step->n_segments > 0 ? step->n_segments : 1;
    const int n_in = step->n_in / n_segments, n_out = step->n_out / n_segments;
    double some = 0, all = 0;
    for (int i = 0; i < step->n_in + step->n_out; i++) {
        const bool is_in = i < step->n_in;
        const int slot = is_in ? i % n_in : (i - step->n_in) % n_out;
        bool is_used = false;
        for (int k = 0; k < step->n_links && !is_used; k++) {
            const weft_fused_op *link = &step->links[k];
            if (f->order[link->node] & order) continue;
            for (int j = 0; j < (is_in ? link->n_in : link->n_out); j++)
                is_used |= (is_in ? link->in[j] : link->out[j]) == slot;
        }
        const double bytes =
            (double)weft_placed_bytes(f->plan, is_in ? step->in[i] : step->out[i - step->n_in], 0);
        all += bytes;
        if (is_used) some += bytes;
    }
    return all > 0 ? some / all : 0;
}

void weft_flows_order(const search_flows *flows, const weft_step *step,
                      search_part parts[WEFT_SEARCH_PARTS])
{
    uint8_t all = flows->order[step->node], any = all;
    for (int k = 0; k < step->n_links; k++) {
        all &= flows->order[step->links[k].node];
        any |= flows->order[step->links[k].node];
    }
    const uint8_t first = all & WEFT_WORK_FIRST;
    const bool is_loop = step->kind == WEFT_STEP_LOOP && step->n_links > 0;
    const double free_of_both = !(any & WEFT_WORK_BESIDE) ? 1
                                : is_loop ? part_without(flows, step, WEFT_WORK_BESIDE)
                                          : 0;
    const double free_of_tight = !(any & WEFT_WORK_BESIDE_TIGHT) ? 1
                                 : is_loop ? part_without(flows, step, WEFT_WORK_BESIDE_TIGHT)
                                           : 0;
    parts[0] = (search_part){first, free_of_both};
    parts[1] = (search_part){first | WEFT_WORK_BESIDE, free_of_tight - free_of_both};
    parts[2] = (search_part){first | WEFT_WORK_BESIDE | WEFT_WORK_BESIDE_TIGHT, 1 - free_of_tight};
}
