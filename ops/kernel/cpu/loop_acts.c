/* loop_acts.c: the acts of a loop, stage by stage: what is done once for a group between two passes, and for each of its
 * blocks in a pass. See loop_making.h.
 */
#include "cpu/loop_making.h"

#include <string.h>

void weft_making_add(weft_making *m, weft_act act)
{
    m->acts[m->n_acts++] = act;
}

/* ---- values of rows -------------------------------------------------------------------------- */

static void place_rows(weft_making *m, weft_loop_slot *v)
{
    v->rows = v->result >= 0 ? weft_making_result(m, v->result)
                             : weft_making_buffer(m, m->space->rows * v->width * v->bytes, 0);
}

static bool has_index(const weft_making *m, int op)
{
    for (int d = 0; d < m->space->n_dims; d++)
        if (m->space->index_stride[op][d] != 0) return true;
    return false;
}

static void add_operands(weft_making *m, const weft_loop_op *op, weft_act *act, bool of_rows)
{
    act->n_in = op->n_in;
    for (int i = 0; i < op->n_in; i++) {
        act->is_number[i] = !of_rows && weft_making_takes_number(m, act->number, i);
        act->x[i] = of_rows || act->is_number[i] ? weft_making_rows(m, op->in[i])
                                                 : m->value[op->in[i]].elements;
        act->x_bytes[i] = m->value[op->in[i]].bytes;
    }
}

static void make_row_op(weft_making *m, int k)
{
    const weft_loop_op *op = &m->loop->op[k];
    weft_act act = {.number = k, .bytes = op->bytes, .block = op->block, .finish = op->finish};
    add_operands(m, op, &act, true);
    for (int o = 0; o < op->n_out; o++) {
        weft_loop_slot *v = &m->value[m->first_slot[k] + o];
        place_rows(m, v);
        act.y[o] = v->rows;
    }
    const bool is_indexed = has_index(m, k);
    act.run = op->kind == WEFT_LOOP_FINISH ? weft_act_finish
              : is_indexed                 ? weft_act_indexed_rows
                                           : weft_act_rows;
    m->space->needs_outer |= is_indexed;
    weft_making_add(m, act);
}

static void store_state(weft_making *m, int k)
{
    const weft_loop_op *op = &m->loop->op[k];
    weft_loop_slot *v = &m->value[m->first_slot[k]];
    place_rows(m, v);
    weft_making_add(m, (weft_act){.run = weft_act_store,
                                  .x[0] = m->state[k],
                                  .y[0] = v->rows,
                                  .combine = op->combine,
                                  .dtype = op->dtype,
                                  .count = v->width});
}

static void clear_state(weft_making *m, int k)
{
    const weft_loop_op *op = &m->loop->op[k];
    const int width = weft_combine_width(op->combine);
    m->state[k] = weft_making_buffer(m, width * WEFT_COLUMNS * (int64_t)sizeof(double), 0);
    weft_making_add(m,
                    (weft_act){.run = weft_act_clear, .y[0] = m->state[k], .combine = op->combine});
}

/* What is done once between pass `before` and the one after it. */
static void make_between(weft_making *m, int before)
{
    const weft_loop *loop = m->loop;
    for (int k = 0; k < loop->n_ops; k++)
        if (loop->op[k].kind == WEFT_LOOP_REDUCE && m->value[m->first_slot[k]].when == before)
            store_state(m, k);
    for (int k = 0; k < loop->n_ops; k++)
        if (weft_reads_rows(&loop->op[k]) && m->value[m->first_slot[k]].when == before)
            make_row_op(m, k);
    for (int k = 0; k < loop->n_ops && before + 1 < m->n_passes; k++) {
        if (!(weft_making_passes(m, k) & weft_pass_bit(before + 1))) continue;
        for (int i = 0; i < loop->op[k].n_in; i++) {
            const int slot = loop->op[k].in[i];
            if (weft_making_takes_number(m, k, i))
                weft_making_rows(m, slot);
            else if (slot < loop->n_in && m->value[slot].elements == 0)
                m->value[slot].elements = weft_making_bring(m, slot, false);
            else if (slot >= loop->n_in && m->value[slot].of_rows)
                weft_making_spread(m, slot);
        }
        if (loop->op[k].kind == WEFT_LOOP_REDUCE) clear_state(m, k);
    }
}

/* ---- a pass over the blocks ------------------------------------------------------------------ */

static bool reads_elements(const weft_making *m, int slot, int pass)
{
    for (int k = 0; k < m->loop->n_ops; k++) {
        const weft_loop_op *op = &m->loop->op[k];
        for (int i = 0; i < op->n_in && weft_making_passes(m, k) & weft_pass_bit(pass); i++)
            if (op->in[i] == slot && !weft_making_takes_number(m, k, i)) return true;
    }
    return false;
}

/* Operands that are brought for each block. */
static void bring_blocks(weft_making *m, int pass)
{
    for (int slot = 0; slot < m->loop->n_in; slot++) {
        weft_loop_slot *v = &m->value[slot];
        if (!(v->need & weft_pass_bit(pass)) || (v->elements != 0 && !v->in_blocks)) continue;
        if (!reads_elements(m, slot, pass)) continue;
        v->elements = weft_making_bring(m, slot, true);
        v->in_blocks = v->elements != 0; /* else only numbers of it are read so far */
    }
}

/* The last op of this pass that reads each value; copies come after all ops. */
static void find_last(weft_making *m, int pass)
{
    for (int k = 0; k < m->loop->n_ops; k++) {
        if (!(weft_making_passes(m, k) & weft_pass_bit(pass))) continue;
        m->value[m->first_slot[k]].last = k;
        for (int i = 0; i < m->loop->op[k].n_in; i++)
            m->value[m->loop->op[k].in[i]].last = k;
    }
    for (int o = 0; o < m->loop->n_out; o++)
        if (m->wait[o] == pass) m->value[m->loop->out[o]].last = m->loop->n_ops;
}

/* Where op k puts its elements in this pass. */
static int place_elements(weft_making *m, int k, int pass)
{
    weft_loop_slot *v = &m->value[m->first_slot[k]];
    if (v->result >= 0) return weft_making_result(m, v->result);
    if (v->keeping == WEFT_KEPT_IN_LANE && pass == v->when)
        return weft_making_buffer(m, m->space->rows * m->space->row * v->bytes, v->bytes);
    return weft_making_share_buffer(m, k, v->last);
}

/* How the index of op k runs through a block. */
static bool index_is_even(const weft_making *m, int k)
{
    const weft_space *s = m->space;
    const int64_t *stride = s->index_stride[k], step = stride[s->n_dims - 1];
    return weft_space_row_is_even(s, stride, step) &&
           (s->rows == 1 || weft_space_rows_are_even(s, stride, step * s->row));
}

/* Op k goes on with what reduction r has left. */
static void make_resuming_op(weft_making *m, int k, int r, int pass)
{
    const weft_loop_op *reduce = &m->loop->op[r];
    const int *difference = m->loop->op[k].difference;
    weft_act act = {.run = weft_act_resume,
                    .number = k,
                    .bytes = m->loop->op[k].bytes,
                    .combine = reduce->combine,
                    .dtype = reduce->dtype};
    act.x[0] = m->left[r].elements, act.x[1] = m->left[r].shifts;
    for (int i = 0; i < 2; i++) /* the maximum was taken off first */
        act.x[2 + i] = m->value[m->loop->op[difference[1 - i] - 1].in[1]].rows;
    act.y[0] = m->value[m->first_slot[k]].elements = place_elements(m, k, pass);
    weft_making_add(m, act);
}

static void make_element_op(weft_making *m, int k, int pass)
{
    if (m->resumes[k]) {
        make_resuming_op(m, k, m->resumes[k] - 1, pass);
        return;
    }
    const weft_loop_op *op = &m->loop->op[k];
    weft_act act = {.number = k, .bytes = op->bytes, .block = op->block, .run = weft_act_elements};
    add_operands(m, op, &act, false);
    weft_loop_slot *v = &m->value[m->first_slot[k]];
    act.y[0] = v->elements = place_elements(m, k, pass);
    const bool is_in_memory =
        v->result >= 0 || (v->keeping != WEFT_ONE_PASS && v->keeping != WEFT_AGAIN);
    act.only_for = is_in_memory ? -1 : v->last;
    if (has_index(m, k)) {
        act.run = index_is_even(m, k) ? weft_act_indexed : weft_act_pieces;
        m->space->needs_outer = true;
    }
    weft_making_add(m, act);
}

/* Where reduction k leaves elements: in the result that they become, if nobody needs what is there any more. */
static void place_left(weft_making *m, int k)
{
    weft_left *left = &m->left[k];
    const weft_space *s = m->space;
    const weft_loop_slot *v = &m->value[m->first_slot[left->by - 1]];
    const int64_t n_pieces = weft_space_pieces(s, s->row);
    const int64_t n_shifts = n_pieces > s->rows ? n_pieces : s->rows;
    left->elements = v->result >= 0 && weft_making_is_free(m, v->result, k)
                         ? weft_making_result(m, v->result)
                         : weft_making_buffer(m, s->rows * s->row * v->bytes, v->bytes);
    left->shifts = weft_making_buffer(m, n_shifts * (int64_t)sizeof(double), 0);
}

/* Is operand `slot` read in the first pass, out of memory where the next block's elements follow this one's? */
static bool comes_from_memory(const weft_making *m, int slot)
{
    const weft_loop_slot *v = &m->value[slot];
    const weft_ref *ref = &m->space->refs[v->elements];
    return slot < m->loop->n_in && v->need & weft_pass_bit(0) && v->elements != 0 && ref->data &&
           ref->step == v->bytes;
}

/* Is there a next block to ask memory for? One op alone reads on by itself while it works, and so do two without rows: there the
 * asking itself takes a twentieth of the time. */
static bool is_worth_asking(const weft_making *m)
{
    const int alone = m->segment->n_row_dims == 0 ? 2 : 1;
    return m->space->n_groups * m->space->n_parts > 1 && m->loop->n_ops > alone;
}

/* The reduction that asks for the next block of operand `slot` on its way through this one; -1. */
static int reduction_that_asks(const weft_making *m, int slot)
{
    for (int k = 0; k < m->loop->n_ops; k++) {
        const weft_loop_op *op = &m->loop->op[k];
        if (op->kind == WEFT_LOOP_REDUCE && op->in[0] == slot)
            return weft_reducers[op->combine].asks[op->dtype] ? k : -1;
    }
    return -1;
}

static void make_reduction(weft_making *m, int k)
{
    const weft_loop_op *op = &m->loop->op[k];
    weft_act act = {.run = weft_act_reduce,
                    .asks = is_worth_asking(m) && comes_from_memory(m, op->in[0]) &&
                            reduction_that_asks(m, op->in[0]) == k,
                    .number = k,
                    .bytes = (int)weft_dtype_bytes(op->dtype),
                    .combine = op->combine,
                    .dtype = op->dtype};
    add_operands(m, op, &act, false);
    act.y[0] = m->state[k];
    if (m->left[k].by) {
        place_left(m, k);
        act.run = weft_act_leave;
        act.y[1] = m->left[k].elements, act.x[1] = m->left[k].shifts;
    }
    weft_making_add(m, act);
}

/* Before op k: its share of the operands whose next block is asked for while this one is worked on. Not all at once: a core
 * waits for so many lines at a time. */
static void ask_ahead(weft_making *m, int k, int n_asked, int *next)
{
    if (!is_worth_asking(m)) return;
    for (int64_t i = 0, seen = 0; i < m->loop->n_in; i++) {
        if (!comes_from_memory(m, (int)i) || seen++ < *next) continue;
        if (*next * m->loop->n_ops > k * n_asked) return;
        ++*next;
        if (reduction_that_asks(m, (int)i) >= 0) continue;
        weft_making_add(m, (weft_act){.run = weft_act_ahead,
                                      .x[0] = m->value[i].elements,
                                      .bytes = m->value[i].bytes});
    }
}

static weft_status make_pass(weft_making *m, int pass, weft_error *error)
{
    int n_asked = 0, next = 0;
    find_last(m, pass);
    for (int b = 0; b < m->n_buffers; b++)
        m->buffer_last[b] = -1;
    bring_blocks(m, pass);
    for (int slot = 0; slot < m->loop->n_in && pass == 0; slot++)
        n_asked += comes_from_memory(m, slot);
    for (int k = 0; k < m->loop->n_ops; k++) {
        if (pass == 0) ask_ahead(m, k, n_asked, &next);
        if (!(weft_making_passes(m, k) & weft_pass_bit(pass))) continue;
        if (m->loop->op[k].kind == WEFT_LOOP_REDUCE)
            make_reduction(m, k);
        else
            make_element_op(m, k, pass);
    }
    WEFT_TRY(weft_making_relay(m, error));
    for (int o = 0; o < m->loop->n_out; o++) {
        const weft_loop_slot *v = &m->value[m->loop->out[o]];
        if (v->of_rows || v->result == o || m->wait[o] != pass) continue;
        weft_making_add(m, (weft_act){.run = weft_act_copy,
                                      .x[0] = v->elements,
                                      .y[0] = weft_making_result(m, o),
                                      .bytes = v->bytes});
    }
    return WEFT_OK;
}

static void copy_rows(weft_making *m)
{
    for (int o = 0; o < m->loop->n_out; o++) {
        const weft_loop_slot *v = &m->value[m->loop->out[o]];
        if (!v->of_rows || v->result == o) continue;
        weft_making_add(m, (weft_act){.run = weft_act_copy_rows,
                                      .x[0] = v->rows,
                                      .y[0] = weft_making_result(m, o),
                                      .count = v->width,
                                      .bytes = v->bytes});
    }
}

/* ---- all of it ------------------------------------------------------------------------------- */

static weft_status end_stage(weft_making *m, weft_error *error)
{
    const size_t bytes = (size_t)m->n_acts * sizeof *m->acts;
    weft_act *acts = weft_arena_take(m->arena, bytes + 1);
    if (!acts) return weft_fail_memory(error, bytes);
    memcpy(acts, m->acts, bytes);
    m->space->stages[m->space->n_stages++] = (weft_stage){m->n_acts, acts};
    m->n_acts = 0;
    return WEFT_OK;
}

weft_status weft_making_acts(weft_making *m, weft_error *error)
{
    weft_space *s = m->space;
    for (int pass = 0; pass < m->n_passes; pass++) {
        make_between(m, pass - 1);
        WEFT_TRY(end_stage(m, error));
        WEFT_TRY(make_pass(m, pass, error));
        WEFT_TRY(end_stage(m, error));
    }
    make_between(m, m->n_passes - 1);
    copy_rows(m);
    WEFT_TRY(end_stage(m, error));
    s->n_refs = m->n_refs;
    s->buffers = weft_space_tables(s);
    for (int k = 1; k < s->n_refs; k++)
        if (!s->refs[k].data) s->refs[k].offset += s->buffers;
    s->bytes = s->buffers + m->scratch;
    if (s->bytes > WEFT_LANE_SCRATCH)
        return weft_fail(error, WEFT_INTERNAL,
                         "a loop of %d operands and %d ops needs %lld bytes of a lane's %d",
                         m->loop->n_in, m->loop->n_ops, (long long)s->bytes, WEFT_LANE_SCRATCH);
    return WEFT_OK;
}
