/* loop_prepare.c: a loop becomes what is run: each segment a space with lists of acts. See loop_making.h for the order of
 * things.
 */
#include "cpu/loop_making.h"

enum { GRAIN = 16384 }; /* elements times ops that are worth waking a lane */
enum { STATE_BYTES = WEFT_STATE * sizeof(double) };

static weft_status take_room(weft_making *m, weft_error *error)
{
    const size_t n = (size_t)m->n_slots + 1, n_ops = (size_t)m->loop->n_ops + 1;
    const size_t n_in = (size_t)m->loop->n_in + 1, n_out = (size_t)m->loop->n_out + 1;
    m->value = weft_arena_take(m->own, n * sizeof *m->value);
    m->first_slot = weft_arena_take(m->own, n_ops * sizeof(int));
    m->state = weft_arena_take(m->own, n_ops * sizeof(int));
    m->left = weft_arena_take(m->own, n_ops * sizeof *m->left);
    m->resumes = weft_arena_take(m->own, n_ops * sizeof *m->resumes);
    m->is_idle = weft_arena_take(m->own, n_ops * sizeof *m->is_idle);
    m->out = weft_arena_take(m->own, n_out * sizeof(int));
    m->wait = weft_arena_take(m->own, n_out * sizeof(int));
    m->buffer_ref = weft_arena_take(m->own, n_ops * sizeof(int));
    m->buffer_last = weft_arena_take(m->own, n_ops * sizeof(int));
    m->acts = weft_arena_take(m->own, 5 * (n + n_out) * sizeof *m->acts);
    m->outer =
        weft_arena_take(m->arena, (n_in + n_out) * 2 * (WEFT_MAX_DIMS + 1) * sizeof *m->outer);
    if (!m->value || !m->first_slot || !m->state || !m->out || !m->wait || !m->buffer_ref ||
        !m->buffer_last || !m->left || !m->resumes || !m->is_idle || !m->acts || !m->outer)
        return weft_fail_memory(error, 4 * n * sizeof *m->acts);
    return WEFT_OK;
}

/* After it is known how many passes there are. */
static weft_status take_stages(weft_making *m, weft_error *error)
{
    weft_space *s = m->space;
    const size_t n_refs = 6 * (size_t)m->n_slots + (size_t)m->loop->n_out + 1;
    const size_t n_stages = 2 * (size_t)m->n_passes + 1;
    s->refs = weft_arena_take(m->arena, n_refs * sizeof *s->refs);
    s->stages = weft_arena_take(m->arena, n_stages * sizeof *s->stages);
    if (!s->refs || !s->stages) return weft_fail_memory(error, n_refs * sizeof *s->refs);
    m->n_refs = 1;
    return WEFT_OK;
}

/* A few long rows are cut where they lie together, and one pass is all that they are gone through: as the reduction's kernel
 * cuts them, so that a sum has the same bits in both. */
static weft_status cut_long_row(weft_making *m, weft_error *error)
{
    weft_space *s = m->space;
    const int64_t length =
        weft_reduce_chunk(s->row, s->n_rows, 1, s->piece); /* the row: it is not cut */
    if (m->segment->n_row_dims == 0 || s->together < s->row || m->n_passes != 1 || length >= s->row)
        return WEFT_OK;
    weft_state *states = weft_arena_take(m->arena, (size_t)m->loop->n_ops * sizeof *states);
    if (!states) return weft_fail_memory(error, (size_t)m->loop->n_ops * sizeof *states);
    for (int k = 0; k < m->loop->n_ops; k++)
        if (m->loop->op[k].kind == WEFT_LOOP_REDUCE)
            states[s->n_states++] = (weft_state){m->state[k], m->loop->op[k].combine};
    s->states = states;
    if (s->n_states > 0) weft_space_cut_row(s, length);
    return WEFT_OK;
}

static weft_status make_space(weft_making *m, weft_error *error)
{
    weft_space *s = m->space;
    WEFT_TRY(take_room(m, error));
    WEFT_TRY(weft_space_open(s, m->loop, m->segment, m->arena, error));
    WEFT_TRY(weft_making_describe(m, error));
    WEFT_TRY(take_stages(m, error));
    WEFT_TRY(weft_making_check_results(m, error));
    m->block = s->rows * s->part;
    m->block_bytes = 4;
    for (int k = 0; k < m->n_slots; k++)
        m->block_bytes = weft_most(m->block_bytes, m->value[k].bytes);
    for (int o = 0; o < m->loop->n_out; o++)
        m->wait[o] = -1;
    weft_making_leave(m);
    weft_making_keep(m);
    WEFT_TRY(weft_making_acts(m, error));
    return cut_long_row(m, error);
}

static weft_status prepare_segment(const weft_loop *loop, const weft_loop_segment *segment,
                                   weft_arena *arena, weft_space *space, weft_error *error)
{
    weft_making m = {.loop = loop, .segment = segment, .space = space, .arena = arena};
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
        s->out_stride = weft_arena_take(arena, n_out * sizeof *s->out_stride);
        if (!s->in || !s->index || !s->out || !s->out_stride)
            return weft_fail_memory(error, n_in * sizeof *s->in);
    }
    return WEFT_OK;
}

/* Room for the states of a long row's units behind those of the spaces before it. */
static void keep_states(weft_space *s, int64_t *kept)
{
    if (s->n_states == 0) return;
    s->first_kept = (*kept + s->n_states - 1) / s->n_states;
    *kept = (s->first_kept + s->n_groups * s->cuts) * s->n_states;
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
    int64_t kept = 0, bytes = 0;
    for (int i = 0; i < loop->n_segments; i++) {
        weft_space *s = &spaces[i];
        WEFT_TRY(prepare_segment(loop, &loop->segment[i], arena, s, error));
        const int64_t its = s->rows * s->cut * loop->n_ops;
        p->n_units += s->n_groups * s->cuts;
        if (its > work) work = its;
        if (s->bytes > bytes) bytes = s->bytes;
        keep_states(s, &kept);
    }
    if (kept > 0) p->kept = weft_aligned(bytes);
    if (p->kept + kept * STATE_BYTES > WEFT_LANE_SCRATCH)
        return weft_fail(error, WEFT_INTERNAL, "a loop keeps %lld states of long rows",
                         (long long)kept);
    p->grain = work > 0 && GRAIN / work > 1 ? GRAIN / work : 1;
    *prepared = p;
    return WEFT_OK;
}
