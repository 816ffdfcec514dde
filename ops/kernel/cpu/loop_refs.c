/* loop_refs.c: where a loop's values lie: operands in memory or brought to a buffer, results, the lane's buffers. See
 * loop_making.h.
 */
#include "cpu/loop_making.h"

static int add_ref(weft_making *m, weft_ref ref)
{
    m->space->refs[m->n_refs] = ref;
    return m->n_refs++;
}

int weft_making_buffer(weft_making *m, int64_t bytes, int64_t step)
{
    const int64_t at = m->scratch;
    m->scratch += weft_aligned(bytes) + WEFT_SKEW;
    return add_ref(m, (weft_ref){.offset = at, .step = step});
}

int weft_making_share_buffer(weft_making *m, int k, int last)
{
    int b = 0;
    while (b < m->n_buffers && m->buffer_last[b] >= k)
        b++;
    if (b == m->n_buffers)
        m->buffer_ref[m->n_buffers++] = weft_making_buffer(m, m->block * m->block_bytes, 0);
    m->buffer_last[b] = last;
    return m->buffer_ref[b];
}

/* From row to row, of what lies by these strides: `rows` numbers where they are even, or by coordinates. */
static void set_rows(weft_making *m, weft_ref *ref, const int64_t *stride, int64_t rows, int bytes,
                     int64_t *outer)
{
    weft_space *s = m->space;
    if (weft_space_rows_are_even(s, stride, rows)) {
        ref->row = rows * bytes;
    } else if (!weft_space_rows_are_even(s, stride, 0)) {
        for (int d = 0; d < s->n_outer; d++)
            outer[d] = stride[d] * bytes;
        ref->outer = outer;
        s->needs_outer = true;
    }
}

/* Along a row that lies in several places. */
static void set_inner(weft_making *m, weft_ref *ref, const int64_t *stride, int bytes,
                      int64_t *inner)
{
    const weft_space *s = m->space;
    if (weft_space_row_is_even(s, stride, ref->step / bytes)) return;
    for (int d = s->n_outer; d < s->n_dims; d++)
        inner[d - s->n_outer] = stride[d] * bytes;
    ref->inner = inner;
}

/* Strides of operand k's ref, or behind them those of result k - n_in: of outer dims, then of the row's. */
static int64_t *room_of(const weft_making *m, int k)
{
    return m->outer + (size_t)k * 2 * (WEFT_MAX_DIMS + 1);
}

/* Operand k where it lies. `step` bytes per element along the row, `rows` numbers from row to row when they are even. */
static int operand_ref(weft_making *m, int k, int64_t step, int64_t rows)
{
    weft_space *s = m->space;
    const int bytes = m->value[k].bytes;
    weft_ref ref = {.data = (char *)s->data[k], .step = step, .of = k + 1};
    set_rows(m, &ref, s->stride[k], rows, bytes, room_of(m, k));
    set_inner(m, &ref, s->stride[k], bytes, room_of(m, k) + WEFT_MAX_DIMS + 1);
    return add_ref(m, ref);
}

int weft_making_bring(weft_making *m, int k, bool in_blocks)
{
    weft_space *s = m->space;
    weft_loop_slot *v = &m->value[k];
    const int64_t *stride = s->stride[k];
    const bool is_contiguous = weft_space_lies_together(s, stride);
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
    if (v->elements == 0) v->elements = weft_making_buffer(m, m->block * v->bytes, 0);
    act.y[0] = v->elements;
    weft_making_add(m, act);
    return act.y[0];
}

void weft_making_spread(weft_making *m, int slot)
{
    weft_loop_slot *v = &m->value[slot];
    if (v->elements != 0) return;
    if (m->space->row == 1) {
        v->elements = v->rows;
        return;
    }
    v->elements = weft_making_buffer(m, m->block * v->bytes, 0);
    weft_making_add(m, (weft_act){.run = weft_act_spread,
                                  .x[0] = v->rows,
                                  .y[0] = v->elements,
                                  .count = m->space->part,
                                  .bytes = v->bytes});
}

static int operand_rows(weft_making *m, int k)
{
    weft_space *s = m->space;
    weft_loop_slot *v = &m->value[k];
    if (v->rows != 0) return v->rows;
    if (s->rows == 1 || weft_space_rows_are_even(s, s->stride[k], v->width))
        return v->rows = operand_ref(m, k, 0, v->width);
    v->rows = weft_making_buffer(m, s->rows * v->width * v->bytes, 0);
    s->needs_outer = true;
    weft_making_add(m, (weft_act){.run = weft_act_bring_rows,
                                  .number = k,
                                  .y[0] = v->rows,
                                  .count = v->width,
                                  .bytes = v->bytes});
    return v->rows;
}

int weft_making_rows(weft_making *m, int slot)
{
    return slot < m->loop->n_in ? operand_rows(m, slot) : m->value[slot].rows;
}

int weft_making_result(weft_making *m, int o)
{
    if (m->out[o] != 0) return m->out[o];
    const weft_loop_slot *v = &m->value[m->loop->out[o]];
    const weft_space *s = m->space;
    weft_ref ref = {.data = s->out[o],
                    .of = -(o + 1),
                    .row = (v->of_rows ? v->width : s->row) * v->bytes,
                    .step = v->of_rows ? 0 : v->bytes};
    if (s->is_apart != NULL && s->is_apart[o]) {
        int64_t *room = room_of(m, m->loop->n_in + o);
        set_rows(m, &ref, s->out_stride[o], s->row, v->bytes, room);
        set_inner(m, &ref, s->out_stride[o], v->bytes, room + WEFT_MAX_DIMS + 1);
    }
    return m->out[o] = add_ref(m, ref);
}
