/* loop_slots.c: what the values of a loop are: of elements or of rows, in which pass they are there; and whether the loop
 * may be what it is said to be. See loop_making.h.
 */
#include "cpu/loop_making.h"

#include <string.h>

enum { MOST_PASSES = 64 };

/* ---- what the slots are ---------------------------------------------------------------------- */

static bool is_constant_in_row(const weft_making *m, int k)
{
    return m->space->row == 1 || weft_space_row_is_even(m->space, m->space->stride[k], 0);
}

static bool is_of_rows(const weft_loop_op *op)
{
    return op->kind != WEFT_LOOP_ELEMENTS;
}

/* The pass of an op; of one on rows, the pass after which it can run. */
static int pass_of(const weft_making *m, const weft_loop_op *op)
{
    int pass = weft_reads_rows(op) ? -1 : 0;
    for (int i = 0; i < op->n_in; i++) {
        const weft_loop_slot *x = &m->value[op->in[i]];
        if (x->op < 0) continue;
        pass = weft_most(pass, x->when + (x->of_rows && !weft_reads_rows(op)));
    }
    return pass;
}

/* What op k reads is there, and of the kind that it reads. */
static weft_status check_op(const weft_making *m, int k, int n_slots, weft_error *error)
{
    const weft_loop_op *op = &m->loop->op[k];
    for (int i = 0; i < op->n_in; i++) {
        const int slot = op->in[i];
        if (slot < 0 || slot >= n_slots)
            return weft_fail(error, WEFT_INTERNAL, "op %d of a loop reads slot %d of %d", k, slot,
                             n_slots);
        const weft_loop_slot *x = &m->value[slot];
        const bool is_row_there = x->op < 0 ? is_constant_in_row(m, slot) : x->of_rows;
        if ((weft_reads_rows(op) && !is_row_there) ||
            (op->kind != WEFT_LOOP_FINISH && x->width > 1))
            return weft_fail(error, WEFT_INTERNAL, "op %d of a loop cannot read slot %d", k, slot);
    }
    if (op->kind != WEFT_LOOP_ELEMENTS && m->segment->n_row_dims == 0)
        return weft_fail(error, WEFT_INTERNAL, "op %d of a loop without rows needs them", k);
    if (op->kind == WEFT_LOOP_REDUCE &&
        ((int)op->combine >= WEFT_COMBINES || !weft_reducers[op->combine].row[op->dtype]))
        return weft_fail(error, WEFT_INTERNAL, "op %d of a loop reduces what it cannot", k);
    return WEFT_OK;
}

weft_status weft_making_describe(weft_making *m, weft_error *error)
{
    const weft_loop *loop = m->loop;
    for (int k = 0; k < loop->n_in; k++)
        m->value[k] = (weft_loop_slot){
            .op = -1, .bytes = loop->in[k].bytes, .width = loop->in[k].width, .result = -1};
    int slot = loop->n_in;
    for (int k = 0; k < loop->n_ops; k++) {
        const weft_loop_op *op = &loop->op[k];
        WEFT_TRY(check_op(m, k, slot, error));
        const int pass = pass_of(m, op);
        if (!weft_reads_rows(op)) m->n_passes = weft_most(m->n_passes, pass + 1);
        m->first_slot[k] = slot;
        const int width = op->kind == WEFT_LOOP_REDUCE ? weft_combine_width(op->combine) : 1;
        for (int o = 0; o < op->n_out; o++)
            m->value[slot++] = (weft_loop_slot){.op = k,
                                                .which = o,
                                                .of_rows = is_of_rows(op),
                                                .bytes = op->bytes,
                                                .width = width,
                                                .when = pass,
                                                .result = -1};
    }
    if (m->n_passes > MOST_PASSES)
        return weft_fail(error, WEFT_INTERNAL, "a loop of %d passes", m->n_passes);
    return WEFT_OK;
}

/* ---- results that share memory with operands ------------------------------------------------- */

/* Is anything of operand k read? Of rows without elements that is what their own ops take. */
static bool is_read(const weft_making *m, int k)
{
    if (m->space->n_rows == 0) return false;
    if (m->space->row > 0) return true;
    for (int o = 0; o < m->loop->n_ops; o++)
        for (int i = 0; i < m->loop->op[o].n_in; i++)
            if (m->loop->op[o].in[i] == k && weft_reads_rows(&m->loop->op[o])) return true;
    return false;
}

/* The bytes that operand k spans, from its first on. What is not read spans none: a tensor without elements has no memory of its
 * own, and may lie where a result does. */
static int64_t operand_bytes(const weft_making *m, int k)
{
    const weft_space *s = m->space;
    if (!is_read(m, k)) return 0;
    int64_t last = m->loop->in[k].width - 1;
    for (int d = 0; d < s->n_dims; d++)
        last += (s->size[d] - 1) * s->stride[k][d];
    return (last + 1) * m->loop->in[k].bytes;
}

static bool lies_apart(const weft_space *s, int o)
{
    return s->is_apart != NULL && s->is_apart[o];
}

/* Does operand k lie as result o, of the elements of `v`, does? */
static bool lies_as(const weft_making *m, int k, int o, const weft_loop_slot *v)
{
    const weft_space *s = m->space;
    const int64_t *stride = s->stride[k];
    if (m->loop->in[k].bytes != v->bytes || m->loop->in[k].width != v->width) return false;
    if (lies_apart(s, o))
        return memcmp(stride, s->out_stride[o], (size_t)s->n_dims * sizeof *stride) == 0;
    if (v->of_rows)
        return is_constant_in_row(m, k) && weft_space_rows_are_even(s, stride, v->width);
    return weft_space_row_is_even(s, stride, 1) && weft_space_rows_are_even(s, stride, s->row);
}

static int64_t result_bytes(const weft_making *m, int o)
{
    const weft_space *s = m->space;
    const weft_loop_slot *v = &m->value[m->loop->out[o]];
    int64_t last = 0;
    if (!lies_apart(s, o)) return s->n_rows * (v->of_rows ? v->width : s->row) * v->bytes;
    for (int d = 0; d < s->n_dims; d++)
        last += (s->size[d] - 1) * s->out_stride[o][d];
    return (last + 1) * v->bytes;
}

static void find_bytes(const weft_making *m)
{
    for (int k = 0; k < m->loop->n_in; k++)
        m->space->in_bytes[k] = operand_bytes(m, k);
    for (int o = 0; o < m->loop->n_out; o++)
        m->space->out_bytes[o] = result_bytes(m, o);
}

bool weft_making_shares(const weft_making *m, int o, int k)
{
    return weft_space_shares(m->space, o, k);
}

static weft_status check_slots(const weft_making *m, weft_error *error)
{
    const weft_loop *loop = m->loop;
    for (int o = 0; o < loop->n_out; o++)
        if (loop->out[o] < loop->n_in || loop->out[o] >= m->n_slots)
            return weft_fail(error, WEFT_INTERNAL, "result %d of a loop is slot %d, no op's", o,
                             loop->out[o]);
    return WEFT_OK;
}

weft_status weft_making_check_results(const weft_making *m, weft_error *error)
{
    const weft_loop *loop = m->loop;
    const weft_space *s = m->space;
    WEFT_TRY(check_slots(m, error));
    find_bytes(m);
    for (int o = 0; o < loop->n_out; o++) {
        const weft_loop_slot *v = &m->value[loop->out[o]];
        for (int k = 0; k < loop->n_in; k++)
            if (weft_space_shares(s, o, k) && !(s->out[o] == s->data[k] && lies_as(m, k, o, v)))
                return weft_fail(error, WEFT_INTERNAL,
                                 "result %d of a loop shares memory with operand %d, which is not "
                                 "read in step",
                                 o, k);
        for (int p = 0; p < o; p++) /* parts of one thing lie between each other */
            if (!(lies_apart(s, o) && lies_apart(s, p)) &&
                weft_spans_meet(s->out[o], s->out_bytes[o], s->out[p], s->out_bytes[p]))
                return weft_fail(error, WEFT_INTERNAL, "results %d and %d of a loop share memory",
                                 p, o);
    }
    return WEFT_OK;
}
