/* loop_prepare.c: a loop becomes lists of acts. See loop_prepared.h.
 *
 * A *pass* goes over the blocks of a group once. An op on elements belongs to the first pass in which its operands are
 * there: one that reads what a reduction of pass p gives belongs to pass p + 1. What later passes need of a value is
 * read from its result in memory, or kept in the lane's scratch, or computed again there (`need`).
 *
 * A result is written where it belongs by its op, unless that memory is an operand that is read after the op: then it is
 * copied there at the end of the block, in the last pass that reads the operand (`hold_back`).
 */
#include "cpu/loop_prepared.h"

#include <string.h>

enum {
    GRAIN = 16384, /* elements times ops that are worth waking a lane */
    KEPT =
        1 << 18, /* bytes of what is kept from pass to pass: it stays in the second-level cache */
    SKEW = 64,   /* between buffers, so that they do not fall on the same cache sets */
    MOST_PASSES = 64
};

typedef enum keeping { ONE_PASS, IN_RESULT, KEPT_IN_LANE, AGAIN } keeping;

/* What is known of a slot. */
typedef struct value {
    int op, which; /* -1: an operand. Which of the op's results. */
    bool of_rows;
    int bytes, width;
    int when;        /* its pass; of rows: the pass after which it is there, -1 before the first */
    uint64_t need;   /* passes that read it, or for an op's, that it is computed or kept for     */
    keeping keeping; /* of elements */
    int result;      /* that its op may write straight away; -1: none                            */
    int elements, rows; /* refs: as a block of elements; as values of the rows; 0: not yet       */
    bool in_blocks;     /* an operand that is brought for each block                             */
    int last;           /* the last op that reads it in the pass at hand                         */
} value;

typedef struct making {
    const weft_loop *loop;
    const weft_loop_segment *segment;
    weft_space *space;
    weft_arena *arena, *own; /* what stays; what does not */
    int n_slots, n_passes;
    value *value;    /* [n_slots] */
    int *first_slot; /* [n_ops] of an op's results */
    int *state;      /* [n_ops] refs of reductions' states */
    int *out;        /* [n_out] refs */
    int *wait;       /* [n_out] the pass at whose blocks' end it is copied; -1: it is not */
    int64_t *outer;  /* [n_in][n_outer] bytes */
    weft_act *acts;  /* of the stage that is being made */
    int n_acts, n_refs;
    int64_t scratch;               /* bytes of buffers so far */
    int64_t block;                 /* elements of the largest block */
    int block_bytes;               /* of its largest numbers */
    int n_buffers;                 /* block buffers that ops share */
    int *buffer_ref, *buffer_last; /* [n_ops] and the last op that reads what is in it */
} making;

/* ---- what the slots are ---------------------------------------------------------------------- */

static bool is_constant_in_row(const making *m, int k)
{
    return m->space->row == 1 || weft_space_row_is_even(m->space, m->space->stride[k], 0);
}

static bool is_of_rows(const weft_loop_op *op)
{
    return op->kind != WEFT_LOOP_ELEMENTS;
}

static bool reads_rows(const weft_loop_op *op)
{
    return op->kind == WEFT_LOOP_ROWS || op->kind == WEFT_LOOP_FINISH;
}

static int most(int a, int b)
{
    return a > b ? a : b;
}

/* The pass of an op; of one on rows, the pass after which it can run. */
static int pass_of(const making *m, const weft_loop_op *op)
{
    int pass = reads_rows(op) ? -1 : 0;
    for (int i = 0; i < op->n_in; i++) {
        const value *x = &m->value[op->in[i]];
        if (x->op < 0) continue;
        pass = most(pass, x->when + (x->of_rows && !reads_rows(op)));
    }
    return pass;
}

/* What op k reads is there, and of the kind that it reads. */
static weft_status check_op(const making *m, int k, int n_slots, weft_error *error)
{
    const weft_loop_op *op = &m->loop->op[k];
    for (int i = 0; i < op->n_in; i++) {
        const int slot = op->in[i];
        if (slot < 0 || slot >= n_slots)
            return weft_fail(error, WEFT_INTERNAL, "op %d of a loop reads slot %d of %d", k, slot,
                             n_slots);
        const value *x = &m->value[slot];
        const bool is_row_there = x->op < 0 ? is_constant_in_row(m, slot) : x->of_rows;
        if ((reads_rows(op) && !is_row_there) || (op->kind != WEFT_LOOP_FINISH && x->width > 1))
            return weft_fail(error, WEFT_INTERNAL, "op %d of a loop cannot read slot %d", k, slot);
    }
    if (op->kind != WEFT_LOOP_ELEMENTS && m->segment->n_row_dims == 0)
        return weft_fail(error, WEFT_INTERNAL, "op %d of a loop without rows needs them", k);
    if (op->kind == WEFT_LOOP_REDUCE &&
        ((int)op->combine >= WEFT_COMBINES || !weft_reducers[op->combine].row[op->dtype]))
        return weft_fail(error, WEFT_INTERNAL, "op %d of a loop reduces what it cannot", k);
    return WEFT_OK;
}

static weft_status describe_slots(making *m, weft_error *error)
{
    const weft_loop *loop = m->loop;
    for (int k = 0; k < loop->n_in; k++)
        m->value[k] =
            (value){.op = -1, .bytes = loop->in[k].bytes, .width = loop->in[k].width, .result = -1};
    int slot = loop->n_in;
    for (int k = 0; k < loop->n_ops; k++) {
        const weft_loop_op *op = &loop->op[k];
        WEFT_TRY(check_op(m, k, slot, error));
        const int pass = pass_of(m, op);
        if (!reads_rows(op)) m->n_passes = most(m->n_passes, pass + 1);
        m->first_slot[k] = slot;
        const int width = op->kind == WEFT_LOOP_REDUCE ? weft_combine_width(op->combine) : 1;
        for (int o = 0; o < op->n_out; o++)
            m->value[slot++] = (value){.op = k,
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

/* The bytes that operand k spans, from its first on. */
static int64_t operand_bytes(const making *m, int k)
{
    const weft_space *s = m->space;
    int64_t last = m->loop->in[k].width - 1;
    for (int d = 0; d < s->n_dims; d++)
        last += (s->size[d] - 1) * s->stride[k][d];
    return (last + 1) * m->loop->in[k].bytes;
}

/* Does operand k lie as a result with the elements of `v` does? */
static bool lies_as(const making *m, int k, const value *v)
{
    const weft_space *s = m->space;
    const int64_t *stride = s->stride[k];
    if (m->loop->in[k].bytes != v->bytes || m->loop->in[k].width != v->width) return false;
    if (v->of_rows)
        return is_constant_in_row(m, k) && weft_space_rows_are_even(s, stride, v->width);
    return weft_space_row_is_even(s, stride, 1) && weft_space_rows_are_even(s, stride, s->row);
}

static int64_t result_bytes(const making *m, const value *v)
{
    return m->space->n_rows * (v->of_rows ? v->width : m->space->row) * v->bytes;
}

static bool meet(const char *a, int64_t a_bytes, const char *b, int64_t b_bytes)
{
    return a && b && a < b + b_bytes && b < a + a_bytes;
}

static bool shares(const making *m, int o, int k)
{
    const value *v = &m->value[m->loop->out[o]];
    return meet(m->segment->out[o], result_bytes(m, v), m->space->data[k], operand_bytes(m, k));
}

static weft_status check_results(const making *m, weft_error *error)
{
    const weft_loop *loop = m->loop;
    for (int o = 0; o < loop->n_out; o++) {
        if (loop->out[o] < loop->n_in || loop->out[o] >= m->n_slots)
            return weft_fail(error, WEFT_INTERNAL, "result %d of a loop is slot %d, no op's", o,
                             loop->out[o]);
        const value *v = &m->value[loop->out[o]];
        for (int k = 0; k < loop->n_in; k++)
            if (shares(m, o, k) && !(m->segment->out[o] == m->space->data[k] && lies_as(m, k, v)))
                return weft_fail(error, WEFT_INTERNAL,
                                 "result %d of a loop shares memory with operand %d, which is not "
                                 "read in step",
                                 o, k);
        for (int p = 0; p < o; p++)
            if (meet(m->segment->out[o], result_bytes(m, v), m->segment->out[p],
                     result_bytes(m, &m->value[loop->out[p]])))
                return weft_fail(error, WEFT_INTERNAL, "results %d and %d of a loop share memory",
                                 p, o);
    }
    return WEFT_OK;
}

static bool shares_any(const making *m, int o)
{
    for (int k = 0; k < m->loop->n_in; k++)
        if (shares(m, o, k)) return true;
    return false;
}

/* ---- keeping values from pass to pass -------------------------------------------------------- */

static uint64_t bit(int pass)
{
    return (uint64_t)1 << pass;
}

/* The passes in which op k is run on elements. */
static uint64_t passes_of(const making *m, int k)
{
    const value *v = &m->value[m->first_slot[k]];
    if (reads_rows(&m->loop->op[k])) return 0;
    return v->keeping == AGAIN && !v->of_rows ? v->need : bit(v->when);
}

/* From the last op to the first: what is read in which passes, and what becomes of values that later passes read. */
static void find_need(making *m)
{
    int64_t kept = 0;
    for (int k = m->loop->n_ops - 1; k >= 0; k--) {
        value *v = &m->value[m->first_slot[k]];
        if (!v->of_rows) {
            const int64_t bytes = m->space->rows * m->space->row * v->bytes + SKEW;
            v->need |= bit(v->when);
            v->keeping = v->need == bit(v->when) ? ONE_PASS
                         : v->result >= 0        ? IN_RESULT
                         : kept + bytes <= KEPT  ? KEPT_IN_LANE
                                                 : AGAIN;
            kept += v->keeping == KEPT_IN_LANE ? bytes : 0;
        }
        for (int i = 0; i < m->loop->op[k].n_in; i++) {
            value *x = &m->value[m->loop->op[k].in[i]];
            if (!x->of_rows) x->need |= passes_of(m, k);
        }
    }
}

/* The last time that operand k is read: pass * (n_ops + 1) + op; -1: never. */
static int last_read(const making *m, int k)
{
    int last = -1;
    for (int q = 0; q < m->loop->n_ops; q++)
        for (int i = 0; i < m->loop->op[q].n_in; i++) {
            if (m->loop->op[q].in[i] != k) continue;
            for (int p = 0; p < m->n_passes; p++)
                if (passes_of(m, q) & bit(p)) last = most(last, p * (m->loop->n_ops + 1) + q);
        }
    return last;
}

/* The last time that the memory of result o is read as an operand. */
static int last_read_there(const making *m, int o)
{
    int last = -1;
    for (int k = 0; k < m->loop->n_in; k++)
        if (shares(m, o, k)) last = most(last, last_read(m, k));
    return last;
}

/* A result whose memory is read in a later pass is needed until then. True when that is news. */
static bool hold_back(making *m)
{
    bool is_new = false;
    for (int o = 0; o < m->loop->n_out; o++) {
        value *v = &m->value[m->loop->out[o]];
        if (v->of_rows) continue;
        const int pass = most(last_read_there(m, o) / (m->loop->n_ops + 1), v->when);
        is_new |= !(v->need & bit(pass));
        v->need |= bit(pass);
        m->wait[o] = pass;
    }
    return is_new;
}

/* Which results their ops write straight away. */
static void choose_results(making *m)
{
    for (int o = 0; o < m->loop->n_out; o++) {
        value *v = &m->value[m->loop->out[o]];
        if (v->result < 0 && !shares_any(m, o)) v->result = o;
    }
    do
        find_need(m);
    while (hold_back(m));
    for (int o = 0; o < m->loop->n_out; o++) {
        value *v = &m->value[m->loop->out[o]];
        if (v->result < 0 && !v->of_rows &&
            last_read_there(m, o) <= v->when * (m->loop->n_ops + 1) + v->op) {
            v->result = o;
            v->keeping = v->keeping == ONE_PASS ? ONE_PASS : IN_RESULT;
        }
    }
}

/* ---- refs, buffers, acts --------------------------------------------------------------------- */

static int add_ref(making *m, weft_ref ref)
{
    m->space->refs[m->n_refs] = ref;
    return m->n_refs++;
}

/* Memory of a lane: rows `row` bytes apart when each group has its own. step: as in a ref. */
static int take_buffer(making *m, int64_t bytes, int64_t step)
{
    const int64_t at = m->scratch;
    m->scratch += (bytes + 63) / 64 * 64 + SKEW;
    return add_ref(m, (weft_ref){.offset = at, .step = step});
}

static void add_act(making *m, weft_act act)
{
    m->acts[m->n_acts++] = act;
}

/* Operand k where it lies. `step` bytes per element along the row, `rows` numbers from row to row when they are even. */
static int operand_ref(making *m, int k, int64_t step, int64_t rows)
{
    weft_space *s = m->space;
    const int bytes = m->value[k].bytes;
    weft_ref ref = {.data = (char *)s->data[k], .step = step};
    if (weft_space_rows_are_even(s, s->stride[k], rows)) {
        ref.row = rows * bytes;
    } else if (!weft_space_rows_are_even(s, s->stride[k], 0)) {
        int64_t *outer = m->outer + (size_t)k * (WEFT_MAX_DIMS + 1);
        for (int d = 0; d < s->n_outer; d++)
            outer[d] = s->stride[k][d] * bytes;
        ref.outer = outer;
        s->needs_outer = true;
    }
    return add_ref(m, ref);
}

/* Operand k as a block of elements; when it has to be brought for each block, `acts` are a block's. */
static int operand_elements(making *m, int k, bool in_blocks)
{
    weft_space *s = m->space;
    value *v = &m->value[k];
    const int64_t *stride = s->stride[k];
    const bool is_contiguous = weft_space_row_is_even(s, stride, 1);
    const bool is_constant = weft_space_row_is_even(s, stride, 0);
    const bool is_each_row = weft_space_rows_are_even(s, stride, 0);
    weft_act act = {.number = k, .bytes = v->bytes};
    if (is_contiguous && (s->rows == 1 || weft_space_rows_are_even(s, stride, s->row)))
        return operand_ref(m, k, v->bytes, s->row);
    if (s->rows == 1 ? is_constant : is_each_row) {
        if (in_blocks) return 0; /* once for a group */
        act.run = weft_act_repeat;
        act.count = s->rows == 1 ? s->part : 0;
        act.x[0] = operand_ref(m, k, 0, 0);
    } else {
        if (in_blocks != (s->n_parts > 1)) return 0;
        act.run = weft_act_bring;
    }
    s->needs_outer |= act.count == 0;
    if (v->elements == 0) v->elements = take_buffer(m, m->block * v->bytes, 0);
    act.y[0] = v->elements;
    add_act(m, act);
    return act.y[0];
}

/* The values of rows that slot `slot` is, as a block of elements. */
static void spread(making *m, int slot)
{
    value *v = &m->value[slot];
    if (v->elements != 0) return;
    if (m->space->row == 1) {
        v->elements = v->rows;
        return;
    }
    v->elements = take_buffer(m, m->block * v->bytes, 0);
    add_act(m, (weft_act){.run = weft_act_spread,
                          .x[0] = v->rows,
                          .y[0] = v->elements,
                          .count = m->space->part,
                          .bytes = v->bytes});
}

static int operand_rows(making *m, int k)
{
    weft_space *s = m->space;
    value *v = &m->value[k];
    if (v->rows != 0) return v->rows;
    if (s->rows == 1 || weft_space_rows_are_even(s, s->stride[k], v->width))
        return v->rows = operand_ref(m, k, 0, v->width);
    v->rows = take_buffer(m, s->rows * v->width * v->bytes, 0);
    s->needs_outer = true;
    add_act(m, (weft_act){.run = weft_act_bring_rows,
                          .number = k,
                          .y[0] = v->rows,
                          .count = v->width,
                          .bytes = v->bytes});
    return v->rows;
}

static int read_rows(making *m, int slot)
{
    return slot < m->loop->n_in ? operand_rows(m, slot) : m->value[slot].rows;
}

static int result_ref(making *m, int o)
{
    if (m->out[o] != 0) return m->out[o];
    const value *v = &m->value[m->loop->out[o]];
    const int64_t row = (v->of_rows ? v->width : m->space->row) * v->bytes;
    return m->out[o] = add_ref(m, (weft_ref){.data = m->segment->out[o],
                                             .row = row,
                                             .step = v->of_rows ? 0 : v->bytes});
}

/* ---- values of rows -------------------------------------------------------------------------- */

static void place_rows(making *m, value *v)
{
    v->rows = v->result >= 0 ? result_ref(m, v->result)
                             : take_buffer(m, m->space->rows * v->width * v->bytes, 0);
}

static bool has_index(const making *m, int op)
{
    for (int d = 0; d < m->space->n_dims; d++)
        if (m->space->index_stride[op][d] != 0) return true;
    return false;
}

static void add_operands(making *m, const weft_loop_op *op, weft_act *act, bool of_rows)
{
    act->n_in = op->n_in;
    for (int i = 0; i < op->n_in; i++) {
        act->x[i] = of_rows ? read_rows(m, op->in[i]) : m->value[op->in[i]].elements;
        act->x_bytes[i] = m->value[op->in[i]].bytes;
    }
}

static void make_row_op(making *m, int k)
{
    const weft_loop_op *op = &m->loop->op[k];
    weft_act act = {.number = k, .bytes = op->bytes, .block = op->block, .finish = op->finish};
    add_operands(m, op, &act, true);
    for (int o = 0; o < op->n_out; o++) {
        value *v = &m->value[m->first_slot[k] + o];
        place_rows(m, v);
        act.y[o] = v->rows;
    }
    const bool is_indexed = has_index(m, k);
    act.run = op->kind == WEFT_LOOP_FINISH ? weft_act_finish
              : is_indexed                 ? weft_act_indexed_rows
                                           : weft_act_rows;
    m->space->needs_outer |= is_indexed;
    add_act(m, act);
}

static void store_state(making *m, int k)
{
    const weft_loop_op *op = &m->loop->op[k];
    value *v = &m->value[m->first_slot[k]];
    place_rows(m, v);
    add_act(m, (weft_act){.run = weft_act_store,
                          .x[0] = m->state[k],
                          .y[0] = v->rows,
                          .combine = op->combine,
                          .dtype = op->dtype,
                          .count = v->width});
}

static void clear_state(making *m, int k)
{
    const weft_loop_op *op = &m->loop->op[k];
    const int width = weft_combine_width(op->combine);
    m->state[k] = take_buffer(m, width * WEFT_COLUMNS * (int64_t)sizeof(double), 0);
    add_act(m, (weft_act){.run = weft_act_clear, .y[0] = m->state[k], .combine = op->combine});
}

/* What is done once between pass `before` and the one after it. */
static void make_between(making *m, int before)
{
    const weft_loop *loop = m->loop;
    for (int k = 0; k < loop->n_ops; k++)
        if (loop->op[k].kind == WEFT_LOOP_REDUCE && m->value[m->first_slot[k]].when == before)
            store_state(m, k);
    for (int k = 0; k < loop->n_ops; k++)
        if (reads_rows(&loop->op[k]) && m->value[m->first_slot[k]].when == before)
            make_row_op(m, k);
    for (int k = 0; k < loop->n_ops && before + 1 < m->n_passes; k++) {
        if (!(passes_of(m, k) & bit(before + 1))) continue;
        for (int i = 0; i < loop->op[k].n_in; i++) {
            const int slot = loop->op[k].in[i];
            if (slot < loop->n_in && m->value[slot].elements == 0)
                m->value[slot].elements = operand_elements(m, slot, false);
            else if (slot >= loop->n_in && m->value[slot].of_rows)
                spread(m, slot);
        }
        if (loop->op[k].kind == WEFT_LOOP_REDUCE) clear_state(m, k);
    }
}

/* ---- a pass over the blocks ------------------------------------------------------------------ */

/* Operands that are brought for each block. */
static void bring_blocks(making *m, int pass)
{
    for (int slot = 0; slot < m->loop->n_in; slot++) {
        value *v = &m->value[slot];
        if (!(v->need & bit(pass)) || (v->elements != 0 && !v->in_blocks)) continue;
        v->elements = operand_elements(m, slot, true);
        v->in_blocks = true;
    }
}

/* The last op of this pass that reads each value; copies come after all ops. */
static void find_last(making *m, int pass)
{
    for (int k = 0; k < m->loop->n_ops; k++) {
        if (!(passes_of(m, k) & bit(pass))) continue;
        m->value[m->first_slot[k]].last = k;
        for (int i = 0; i < m->loop->op[k].n_in; i++)
            m->value[m->loop->op[k].in[i]].last = k;
    }
    for (int o = 0; o < m->loop->n_out; o++)
        if (m->wait[o] == pass) m->value[m->loop->out[o]].last = m->loop->n_ops;
}

/* A block buffer that nobody reads any more after op k has begun. */
static int share_buffer(making *m, int k, int last)
{
    int b = 0;
    while (b < m->n_buffers && m->buffer_last[b] >= k)
        b++;
    if (b == m->n_buffers)
        m->buffer_ref[m->n_buffers++] = take_buffer(m, m->block * m->block_bytes, 0);
    m->buffer_last[b] = last;
    return m->buffer_ref[b];
}

/* Where op k puts its elements in this pass. */
static int place_elements(making *m, int k, int pass)
{
    value *v = &m->value[m->first_slot[k]];
    if (v->result >= 0) return result_ref(m, v->result);
    if (v->keeping == KEPT_IN_LANE && pass == v->when)
        return take_buffer(m, m->space->rows * m->space->row * v->bytes, v->bytes);
    return share_buffer(m, k, v->last);
}

/* How the index of op k runs through a block. */
static bool index_is_even(const making *m, int k)
{
    const weft_space *s = m->space;
    const int64_t *stride = s->index_stride[k], step = stride[s->n_dims - 1];
    return weft_space_row_is_even(s, stride, step) &&
           (s->rows == 1 || weft_space_rows_are_even(s, stride, step * s->row));
}

static void make_element_op(making *m, int k, int pass)
{
    const weft_loop_op *op = &m->loop->op[k];
    weft_act act = {.number = k, .bytes = op->bytes, .block = op->block, .run = weft_act_elements};
    add_operands(m, op, &act, false);
    act.y[0] = m->value[m->first_slot[k]].elements = place_elements(m, k, pass);
    if (has_index(m, k)) {
        act.run = index_is_even(m, k) ? weft_act_indexed : weft_act_pieces;
        m->space->needs_outer = true;
    }
    add_act(m, act);
}

static void make_reduction(making *m, int k)
{
    const weft_loop_op *op = &m->loop->op[k];
    weft_act act = {.run = weft_act_reduce,
                    .number = k,
                    .bytes = (int)weft_dtype_bytes(op->dtype),
                    .combine = op->combine,
                    .dtype = op->dtype};
    add_operands(m, op, &act, false);
    act.y[0] = m->state[k];
    add_act(m, act);
}

static void make_pass(making *m, int pass)
{
    find_last(m, pass);
    for (int b = 0; b < m->n_buffers; b++)
        m->buffer_last[b] = -1;
    bring_blocks(m, pass);
    for (int k = 0; k < m->loop->n_ops; k++) {
        if (!(passes_of(m, k) & bit(pass))) continue;
        if (m->loop->op[k].kind == WEFT_LOOP_REDUCE)
            make_reduction(m, k);
        else
            make_element_op(m, k, pass);
    }
    for (int o = 0; o < m->loop->n_out; o++) {
        const value *v = &m->value[m->loop->out[o]];
        if (v->of_rows || v->result == o || m->wait[o] != pass) continue;
        add_act(m, (weft_act){.run = weft_act_copy,
                              .x[0] = v->elements,
                              .y[0] = result_ref(m, o),
                              .bytes = v->bytes});
    }
}

static void copy_rows(making *m)
{
    for (int o = 0; o < m->loop->n_out; o++) {
        const value *v = &m->value[m->loop->out[o]];
        if (!v->of_rows || v->result == o) continue;
        add_act(m, (weft_act){.run = weft_act_copy_rows,
                              .x[0] = v->rows,
                              .y[0] = result_ref(m, o),
                              .count = v->width,
                              .bytes = v->bytes});
    }
}

/* ---- all of it ------------------------------------------------------------------------------- */

static weft_status end_stage(making *m, weft_error *error)
{
    const size_t bytes = (size_t)m->n_acts * sizeof *m->acts;
    weft_act *acts = weft_arena_take(m->arena, bytes + 1);
    if (!acts) return weft_fail_memory(error, bytes);
    memcpy(acts, m->acts, bytes);
    m->space->stages[m->space->n_stages++] = (weft_stage){m->n_acts, acts};
    m->n_acts = 0;
    return WEFT_OK;
}

static weft_status make_stages(making *m, weft_error *error)
{
    weft_space *s = m->space;
    for (int pass = 0; pass < m->n_passes; pass++) {
        make_between(m, pass - 1);
        WEFT_TRY(end_stage(m, error));
        make_pass(m, pass);
        WEFT_TRY(end_stage(m, error));
    }
    make_between(m, m->n_passes - 1);
    copy_rows(m);
    WEFT_TRY(end_stage(m, error));
    s->n_refs = m->n_refs;
    s->buffers = weft_space_tables(s);
    for (int k = 1; k < s->n_refs; k++)
        if (!s->refs[k].data) s->refs[k].offset += s->buffers;
    if (s->buffers + m->scratch > WEFT_LANE_SCRATCH)
        return weft_fail(error, WEFT_INTERNAL,
                         "a loop of %d operands and %d ops needs %lld bytes of a lane's %d",
                         m->loop->n_in, m->loop->n_ops, (long long)(s->buffers + m->scratch),
                         WEFT_LANE_SCRATCH);
    return WEFT_OK;
}

static weft_status take_room(making *m, weft_error *error)
{
    const size_t n = (size_t)m->n_slots + 1, n_ops = (size_t)m->loop->n_ops + 1;
    const size_t n_in = (size_t)m->loop->n_in + 1, n_out = (size_t)m->loop->n_out + 1;
    m->value = weft_arena_take(m->own, n * sizeof *m->value);
    m->first_slot = weft_arena_take(m->own, n_ops * sizeof(int));
    m->state = weft_arena_take(m->own, n_ops * sizeof(int));
    m->out = weft_arena_take(m->own, n_out * sizeof(int));
    m->wait = weft_arena_take(m->own, n_out * sizeof(int));
    m->buffer_ref = weft_arena_take(m->own, n_ops * sizeof(int));
    m->buffer_last = weft_arena_take(m->own, n_ops * sizeof(int));
    m->acts = weft_arena_take(m->own, 4 * (n + n_out) * sizeof *m->acts);
    m->outer = weft_arena_take(m->arena, n_in * (WEFT_MAX_DIMS + 1) * sizeof *m->outer);
    if (!m->value || !m->first_slot || !m->state || !m->out || !m->wait || !m->buffer_ref ||
        !m->buffer_last || !m->acts || !m->outer)
        return weft_fail_memory(error, 4 * n * sizeof *m->acts);
    return WEFT_OK;
}

/* After it is known how many passes there are. */
static weft_status take_stages(making *m, weft_error *error)
{
    weft_space *s = m->space;
    const size_t n_refs = 4 * (size_t)m->n_slots + (size_t)m->loop->n_out + 1;
    const size_t n_stages = 2 * (size_t)m->n_passes + 1;
    s->refs = weft_arena_take(m->arena, n_refs * sizeof *s->refs);
    s->stages = weft_arena_take(m->arena, n_stages * sizeof *s->stages);
    if (!s->refs || !s->stages) return weft_fail_memory(error, n_refs * sizeof *s->refs);
    m->n_refs = 1;
    return WEFT_OK;
}

static weft_status make_space(making *m, weft_error *error)
{
    weft_space *s = m->space;
    WEFT_TRY(take_room(m, error));
    WEFT_TRY(weft_space_open(s, m->loop, m->segment, m->arena, error));
    WEFT_TRY(describe_slots(m, error));
    WEFT_TRY(take_stages(m, error));
    WEFT_TRY(check_results(m, error));
    m->block = s->rows * s->part;
    m->block_bytes = 4;
    for (int k = 0; k < m->n_slots; k++)
        m->block_bytes = most(m->block_bytes, m->value[k].bytes);
    for (int o = 0; o < m->loop->n_out; o++)
        m->wait[o] = -1;
    choose_results(m);
    return make_stages(m, error);
}

static weft_status prepare_segment(const weft_loop *loop, const weft_loop_segment *segment,
                                   weft_arena *arena, weft_space *space, weft_error *error)
{
    making m = {.loop = loop, .segment = segment, .space = space, .arena = arena};
    m.n_slots = loop->n_in;
    for (int k = 0; k < loop->n_ops; k++)
        m.n_slots += loop->op[k].n_out;
    m.own = weft_arena_create();
    if (!m.own) return weft_fail_memory(error, sizeof m);
    const weft_status status = make_space(&m, error);
    weft_arena_destroy(&m.own);
    return status;
}

weft_status weft_loop_take(weft_arena *arena, weft_loop counts, weft_loop **loop, weft_error *error)
{
    const size_t n_in = (size_t)counts.n_in + 1, n_ops = (size_t)counts.n_ops + 1;
    const size_t n_out = (size_t)counts.n_out + 1, n_segments = (size_t)counts.n_segments;
    weft_loop *l = *loop = weft_arena_take(arena, sizeof *l);
    if (!l) return weft_fail_memory(error, sizeof *l);
    *l = counts;
    l->in = weft_arena_take(arena, n_in * sizeof *l->in);
    l->op = weft_arena_take(arena, n_ops * sizeof *l->op);
    l->out = weft_arena_take(arena, n_out * sizeof *l->out);
    l->segment = weft_arena_take(arena, (n_segments + 1) * sizeof *l->segment);
    if (!l->in || !l->op || !l->out || !l->segment)
        return weft_fail_memory(error, n_ops * sizeof *l->op);
    for (size_t i = 0; i < n_segments; i++) {
        weft_loop_segment *s = &l->segment[i];
        s->in = weft_arena_take(arena, n_in * sizeof *s->in);
        s->index = weft_arena_take(arena, n_ops * sizeof *s->index);
        s->out = weft_arena_take(arena, n_out * sizeof *s->out);
        if (!s->in || !s->index || !s->out) return weft_fail_memory(error, n_in * sizeof *s->in);
    }
    return WEFT_OK;
}

weft_status weft_loop_prepare(const weft_loop *loop, weft_arena *arena,
                              const weft_prepared_loop **prepared, weft_error *error)
{
    *prepared = NULL;
    weft_prepared_loop *p = weft_arena_take(arena, sizeof *p);
    weft_space *spaces = weft_arena_take(arena, (size_t)(loop->n_segments + 1) * sizeof *spaces);
    if (!p || !spaces) return weft_fail_memory(error, sizeof *p);
    p->spaces = spaces;
    p->n_spaces = loop->n_segments;
    int64_t work = 0; /* of the largest unit */
    for (int i = 0; i < loop->n_segments; i++) {
        weft_space *s = &spaces[i];
        WEFT_TRY(prepare_segment(loop, &loop->segment[i], arena, s, error));
        const int64_t its = s->rows * (s->cuts == 1 ? s->row : s->part) * loop->n_ops;
        p->n_units += s->n_groups * s->cuts;
        if (its > work) work = its;
    }
    p->grain = work > 0 && GRAIN / work > 1 ? GRAIN / work : 1;
    *prepared = p;
    return WEFT_OK;
}
