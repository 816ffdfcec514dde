/* loops: what a step is as a loop, and how two loops become one.
 *
 * A loop walks over a space: all elements of a tensor. With rows, some dims of the space form a row: links on elements,
 * reductions of a row, links on values of rows. Which of these a link is follows from its op and from the dims of its
 * result: what has the dims that are not the row's is a value of rows. The last dim is one of the row's. If the others are
 * not next to it, a row lies in pieces, as the batch and the places of a channel do.
 */
#include "loops.h"

#include "registry.h"

#include <string.h>

/* Fewer rows than all lanes want, of so many elements that they are cut among lanes: alone as in a loop, so a sum has the same
 * bits in both. A loop cannot cut what it goes through again. */
enum { MANY_ROWS = 16, LONG_ROW = 32768 };
/* A row that is read again, after its reduction or by it: with several values an element it stays in the second-level cache. */
enum { MOST_ROW_BYTES = WEFT_LANE_SCRATCH / 4 };

static int n_dims_of(const weft_plan *plan, uint32_t placed)
{
    return plan->placed[placed].type.shape.n_dims;
}

int weft_find_placed(const uint32_t *list, int n, uint32_t placed)
{
    for (int i = 0; i < n; i++)
        if (list[i] == placed) return i;
    return -1;
}

int weft_link_slot(const weft_step *loop, int k)
{
    int slot = 0;
    for (int i = 0; i < k; i++)
        slot += loop->links[i].n_out;
    return slot;
}

/* ---- a step as a loop ------------------------------------------------------------------------ */

static unsigned all_dims(int n_dims)
{
    return (1U << n_dims) - 1;
}

/* Elements of rank 0, which has no fewer than others, of those dims. */
static int64_t count_dims(const weft_plan *plan, uint32_t placed, unsigned dims)
{
    weft_view view;
    int64_t count = 1;
    weft_placed_view(plan, placed, 0, &view);
    for (int d = 0; d < view.shape.n_dims; d++)
        if (dims >> d & 1) count *= weft_view_size(&view, d);
    return count;
}

static int64_t count_rows(const weft_plan *plan, uint32_t placed, unsigned row_dims)
{
    return count_dims(plan, placed, ~row_dims);
}

/* The dims of `space` that the first `n_kept` of `rows`, in their order, are not; 0: those are not among its dims. */
static unsigned find_row_dims(const weft_plan *plan, uint32_t space, uint32_t rows, int n_kept)
{
    unsigned row_dims = 0;
    int kept = 0;
    for (int d = 0; d < n_dims_of(plan, space); d++) {
        const bool is_kept = kept < n_kept && weft_same_dim(plan, space, d, rows, kept);
        if (is_kept)
            kept++;
        else
            row_dims |= 1U << d;
    }
    return kept == n_kept ? row_dims : 0;
}

/* The last dims of the row, which lie together. */
static unsigned piece_dims(unsigned row_dims, int n_dims)
{
    unsigned dims = 0;
    for (int d = n_dims - 1; d >= 0 && (row_dims >> d & 1); d--)
        dims |= 1U << d;
    return dims;
}

/* May rows lie so? In one piece always, else if the device's loops take pieces as long as these. */
static bool may_lie_so(const weft_plan *plan, uint32_t space, unsigned row_dims)
{
    const unsigned piece = piece_dims(row_dims, n_dims_of(plan, space));
    const weft_loop_driver *driver;
    if (piece == row_dims) return true;
    return piece != 0 &&
           weft_loop_driver_of(weft_mesh_device(plan->mesh), &driver, NULL) == WEFT_OK &&
           driver->least_piece > 0 && count_dims(plan, space, piece) >= driver->least_piece;
}

/* Is a loop worth it? A few long rows that stay in cache until the kernel has cut and reduced them are none the better for
 * one, and those in pieces are not cut by a loop. */
static bool is_worth_a_loop(const weft_plan *plan, uint32_t in, unsigned row_dims)
{
    const int64_t length = count_dims(plan, in, row_dims);
    const int64_t bytes = (int64_t)weft_dtype_bytes(plan->placed[in].type.dtype);
    const bool is_whole = piece_dims(row_dims, n_dims_of(plan, in)) == row_dims;
    return length < LONG_ROW || count_rows(plan, in, row_dims) >= MANY_ROWS ||
           (is_whole && length * bytes > MOST_ROW_BYTES);
}

/* Does the kernel reduce rows of its operands, and is a loop worth it? */
static bool reduces_rows(const weft_plan *plan, const weft_step *step, unsigned *row_dims)
{
    const uint32_t in = step->in[0], out = step->out[0];
    const weft_row *row = plan->graph->nodes[step->node].op->row;
    const int n_dims = n_dims_of(plan, in);
    const int n_kept = n_dims_of(plan, out) - (weft_combine_width(row->combine) > 1);
    if (weft_dtype_computes(plan->placed[in].type.dtype) == WEFT_I64)
        return false; /* no double holds it */
    for (int i = 1; i < step->n_in; i++)
        if (n_dims_of(plan, step->in[i]) != n_dims ||
            !weft_same_dims(plan, in, step->in[i], n_dims))
            return false;
    *row_dims = find_row_dims(plan, in, out, n_kept);
    return *row_dims != 0 && may_lie_so(plan, in, *row_dims) &&
           is_worth_a_loop(plan, in, *row_dims);
}

/* One link: an element op, a finish, or a reduction. */
static void one_link(weft_step *loop, weft_loop_kind kind, const uint32_t *space,
                     weft_fused_op *links)
{
    links[0] = (weft_fused_op){.node = loop->node,
                               .kind = kind,
                               .n_in = loop->n_in,
                               .in = {0, 1, 2},
                               .n_out = loop->n_out,
                               .out = {0, 1}};
    loop->kind = WEFT_STEP_LOOP;
    loop->n_segments = loop->n_links = 1;
    loop->space = space;
    loop->links = links;
}

/* In front of a reduction: what it reduces is made of its operands. */
static void reduce_each(weft_step *loop, weft_fused_op *links)
{
    links[1] = (weft_fused_op){
        .node = loop->node, .kind = WEFT_LOOP_REDUCE, .n_in = 1, .in = {loop->n_in}, .n_out = 1};
    links[0].kind = WEFT_LOOP_ELEMENTS;
    links[0].out[0] = -1;
    loop->n_links = 2;
}

bool weft_as_loop(const weft_plan *plan, const weft_step *step, weft_fused_op *links,
                  weft_step *loop)
{
    *loop = *step;
    if (step->kind == WEFT_STEP_LOOP) return step->n_segments == 1;
    if (step->kind != WEFT_STEP_KERNEL || weft_step_accumulates(plan, step)) return false;
    const weft_op *op = plan->graph->nodes[step->node].op;
    if (op->element) {
        one_link(loop, WEFT_LOOP_ELEMENTS, step->out, links);
        return true;
    }
    if (op->row && op->row->finish) {
        one_link(loop, WEFT_LOOP_FINISH, step->out, links);
        return true;
    }
    if (!op->row || !reduces_rows(plan, step, &loop->row_dims)) return false;
    one_link(loop, WEFT_LOOP_REDUCE, step->in, links);
    if (op->row->each) reduce_each(loop, links);
    return true;
}

/* ---- one space for both ---------------------------------------------------------------------- */

typedef struct loop_space {
    uint32_t placed;
    unsigned row_dims;
} loop_space;

/* Are the dims of `rows` those of a space that are not its rows'? */
static bool are_its_rows(const weft_plan *plan, const loop_space *space, uint32_t rows)
{
    return space->row_dims != 0 &&
           find_row_dims(plan, space->placed, rows, n_dims_of(plan, rows)) == space->row_dims;
}

/* Over the elements of the same tensor, or one over the rows of the other. What follows the reduction of a whole tensor
 * is about one number, and stays with others of that kind: so reductions of several tensors do not wait for each other. */
static bool find_space(const weft_plan *plan, const weft_step *maker, const weft_step *step,
                       loop_space *both)
{
    const uint32_t a = maker->space[0], b = step->space[0];
    const int n_a = n_dims_of(plan, a), n_b = n_dims_of(plan, b);
    const bool is_finish = step->links[0].kind == WEFT_LOOP_FINISH;
    if (maker->links[0].kind == WEFT_LOOP_FINISH) return false; /* of states that are in memory */
    if (maker->row_dims == all_dims(n_a) && n_a > 0) return false;
    if (n_a > n_b || is_finish) {
        *both = (loop_space){a, maker->row_dims};
        return !step->row_dims && are_its_rows(plan, both, b);
    }
    *both = (loop_space){b, step->row_dims ? step->row_dims : maker->row_dims};
    if (n_a < n_b) return !maker->row_dims && are_its_rows(plan, both, a);
    return weft_same_dims(plan, a, b, n_a) &&
           (!maker->row_dims || !step->row_dims || maker->row_dims == step->row_dims);
}

/* What a link is in a space: told by the dims of its result. */
static weft_loop_kind kind_in(const weft_plan *plan, const loop_space *space,
                              const weft_fused_op *link)
{
    if (link->kind == WEFT_LOOP_REDUCE || link->kind == WEFT_LOOP_FINISH) return link->kind;
    const weft_node *node = &plan->graph->nodes[link->node];
    if (!node->op->element || !space->row_dims) return WEFT_LOOP_ELEMENTS;
    const int n_dims = plan->graph->tensors[node->out].type.shape.n_dims;
    return n_dims == n_dims_of(plan, space->placed) ? WEFT_LOOP_ELEMENTS : WEFT_LOOP_ROWS;
}

/* Does an op on elements read a value of rows that the loop makes? Then the row is gone through again. */
static bool reads_rows_again(const weft_plan *plan, const loop_space *space, const weft_step *maker,
                             const weft_step *step)
{
    const weft_step *const both[] = {maker, step};
    bool has_rows = false;
    for (int which = 0; which < 2; which++)
        for (int k = 0; k < both[which]->n_links; k++) {
            const weft_loop_kind kind = kind_in(plan, space, &both[which]->links[k]);
            if (kind == WEFT_LOOP_ELEMENTS && has_rows) return true;
            has_rows = has_rows || kind == WEFT_LOOP_REDUCE;
        }
    return false;
}

static int count_states(const weft_step *loop)
{
    int n = 0;
    for (int k = 0; k < loop->n_links; k++)
        n += loop->links[k].kind == WEFT_LOOP_REDUCE || loop->links[k].kind == WEFT_LOOP_FINISH;
    return n;
}

static int slots_of(const weft_plan *plan, uint32_t placed)
{
    return weft_loop_slots_of(plan->placed[placed].type.dtype);
}

/* Slots of what its links make. */
static int count_results(const weft_plan *plan, const weft_step *loop)
{
    const weft_graph *graph = plan->graph;
    int n = 0;
    for (int k = 0; k < loop->n_links; k++)
        for (int o = 0; o < loop->links[k].n_out; o++)
            n += weft_loop_slots_of(
                graph->tensors[graph->nodes[loop->links[k].node].out + (uint32_t)o].type.dtype);
    return n;
}

const weft_node *weft_loop_draws(const weft_plan *plan, const weft_step *loop)
{
    for (int k = 0; k < loop->n_links; k++) {
        const weft_node *node = &plan->graph->nodes[loop->links[k].node];
        const weft_element_attributes *attributes = node->attributes;
        if (node->op->element != NULL && attributes->random != 0) return node;
    }
    return NULL;
}

/* A loop has one mark of the trip that is made. */
static bool draw_alike(const weft_plan *plan, const weft_step *maker, const weft_step *step)
{
    const weft_node *a = weft_loop_draws(plan, maker), *b = weft_loop_draws(plan, step);
    if (a == NULL || b == NULL) return true;
    for (uint32_t i = 0; i < a->n_draws && a->n_draws == b->n_draws; i++)
        if (a->draws[i].scan != b->draws[i].scan || a->draws[i].level != b->draws[i].level ||
            a->draws[i].is_reversed != b->draws[i].is_reversed ||
            a->draws[i].is_over != b->draws[i].is_over)
            return false;
    return a->n_draws == b->n_draws;
}

bool weft_can_join(const weft_plan *plan, const weft_step *maker, const weft_step *step)
{
    loop_space both;
    if (!find_space(plan, maker, step, &both) || !draw_alike(plan, maker, step)) return false;
    int n_slots = count_results(plan, maker) + count_results(plan, step);
    for (int i = 0; i < maker->n_in; i++)
        n_slots += slots_of(plan, maker->in[i]);
    for (int i = 0; i < step->n_in; i++)
        if (weft_find_placed(maker->in, maker->n_in, step->in[i]) < 0 &&
            weft_find_placed(maker->out, maker->n_out, step->in[i]) < 0)
            n_slots += slots_of(plan, step->in[i]);
    if (n_slots > WEFT_LOOP_SLOTS || count_states(maker) + count_states(step) > WEFT_LOOP_STATES)
        return false;
    const int64_t row = count_dims(plan, both.placed, both.row_dims);
    const size_t bytes = weft_dtype_bytes(plan->placed[both.placed].type.dtype);
    const bool is_long =
        row * (int64_t)bytes > MOST_ROW_BYTES ||
        (row >= LONG_ROW && count_rows(plan, both.placed, both.row_dims) < MANY_ROWS);
    return !both.row_dims || !is_long || !reads_rows_again(plan, &both, maker, step);
}

/* ---- one loop of two ------------------------------------------------------------------------- */

/* A loop under construction, with room for all of both. */
typedef struct joining {
    uint32_t *in, *out;
    int n_in, n_out, n_links;
    weft_fused_op *links;
    int *slot_of; /* [operands of both] where step's, then maker's are now */
} joining;

static weft_status open_joining(weft_plan *plan, const weft_step *maker, const weft_step *step,
                                joining *j, weft_error *error)
{
    const size_t n_in = (size_t)(maker->n_in + step->n_in),
                 n_out = (size_t)(maker->n_out + step->n_out);
    const size_t n_links = (size_t)(maker->n_links + step->n_links);
    *j = (joining){.in = weft_arena_take(plan->arena, n_in * sizeof *j->in),
                   .out = weft_arena_take(plan->arena, n_out * sizeof *j->out),
                   .slot_of = weft_arena_take(plan->arena, n_in * sizeof *j->slot_of),
                   .links = weft_arena_take(plan->arena, n_links * sizeof *j->links)};
    if ((n_in && (!j->in || !j->slot_of)) || !j->out || !j->links)
        return weft_fail_memory(error, n_links * sizeof *j->links);
    return WEFT_OK;
}

/* The slot of a loop's result o, past its operands. */
static int slot_of_result(const weft_step *loop, int o)
{
    for (int k = 0; k < loop->n_links; k++)
        for (int i = 0; i < loop->links[k].n_out; i++)
            if (loop->links[k].out[i] == o) return weft_link_slot(loop, k) + i;
    return -1;
}

/* Operands: step's, without those that maker makes, then maker's new ones. */
static void place_operands(joining *j, const weft_step *maker, const weft_step *step)
{
    int *slot_of_maker = j->slot_of + step->n_in;
    for (int i = 0; i < step->n_in; i++) {
        if (weft_find_placed(maker->out, maker->n_out, step->in[i]) >= 0) continue;
        j->slot_of[i] = j->n_in;
        j->in[j->n_in++] = step->in[i];
    }
    for (int i = 0; i < maker->n_in; i++) {
        const int at = weft_find_placed(j->in, j->n_in, maker->in[i]);
        slot_of_maker[i] = at < 0 ? j->n_in : at;
        if (at < 0) j->in[j->n_in++] = maker->in[i];
    }
    for (int i = 0; i < step->n_in; i++) {
        const int o = weft_find_placed(maker->out, maker->n_out, step->in[i]);
        if (o >= 0) j->slot_of[i] = j->n_in + slot_of_result(maker, o);
    }
}

/* The links of `old`, whose operands are in `slot_of` and whose results begin at slot `first`. */
static void add_links(const weft_plan *plan, joining *j, const loop_space *space,
                      const weft_step *old, const int *slot_of, int first)
{
    for (int k = 0; k < old->n_links; k++) {
        weft_fused_op *link = &j->links[j->n_links++];
        *link = old->links[k];
        link->kind = kind_in(plan, space, link);
        for (int i = 0; i < link->n_in; i++) {
            const int slot = link->in[i];
            link->in[i] = slot < old->n_in ? slot_of[slot] : first + slot - old->n_in;
        }
    }
}

/* Results: step's, then those of maker that are kept. */
static void place_results(joining *j, const weft_step *maker, const weft_step *step,
                          const bool *keeps)
{
    for (int o = 0; o < step->n_out; o++)
        j->out[j->n_out++] = step->out[o];
    for (int k = 0; k < maker->n_links; k++)
        for (int i = 0; i < j->links[k].n_out; i++) {
            const int o = j->links[k].out[i];
            j->links[k].out[i] = o >= 0 && keeps[o] ? j->n_out : -1;
            if (o >= 0 && keeps[o]) j->out[j->n_out++] = maker->out[o];
        }
}

weft_status weft_join(weft_plan *plan, const weft_step *maker, const weft_step *step,
                      const bool *keeps, weft_step *joined, weft_error *error)
{
    joining j;
    loop_space both;
    find_space(plan, maker, step, &both);
    WEFT_TRY(open_joining(plan, maker, step, &j, error));
    uint32_t *placed = weft_arena_take(plan->arena, sizeof *placed);
    if (!placed) return weft_fail_memory(error, sizeof *placed);
    *placed = both.placed;
    place_operands(&j, maker, step);
    add_links(plan, &j, &both, maker, j.slot_of + step->n_in, j.n_in);
    add_links(plan, &j, &both, step, j.slot_of, j.n_in + weft_link_slot(maker, maker->n_links));
    place_results(&j, maker, step, keeps);
    *joined = *step;
    joined->n_in = j.n_in, joined->in = j.in;
    joined->n_out = j.n_out, joined->out = j.out;
    joined->n_links = j.n_links, joined->links = j.links;
    joined->space = placed, joined->row_dims = both.row_dims;
    return WEFT_OK;
}
