/* loop_leave.c: which reductions leave something behind of each element, for the op that goes on with it. See
 * loop_making.h.
 *
 * exp((x - f) - g) needs no exp, if a finish makes f and g from the state of x's own row. The reduction has computed
 * exp(x - shift) already, and a factor for each block turns one into the other. It leaves that in the memory of the
 * result that it becomes, else in the lane's scratch; the differences are not computed if nobody else asks for them.
 */
#include "cpu/loop_making.h"

/* The op whose result number `of` the slot is, of one kind; -1. */
static int maker_of(const weft_making *m, int slot, int of, weft_loop_kind kind)
{
    const int k = m->value[slot].op;
    return k >= 0 && m->loop->op[k].kind == kind && m->first_slot[k] + of == slot ? k : -1;
}

/* The reduction that op k may resume; -1. */
static int find_reduction(const weft_making *m, int k)
{
    const weft_loop_op *op = &m->loop->op[k];
    if (op->kind != WEFT_LOOP_ELEMENTS || !op->difference[0] || !op->difference[1]) return -1;
    const weft_loop_op *outer = &m->loop->op[op->difference[0] - 1];
    const weft_loop_op *inner = &m->loop->op[op->difference[1] - 1];
    const int finish = maker_of(m, inner->in[1], 0, WEFT_LOOP_FINISH);
    if (finish < 0 || maker_of(m, outer->in[1], 1, WEFT_LOOP_FINISH) != finish) return -1;
    const int r = maker_of(m, m->loop->op[finish].in[0], 0, WEFT_LOOP_REDUCE);
    if (r < 0 || m->loop->op[r].in[0] != inner->in[0]) return -1;
    const weft_loop_op *reduce = &m->loop->op[r];
    const bool can_leave = weft_reducers[reduce->combine].leave[reduce->dtype] != NULL;
    return can_leave && op->bytes == (int)weft_dtype_bytes(reduce->dtype) ? r : -1;
}

/* Is op k's first result a result of the loop, or read by an op that is computed and resumes nothing? */
static bool is_asked_for(const weft_making *m, int k)
{
    for (int o = 0; o < m->loop->n_out; o++)
        if (m->value[m->loop->out[o]].op == k) return true;
    for (int q = 0; q < m->loop->n_ops; q++)
        for (int i = 0; i < m->loop->op[q].n_in && !m->resumes[q] && !m->is_idle[q]; i++)
            if (m->loop->op[q].in[i] == m->first_slot[k]) return true;
    return false;
}

void weft_making_leave(weft_making *m)
{
    const int64_t count = m->space->rows * m->space->row;
    for (int k = 0; k < m->loop->n_ops; k++) {
        const int r = find_reduction(m, k);
        const int64_t bytes = count * m->loop->op[k].bytes;
        if (r < 0 || m->left[r].by || m->kept + bytes > WEFT_KEPT / 2) continue;
        m->resumes[k] = r + 1;
        m->left[r].by = k + 1;
        m->kept += bytes;
    }
    for (int k = 0; k < m->loop->n_ops; k++)
        for (int i = 0; i < 2 && m->resumes[k]; i++) {
            const int difference = m->loop->op[k].difference[i] - 1;
            m->is_idle[difference] = !is_asked_for(m, difference);
        }
}
