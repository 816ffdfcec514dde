/* fission: products leave the body of a scan, and those of all trips become one.
 *
 * A product in a body reads all of its matrix in each trip, for few rows. Three kinds of it need no trip of their own:
 *
 * - One that depends on nothing carried is done before the scan, with the trips' dim more: what a layer makes of a
 *   sequence's elements. A trip then sees its element of the result.
 * - One that is summed over the trips alone, as a weight's gradient is, becomes a product behind the scan that sums over
 *   the trips' dim as well, of its operands stacked. So do sums.
 * - One that is stacked alone becomes a product of what is stacked: what a gradient leaves for each element of a
 *   sequence.
 *
 * Which ops may have the trips' dim more they say by their factors: where a direction runs along it through operands and
 * results alike, each element of it is done by itself. A product is taken out where one of its operands is the same in
 * all trips.
 *
 * Where trips depend on each other, a product that stays in the body reads its matrix in its own order. The matrix is put in
 * that order once, before the scan, and not packed anew in each trip.
 *
 * Joining keeps more alive, so it is limited by what a trip sees and stacks anyway (weft_has_room). A scan whose trips
 * hang together by sums alone is one for the sake of memory, as that over the parts of a batch: it keeps nothing more.
 * Nothing is stacked that recomputing is to spare. Nothing is taken from a body with a guard, whose trips may not be made.
 */
#include "fission.h"

double weft_fission_bytes(const weft_fission *f, uint32_t value)
{
    const weft_type *type = &f->rewrite.from->tensors[value].type;
    return weft_count_of(&type->shape) * (double)weft_dtype_bytes(type->dtype);
}

int weft_fixed_operand(const weft_fission *f, const weft_node *node)
{
    if (node->op != &weft_op_einsum) return -1;
    const bool is_first = weft_is_fixed(f, node->in[0], node->scan);
    if (is_first == weft_is_fixed(f, node->in[1], node->scan)) return -1;
    return is_first ? 0 : 1;
}

bool weft_has_room(weft_fission *f, const weft_node *node, double more, double spared, int most,
                   double *kept)
{
    const uint32_t scan = node->scan;
    if (more == 0) return true;
    if (node->again != 0 || !f->is_recurrent[scan] || more > spared ||
        kept[scan] + more > most * f->seen[scan])
        return false;
    kept[scan] += more;
    return true;
}

/* ---- what there is --------------------------------------------------------------------------------- */

static weft_status take_room(weft_fission *f, weft_error *error)
{
    const weft_graph *from = f->rewrite.from;
    weft_arena *arena = f->rewrite.plan->arena;
    const size_t n_values = from->n_tensors, n_nodes = from->n_nodes, n_scans = from->n_scans;
    f->n_readers = weft_arena_take(arena, n_values * sizeof *f->n_readers);
    f->stack = weft_arena_take(arena, n_values * sizeof *f->stack);
    f->next = weft_arena_take(arena, n_values * sizeof *f->next);
    f->lift = weft_arena_take(arena, n_values * sizeof *f->lift);
    f->is_before = weft_arena_take(arena, n_nodes * sizeof *f->is_before);
    f->is_behind = weft_arena_take(arena, n_nodes * sizeof *f->is_behind);
    f->is_turned = weft_arena_take(arena, n_nodes * sizeof *f->is_turned);
    f->turned = weft_arena_take(arena, n_nodes * sizeof *f->turned);
    f->seen = weft_arena_take(arena, n_scans * sizeof *f->seen);
    f->before = weft_arena_take(arena, n_scans * sizeof *f->before);
    f->behind = weft_arena_take(arena, n_scans * sizeof *f->behind);
    f->is_recurrent = weft_arena_take(arena, n_scans * sizeof *f->is_recurrent);
    f->is_left = weft_arena_take(arena, n_scans * sizeof *f->is_left);
    if (f->n_readers && f->stack && f->next && f->lift && f->is_before && f->is_behind &&
        f->is_turned && f->turned && f->seen && f->before && f->behind && f->is_recurrent &&
        f->is_left)
        return WEFT_OK;
    return weft_fail_memory(error, n_values * sizeof *f->lift);
}

/* Who reads what; and what is kept of a trip anyway: what it sees of tensors, and what it stacks. */
static void count_node(weft_fission *f, uint32_t id)
{
    const weft_node *node = &f->rewrite.from->nodes[id];
    for (int i = 0; i < node->n_in; i++)
        f->n_readers[node->in[i]] += !weft_names_carry(node, i);
    if (node->op == &weft_op_scan_guard) f->is_left[node->scan] = true;
    if (node->op == &weft_op_scan_next) f->next[node->in[0]] = id;
    if (node->op == &weft_op_scan_each) f->seen[node->scan] += weft_fission_bytes(f, node->out);
    if (node->op != &weft_op_scan_stack) return;
    f->stack[node->in[0]] = id;
    f->seen[weft_scan_of(node)->scan] += weft_fission_bytes(f, node->in[0]);
}

/* What leaves its body; false: nothing does. */
static bool look(weft_fission *f)
{
    const weft_graph *from = f->rewrite.from;
    bool is_any = false;
    for (uint32_t id = 1; id < from->n_nodes; id++)
        if (f->rewrite.is_live[id]) count_node(f, id);
    for (uint32_t id = 1; id < from->n_nodes; id++)
        if (f->rewrite.is_live[id] && from->nodes[id].op == &weft_op_scan_carry &&
            f->next[from->nodes[id].out] != 0 && weft_summand_of(f, from->nodes[id].out) == 0)
            f->is_recurrent[from->nodes[id].scan] = true;
    for (uint32_t id = 1; id < from->n_nodes; id++) {
        const weft_node *node = &from->nodes[id];
        if (!f->rewrite.is_live[id]) continue;
        if (node->scan != 0 && !f->is_left[node->scan]) {
            weft_look_whether_it_lifts(f, node);
            weft_look_before(f, node);
            weft_look_at_order(f, node);
        }
        if (node->op == &weft_op_scan_last) weft_look_at_last(f, id);
        if (node->op == &weft_op_scan_stack) weft_look_at_stack(f, id);
        is_any = is_any || f->is_before[id] || f->is_behind[id] || f->is_turned[id];
    }
    return is_any;
}

/* ---- the new graph --------------------------------------------------------------------------------- */

static weft_value make_elsewhere(weft_fission *f, uint32_t id)
{
    const weft_node *node = &f->rewrite.from->nodes[id];
    if (f->is_before[id]) return weft_see_before(f, node);
    if (f->is_turned[id]) return weft_multiply_turned(f, node);
    return node->op == &weft_op_scan_last ? weft_make_last(f, node) : weft_make_stack(f, node);
}

static void make_node(weft_fission *f, uint32_t id)
{
    weft_rewrite *rewrite = &f->rewrite;
    const weft_node *node = &rewrite->from->nodes[id];
    rewrite->to->scan = node->scan;
    if (f->is_before[id] || f->is_behind[id] || f->is_turned[id])
        rewrite->value[node->out] = make_elsewhere(f, id).id;
    else
        weft_rewrite_copy(rewrite, node);
    for (uint32_t out = node->out; out < node->out + node->n_out; out++)
        if (rewrite->value[out] != 0) weft_rewrite_tags(rewrite, out, rewrite->value[out]);
}

static void make_all(weft_fission *f)
{
    const weft_graph *from = f->rewrite.from;
    weft_graph *to = f->rewrite.to;
    for (uint32_t id = 1; id < from->n_nodes && to->error.status == WEFT_OK; id++) {
        const weft_node *node = &from->nodes[id];
        if (!f->rewrite.is_live[id]) continue;
        if (node->scan != 0 && from->scans[node->scan].trip == node->out)
            weft_make_before(f, node->scan);
        make_node(f, id);
    }
    to->scan = 0;
}

weft_status weft_pass_fission(weft_plan *plan, weft_error *error)
{
    weft_fission f = {.n_readers = NULL};
    if (plan->graph->n_scans == 0) return WEFT_OK;
    WEFT_TRY(weft_rewrite_begin(plan, &f.rewrite, error));
    const weft_status status = take_room(&f, error);
    if (status != WEFT_OK || !look(&f)) {
        weft_graph_like_destroy(&f.rewrite.to);
        return status;
    }
    make_all(&f);
    WEFT_TRY(weft_rewrite_end(&f.rewrite, error));
    return weft_pass_simplify(plan, error); /* bodies have nodes that nobody reads any more */
}
