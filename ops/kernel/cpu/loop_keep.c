/* loop_keep.c: what is kept of a loop's values from pass to pass, and which results are written in place. See
 * loop_making.h.
 *
 * An op writes its result to its place, unless that memory is an operand that is read after the op. Then it is copied
 * there at the end of the block, in the last pass that reads the operand (`hold_back`).
 */
#include "cpu/loop_making.h"
#include "cpu/nest.h"

/* The passes in which op k is run on elements. */
uint64_t weft_making_passes(const weft_making *m, int k)
{
    const weft_loop_slot *v = &m->value[m->first_slot[k]];
    if (weft_reads_rows(&m->loop->op[k]) || m->is_idle[k]) return 0;
    return v->keeping == WEFT_AGAIN && !v->of_rows ? v->need : weft_pass_bit(v->when);
}

/* From the last op to the first: what is read in which passes, and what becomes of values that later passes read. */
static void find_need(weft_making *m)
{
    int64_t kept = m->kept;
    for (int k = m->loop->n_ops - 1; k >= 0; k--) {
        weft_loop_slot *v = &m->value[m->first_slot[k]];
        if (!v->of_rows) {
            const int64_t bytes = m->space->rows * m->space->row * v->bytes + WEFT_SKEW;
            v->need |= weft_pass_bit(v->when);
            v->keeping = v->need == weft_pass_bit(v->when) ? WEFT_ONE_PASS
                         : v->result >= 0                  ? WEFT_IN_RESULT
                         : kept + bytes <= WEFT_KEPT       ? WEFT_KEPT_IN_LANE
                                                           : WEFT_AGAIN;
            kept += v->keeping == WEFT_KEPT_IN_LANE ? bytes : 0;
        }
        for (int i = 0; i < m->loop->op[k].n_in; i++) {
            weft_loop_slot *x = &m->value[m->loop->op[k].in[i]];
            if (!x->of_rows) x->need |= weft_making_passes(m, k);
        }
    }
}

/* The last time that operand k is read: pass * (n_ops + 1) + op; -1: never. */
static int last_read(const weft_making *m, int k)
{
    int last = -1;
    for (int q = 0; q < m->loop->n_ops; q++)
        for (int i = 0; i < m->loop->op[q].n_in; i++) {
            if (m->loop->op[q].in[i] != k) continue;
            for (int p = 0; p < m->n_passes; p++)
                if (weft_making_passes(m, q) & weft_pass_bit(p))
                    last = weft_most(last, p * (m->loop->n_ops + 1) + q);
        }
    return last;
}

/* The last time that the memory of result o is read as an operand. */
static int last_read_there(const weft_making *m, int o)
{
    int last = -1;
    for (int k = 0; k < m->loop->n_in; k++)
        if (weft_making_shares(m, o, k)) last = weft_most(last, last_read(m, k));
    return last;
}

bool weft_making_is_free(const weft_making *m, int o, int k)
{
    return last_read_there(m, o) <= m->value[m->first_slot[k]].when * (m->loop->n_ops + 1) + k;
}

/* A result whose memory is read in a later pass is needed until then. True when that is news. */
static bool hold_back(weft_making *m)
{
    bool is_new = false;
    for (int o = 0; o < m->loop->n_out; o++) {
        weft_loop_slot *v = &m->value[m->loop->out[o]];
        if (v->of_rows) continue;
        const int pass = weft_most(last_read_there(m, o) / (m->loop->n_ops + 1), v->when);
        is_new |= !(v->need & weft_pass_bit(pass));
        v->need |= weft_pass_bit(pass);
        m->wait[o] = pass;
    }
    return is_new;
}

static bool shares_any(const weft_making *m, int o)
{
    for (int k = 0; k < m->loop->n_in; k++)
        if (weft_making_shares(m, o, k)) return true;
    return false;
}

/* Which results their ops write straight away. */
void weft_making_keep(weft_making *m)
{
    for (int o = 0; o < m->loop->n_out; o++) {
        weft_loop_slot *v = &m->value[m->loop->out[o]];
        if (v->result < 0 && !shares_any(m, o)) v->result = o;
    }
    do
        find_need(m);
    while (hold_back(m));
    for (int o = 0; o < m->loop->n_out; o++) {
        weft_loop_slot *v = &m->value[m->loop->out[o]];
        if (v->result < 0 && !v->of_rows && weft_making_is_free(m, o, v->op)) {
            v->result = o;
            v->keeping = v->keeping == WEFT_ONE_PASS ? WEFT_ONE_PASS : WEFT_IN_RESULT;
        }
    }
}

bool weft_making_streams(const weft_making *m, int k)
{
    const weft_space *s = m->space;
    const int slot = m->first_slot[k];
    const weft_loop_slot *v = &m->value[slot];
    if (v->of_rows || v->result < 0 || s->n_rows * s->row * v->bytes < WEFT_STREAMED) return false;
    for (int q = 0; q < m->loop->n_ops; q++)
        for (int i = 0; i < m->loop->op[q].n_in; i++)
            if (m->loop->op[q].in[i] == slot) return false;
    return !shares_any(m, v->result);
}
