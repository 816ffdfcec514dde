/* views: another look at the same memory is no step: in bodies of scans, and everywhere where elements keep their order.
 *
 * A trip sees elements of tensors, renames, cuts off slices, joins, and stacks what it has made. Each of these is a copy of
 * what lies somewhere already, or is about to lie somewhere else; with small steps such copies take as long as the
 * arithmetic. So an element of a tensor is read where it lies, a name or a slice is another view of the same memory, and
 * what is stacked or joined is made in its place (ops/plan/views.h).
 *
 * That is done where all who read or write the view can: loops by any strides and from another place in each trip, kernels
 * that take their addresses when they are launched, of what is contiguous. And where nobody writes over the memory as long
 * as the view is read: stores are in their places by now (order). Exchanges and guards read what stays where it is.
 * Bodies with a guard stack by copies, since what a trip made before it was broken off is not to be in the stack.
 *
 * Outside of scans a copy is done once, so only another name or shape is a view there. Steps that read or write it are not slower
 * for that. Parts of a tensor could make them so.
 *
 * A device whose loops cannot be moved keeps the copies.
 */
#include "passes.h"
#include "regions.h"
#include "views.h"

#include <stdlib.h>
#include <string.h>

enum { SEVERAL = UINT32_MAX };

/* What has been done, to be undone where it does not fit: a tensor has become a view, or a step is gone. */
typedef struct change {
    bool is_step;
    uint32_t id;
} change;

typedef struct viewing {
    weft_plan *plan;
    weft_regions regions;
    uint32_t *maker; /* [n_placed] step + 1 */
    /* [n_placed] the first and the last step that use it, or what has become a view of it */
    uint32_t *first, *last;
    bool *is_gone;   /* [n_steps] */
    change *changes; /* [n_placed + n_steps] */
    size_t n_changes;
} viewing;

static void leave_out(viewing *v, uint32_t s)
{
    v->is_gone[s] = true;
    v->changes[v->n_changes++] = (change){true, s};
}

static void see_through(viewing *v, uint32_t placed, uint32_t whole, uint32_t node)
{
    v->plan->placed[placed].shares = whole;
    v->plan->placed[placed].through = node;
    v->changes[v->n_changes++] = (change){false, placed};
    for (; whole != 0; whole = v->plan->placed[whole].shares) {
        if (v->first[placed] < v->first[whole]) v->first[whole] = v->first[placed];
        if (v->last[placed] > v->last[whole]) v->last[whole] = v->last[placed];
    }
}

static void undo(viewing *v, size_t to)
{
    while (v->n_changes > to) {
        const change last = v->changes[--v->n_changes];
        if (last.is_step)
            v->is_gone[last.id] = false;
        else
            v->plan->placed[last.id].shares = v->plan->placed[last.id].through = 0;
    }
}

/* ---- who can read or write a view ---------------------------------------------------------------- */

/* A kernel's call takes new addresses in each trip, on any rank: blocks of rank 0 are the largest, of the last the smallest. */
static bool takes_addresses(const viewing *v, const weft_step *step)
{
    const int last = weft_mesh_n_ranks(v->plan->mesh) - 1;
    for (int rank = 0;; rank = last) {
        weft_call call;
        weft_kernel_choice choice;
        weft_step_call(v->plan, step, rank, &call);
        if (weft_step_kernel(v->plan, step, &call, &choice, NULL) != WEFT_OK ||
            (choice.kernel->prepare && (!choice.kernel->prepares_alike || choice.kernel->release)))
            return false;
        if (rank == last) return true;
    }
}

/* Dims go one by one, but for those of size 1. */
static bool keeps_dims(const weft_shape *a, const weft_shape *b)
{
    int i = 0, k = 0;
    for (;; i++, k++) {
        while (i < a->n_dims && a->dims[i].size == 1)
            i++;
        while (k < b->n_dims && b->dims[k].size == 1)
            k++;
        if (i == a->n_dims || k == b->n_dims) return i == a->n_dims && k == b->n_dims;
        if (a->dims[i].size != b->dims[k].size) return false;
    }
}

/* Elements of what is apart cannot be counted through. */
static bool may_take_shape(const viewing *v, uint32_t placed, uint32_t whole)
{
    return weft_is_contiguous(v->plan, whole) ||
           keeps_dims(&v->plan->placed[placed].type.shape, &v->plan->placed[whole].type.shape);
}

/* Shapes on the way to what it is a view of. */
static bool has_shapes(const viewing *v, uint32_t placed)
{
    const weft_placed *p = &v->plan->placed[placed];
    for (; p->shares != 0; placed = p->shares, p = &v->plan->placed[placed])
        if (p->through != 0 &&
            weft_view_kind_of(&v->plan->graph->nodes[p->through]) == WEFT_VIEW_SHAPE &&
            !may_take_shape(v, placed, p->shares))
            return false;
    return true;
}

/* Nothing else that the step writes, or of a result reads, may lie in the same memory. */
static bool is_alone(const viewing *v, const weft_step *step, uint32_t placed, bool is_result)
{
    const uint32_t owner = weft_placed_owner(v->plan, placed);
    const uint32_t *others = is_result ? step->in : step->out;
    for (int i = 0; i < (is_result ? step->n_in : step->n_out); i++)
        if (weft_placed_owner(v->plan, others[i]) == owner) return false;
    return true;
}

static bool can_be_apart(const viewing *v, const weft_step *step, uint32_t placed, bool is_result)
{
    return weft_shape_find(&v->plan->placed[placed].type.shape, WEFT_STATE_DIM) < 0 &&
           !(is_result && step->row_dims != 0);
}

static bool suits(const viewing *v, const weft_step *step, uint32_t placed, bool is_result)
{
    static const struct {
        bool moves, apart;
    } takes[WEFT_STEPS] = {[WEFT_STEP_KERNEL] = {true, false},
                           [WEFT_STEP_LOOP] = {true, true},
                           [WEFT_STEP_COPY] = {true, false}};
    const int moves = weft_count_moves(v->plan, placed);
    const bool is_apart = !weft_is_contiguous(v->plan, placed);
    if (!weft_is_view(v->plan, placed)) return true;
    if (step->is_ahead || weft_is_fence(step) || moves > WEFT_MOST_MOVES) return false;
    if ((moves > 0 && !takes[step->kind].moves) || (is_apart && !takes[step->kind].apart))
        return false;
    if (is_apart && !can_be_apart(v, step, placed, is_result)) return false;
    if (moves > 0 && step->kind == WEFT_STEP_KERNEL && !takes_addresses(v, step)) return false;
    return has_shapes(v, placed) && is_alone(v, step, placed, is_result);
}

/* Do all steps that read or write it, or what is within it, as views? */
static bool all_suit(const viewing *v, uint32_t placed)
{
    const weft_plan *plan = v->plan;
    for (uint32_t s = v->first[placed]; s <= v->last[placed]; s++) {
        const weft_step *step = &plan->steps[s];
        if (v->is_gone[s]) continue;
        for (int i = 0; i < step->n_in; i++)
            if (weft_is_within(plan, step->in[i], placed) && !suits(v, step, step->in[i], false))
                return false;
        for (int o = 0; o < step->n_out; o++)
            if (weft_is_within(plan, step->out[o], placed) && !suits(v, step, step->out[o], true))
                return false;
    }
    return true;
}

/* ---- what may be a view --------------------------------------------------------------------------- */

/* A temporary that step `s` alone makes, in memory of its own, and that goes with the trip where the step is of a scan. */
static bool is_made_for_now(const viewing *v, uint32_t placed, uint32_t s)
{
    const weft_placed *p = &v->plan->placed[placed];
    return p->home == WEFT_TEMPORARY && p->shares == 0 && p->carried == 0 && !p->is_output &&
           p->scan == v->plan->steps[s].scan && v->maker[placed] == s + 1;
}

/* Is the step what its node says, for one rank's parts, and nothing more? */
static bool is_plain(const viewing *v, const weft_step *step)
{
    const weft_plan *plan = v->plan;
    const weft_node *node = &plan->graph->nodes[step->node];
    if (step->n_in != node->n_in || step->n_out != 1 || step->is_ahead ||
        plan->placed[step->out[0]].value != node->out)
        return false;
    for (int i = 0; i < step->n_in; i++)
        if (plan->placed[step->in[i]].value != node->in[i]) return false;
    return true;
}

/* ---- a result seen in its operand ------------------------------------------------------------------ */

/* The last step of the view's scan that reads what is within it, or the end of the scan in which that is. */
static uint32_t last_reader(const viewing *v, uint32_t placed)
{
    const weft_plan *plan = v->plan;
    const uint32_t scan = plan->placed[placed].scan;
    uint32_t last = v->first[placed];
    for (uint32_t s = last; s <= v->last[placed]; s++)
        for (int i = 0; !v->is_gone[s] && i < plan->steps[s].n_in; i++)
            if (weft_is_within(plan, plan->steps[s].in[i], placed)) last = s;
    for (uint32_t at = plan->steps[last].scan; at != scan; at = plan->graph->scans[at].parent)
        last = v->regions.end[at];
    return last;
}

/* Does a step [from, to] write the memory? */
static bool is_written(const viewing *v, uint32_t placed, uint32_t from, uint32_t to)
{
    const weft_plan *plan = v->plan;
    const uint32_t owner = weft_placed_owner(plan, placed);
    for (uint32_t t = from; t <= to; t++)
        for (int o = 0; !v->is_gone[t] && o < plan->steps[t].n_out; o++)
            if (weft_placed_owner(plan, plan->steps[t].out[o]) == owner) return true;
    return false;
}

/* Between step `s` and the last who reads the view? */
static bool is_overwritten(const viewing *v, uint32_t placed, uint32_t s)
{
    return is_written(v, placed, s + 1, last_reader(v, placed));
}

static bool is_seen_here(const weft_step *step, const weft_node *node)
{
    if (node->op == &weft_op_concat || node->op == &weft_op_scan_stack) return false;
    if (node->op != &weft_op_scan_each) return step->kind == WEFT_STEP_KERNEL;
    return step->kind == WEFT_STEP_COPY && weft_scan_of(node)->scan == step->scan;
}

static void see_result(viewing *v, uint32_t s)
{
    const weft_step *step = &v->plan->steps[s];
    const weft_node *node = &v->plan->graph->nodes[step->node];
    const size_t before = v->n_changes;
    const weft_view_kind kind = weft_view_kind_of(node);
    if (v->is_gone[s] || !is_seen_here(step, node) || kind == WEFT_VIEW_NONE ||
        (step->scan == 0 && kind != WEFT_VIEW_SHAPE) || !is_plain(v, step) ||
        !is_made_for_now(v, step->out[0], s))
        return;
    if (kind == WEFT_VIEW_SHAPE && !may_take_shape(v, step->out[0], step->in[0])) return;
    leave_out(v, s);
    see_through(v, step->out[0], step->in[0], step->node);
    if (!all_suit(v, step->out[0]) || is_overwritten(v, step->out[0], s)) undo(v, before);
}

/* ---- an operand made in the result ----------------------------------------------------------------- */

/* A block of the operand is a block of the result: the joined dim is whole, the others are split alike. */
static bool joins_blocks(const viewing *v, const weft_step *step, int i)
{
    const weft_placed *part = &v->plan->placed[step->in[i]],
                      *whole = &v->plan->placed[step->out[0]];
    const weft_slice_attributes *slice = v->plan->graph->nodes[step->node].attributes;
    const int dim = weft_shape_find(&whole->type.shape, slice->dim);
    for (int d = 0; d < whole->type.shape.n_dims; d++) {
        const int8_t n = part->spec.n_split[d];
        if (n != whole->spec.n_split[d] || (d == dim && n > 0) ||
            memcmp(part->spec.split[d], whole->spec.split[d], (size_t)n) != 0 ||
            !weft_window_equal(&part->spec.window[d], &whole->spec.window[d]))
            return false;
    }
    return part->spec.partial == whole->spec.partial;
}

static bool make_within(viewing *v, uint32_t placed, uint32_t whole, uint32_t node, uint32_t scan);

/* The step's operands are made in its result, all of them, so that nothing is left to do. */
static bool make_operands(viewing *v, uint32_t s)
{
    const weft_step *step = &v->plan->steps[s];
    const weft_node *node = &v->plan->graph->nodes[step->node];
    const size_t before = v->n_changes;
    const bool is_join = node->op == &weft_op_concat;
    bool is_done = step->kind == WEFT_STEP_KERNEL && is_plain(v, step) &&
                   (is_join ? step->scan != 0 && step->in[0] != step->in[1]
                            : weft_view_kind_of(node) == WEFT_VIEW_SHAPE);
    leave_out(v, s);
    for (int i = 0; is_done && i < step->n_in; i++)
        is_done =
            (is_join ? joins_blocks(v, step, i) : may_take_shape(v, step->in[i], step->out[0])) &&
            make_within(v, step->in[i], step->out[0], step->node, step->scan);
    if (!is_done) undo(v, before);
    return is_done;
}

/* By the step that makes it, or by those that make its parts. */
static bool make_within(viewing *v, uint32_t placed, uint32_t whole, uint32_t node, uint32_t scan)
{
    const uint32_t maker = v->maker[placed];
    const size_t before = v->n_changes;
    if (maker == 0 || maker == SEVERAL || v->plan->steps[maker - 1].scan != scan ||
        !is_made_for_now(v, placed, maker - 1))
        return false;
    see_through(v, placed, whole, node);
    make_operands(v, maker - 1);
    if (all_suit(v, placed)) return true;
    undo(v, before);
    return false;
}

/* A stack, or what is joined, in memory of its own. */
static bool has_own_memory(const weft_plan *plan, uint32_t placed)
{
    const weft_placed *p = &plan->placed[placed];
    return p->home == WEFT_TEMPORARY && p->shares == 0 && p->carried == 0;
}

static void make_in_stack(viewing *v, uint32_t s)
{
    const weft_step *step = &v->plan->steps[s];
    const weft_node *node = &v->plan->graph->nodes[step->node];
    const uint32_t scan = step->scan;
    if (v->is_gone[s] || step->kind != WEFT_STEP_COPY || node->op != &weft_op_scan_stack ||
        weft_scan_of(node)->scan != scan || !is_plain(v, step) ||
        v->regions.guard[scan] != v->regions.begin[scan] || !has_own_memory(v->plan, step->out[0]))
        return;
    leave_out(v, s);
    if (!make_within(v, step->in[0], step->out[0], step->node, scan)) undo(v, v->n_changes - 1);
}

static void make_in_join(viewing *v, uint32_t s)
{
    const weft_step *step = &v->plan->steps[s];
    if (v->is_gone[s] || step->scan == 0 ||
        v->plan->graph->nodes[step->node].op != &weft_op_concat ||
        !has_own_memory(v->plan, step->out[0]))
        return;
    (void)make_operands(v, s);
}

/* Outside of scans, what is read after the run in another shape. Nobody is to write there again, the less so behind it. */
static void make_in_output(viewing *v, uint32_t s)
{
    const weft_step *step = &v->plan->steps[s];
    const size_t before = v->n_changes;
    if (v->is_gone[s] || step->scan != 0 || step->n_out != 1 ||
        weft_view_kind_of(&v->plan->graph->nodes[step->node]) != WEFT_VIEW_SHAPE ||
        !v->plan->placed[step->out[0]].is_output || !has_own_memory(v->plan, step->out[0]) ||
        v->maker[step->out[0]] != s + 1)
        return;
    if (make_operands(v, s) && is_written(v, step->in[0], s + 1, v->plan->n_steps - 1))
        undo(v, before);
}

/* ---- a next value by another name ------------------------------------------------------------------ */

/* Does a step [from, to) read or write the memory? */
static bool is_touched(const viewing *v, uint32_t owner, uint32_t from, uint32_t to)
{
    const weft_plan *plan = v->plan;
    for (uint32_t s = from; s < to; s++) {
        const weft_step *step = &plan->steps[s];
        for (int i = 0; !v->is_gone[s] && i < step->n_in + step->n_out; i++)
            if (weft_placed_owner(plan, i < step->n_in ? step->in[i] : step->out[i - step->n_in]) ==
                owner)
                return true;
    }
    return false;
}

/* The result lies in memory that is carried: its operand is made there, if nobody needs the old value any more from the first step
 * on that makes a part of it, and no guard behind that may keep the old value. */
static void make_in_carried(viewing *v, uint32_t s)
{
    const weft_plan *plan = v->plan;
    const weft_step *step = &plan->steps[s];
    const weft_node *node = &plan->graph->nodes[step->node];
    const size_t before = v->n_changes;
    if (v->is_gone[s] || step->kind != WEFT_STEP_KERNEL || step->scan == 0 ||
        weft_view_kind_of(node) != WEFT_VIEW_SHAPE || !is_plain(v, step))
        return;
    const uint32_t owner = weft_placed_owner(plan, step->out[0]), maker = v->maker[step->in[0]];
    const uint32_t first = v->first[step->in[0]];
    if (plan->placed[owner].carried != step->scan || maker == 0 || maker == SEVERAL ||
        !is_made_for_now(v, step->in[0], maker - 1) || first < v->regions.guard[step->scan] ||
        is_touched(v, owner, first, s))
        return;
    leave_out(v, s);
    see_through(v, step->in[0], step->out[0], step->node);
    if (!all_suit(v, step->in[0])) undo(v, before);
}

/* ---- the pass --------------------------------------------------------------------------------------- */

static void look_at_step(viewing *v, uint32_t s)
{
    const weft_step *step = &v->plan->steps[s];
    for (int i = 0; i < step->n_in + step->n_out; i++) {
        uint32_t used = i < step->n_in ? step->in[i] : step->out[i - step->n_in];
        for (; used != 0; used = v->plan->placed[used].shares) {
            if (s < v->first[used]) v->first[used] = s;
            v->last[used] = s;
        }
    }
    for (int o = 0; o < step->n_out; o++) {
        uint32_t *maker = &v->maker[step->out[o]];
        *maker = *maker == 0 ? s + 1 : SEVERAL;
    }
}

static weft_status begin(viewing *v, weft_error *error)
{
    const weft_plan *plan = v->plan;
    const size_t n_placed = plan->n_placed + 1, n_steps = plan->n_steps + 1;
    v->maker = weft_arena_take(plan->arena, n_placed * sizeof *v->maker);
    v->first = weft_arena_take(plan->arena, n_placed * sizeof *v->first);
    v->last = weft_arena_take(plan->arena, n_placed * sizeof *v->last);
    v->is_gone = weft_arena_take(plan->arena, n_steps * sizeof *v->is_gone);
    v->changes = weft_arena_take(plan->arena, (n_placed + n_steps) * sizeof *v->changes);
    if (!v->maker || !v->first || !v->last || !v->is_gone || !v->changes)
        return weft_fail_memory(error, (n_placed + n_steps) * sizeof *v->changes);
    for (size_t id = 0; id < n_placed; id++)
        v->first[id] = plan->n_steps;
    for (uint32_t s = 0; s < plan->n_steps; s++)
        look_at_step(v, s);
    return weft_find_regions(plan, plan->arena, &v->regions, error);
}

static void drop_gone(viewing *v)
{
    weft_plan *plan = v->plan;
    uint32_t n = 0;
    for (uint32_t s = 0; s < plan->n_steps; s++)
        if (!v->is_gone[s]) plan->steps[n++] = plan->steps[s];
    plan->n_steps = n;
}

bool weft_has_views(const weft_plan *plan)
{
    const weft_loop_driver *driver;
    return weft_loop_driver_of(weft_mesh_device(plan->mesh), &driver, NULL) == WEFT_OK &&
           driver->move != NULL;
}

weft_status weft_pass_views(weft_plan *plan, weft_error *error)
{
    viewing v = {.plan = plan};
    if (plan->n_steps == 0 || !weft_has_views(plan)) return WEFT_OK;
    WEFT_TRY(begin(&v, error));
    for (uint32_t s = 0; s < plan->n_steps; s++)
        make_in_stack(&v, s);
    for (uint32_t s = plan->n_steps; s-- > 0;)
        make_in_join(&v, s);
    for (uint32_t s = 0; s < plan->n_steps; s++)
        make_in_carried(&v, s);
    for (uint32_t s = 0; s < plan->n_steps; s++)
        make_in_output(&v, s);
    for (uint32_t s = plan->n_steps; s-- > 0;) /* who reads a view is one by then, if it can be */
        see_result(&v, s);
    drop_gone(&v);
    return WEFT_OK;
}
