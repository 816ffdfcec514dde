/* loop.c: prepared loops are run: what each act does, and how a lane goes through its groups and blocks. See
 * loop_prepared.h.
 */
#include "cpu/loop_prepared.h"
#include "cpu/relay.h"

#include <string.h>

typedef uint8_t __attribute__((may_alias)) word1;
typedef uint16_t __attribute__((may_alias)) word2;
typedef uint32_t __attribute__((may_alias)) word4;
typedef uint64_t __attribute__((may_alias)) word8;

/* ---- where things are ------------------------------------------------------------------------ */

static int64_t dot(const int64_t *at, const int64_t *stride, int n)
{
    int64_t sum = 0;
    for (int d = 0; d < n; d++)
        sum += at[d] * stride[d];
    return sum;
}

/* The block at hand in runs along the innermost dim. */
typedef struct walk {
    int64_t at[WEFT_MAX_DIMS + 1]; /* coordinates of the run */
    int64_t done, run;             /* elements before it, and of it */
} walk;

static void set_run(const weft_space *s, const weft_lane *lane, walk *w)
{
    const int64_t left = lane->n - w->done, room = s->size[s->n_dims - 1] - w->at[s->n_dims - 1];
    w->run = left < room ? left : room;
    if (w->run > WEFT_BLOCK) w->run = WEFT_BLOCK;
}

static walk walk_begin(const weft_space *s, const weft_lane *lane)
{
    walk w = {.done = 0};
    int64_t skip = lane->skip;
    for (int d = s->n_dims - 1; d >= s->n_outer; d--) {
        w.at[d] = skip % s->size[d];
        skip /= s->size[d];
    }
    memcpy(w.at, lane->outer, (size_t)s->n_outer * sizeof *w.at);
    set_run(s, lane, &w);
    return w;
}

/* The next run, if there is one. */
static bool walk_on(const weft_space *s, const weft_lane *lane, walk *w)
{
    w->done += w->run;
    if (w->done >= lane->n) return false;
    w->at[s->n_dims - 1] += w->run;
    for (int d = s->n_dims - 1; d > 0 && w->at[d] == s->size[d]; d--) {
        w->at[d] = 0;
        w->at[d - 1]++;
    }
    set_run(s, lane, w);
    return true;
}

/* Step coordinates of rows to the next one. */
static void next_row(const weft_space *s, int64_t *at)
{
    for (int d = s->n_outer - 1; d >= 0; d--) {
        if (++at[d] < s->size[d]) return;
        at[d] = 0;
    }
}

/* ---- bringing operands ----------------------------------------------------------------------- */

#define COPY_RUN(T)                                                                                \
    static void copy_##T(void *to, const void *from, int64_t stride, int64_t n)                    \
    {                                                                                              \
        T *y = to;                                                                                 \
        const T *x = from;                                                                         \
        if (stride == 0) {                                                                         \
            const T one = *x;                                                                      \
            for (int64_t i = 0; i < n; i++)                                                        \
                y[i] = one;                                                                        \
        } else {                                                                                   \
            for (int64_t i = 0; i < n; i++)                                                        \
                y[i] = x[i * stride];                                                              \
        }                                                                                          \
    }
COPY_RUN(word1)
COPY_RUN(word2)
COPY_RUN(word4)
COPY_RUN(word8)

static void copy_run(void *to, const void *from, int64_t stride, int64_t n, int bytes)
{
    static void (*const copies[])(void *to, const void *from, int64_t stride, int64_t n) = {
        [1] = copy_word1, [2] = copy_word2, [4] = copy_word4, [8] = copy_word8};
    if (stride == 1)
        memcpy(to, from, (size_t)(n * bytes));
    else
        copies[bytes](to, from, stride, n);
}

void weft_act_bring(const weft_space *s, weft_lane *lane, const weft_act *act)
{
    const int64_t *stride = s->stride[act->number];
    const char *from = s->data[act->number];
    char *to = lane->at[act->y[0]];
    if (lane->n == 0) return;
    walk w = walk_begin(s, lane);
    do {
        copy_run(to + w.done * act->bytes, from + dot(w.at, stride, s->n_dims) * act->bytes,
                 stride[s->n_dims - 1], w.run, act->bytes);
    } while (walk_on(s, lane, &w));
}

/* One number along `count` elements, or the same rows as in every group. */
void weft_act_repeat(const weft_space *s, weft_lane *lane, const weft_act *act)
{
    const int k = act->number;
    const char *from = lane->begin[act->x[0]];
    const int64_t n = act->count > 0 ? act->count : lane->n;
    if (lane->filled[k] == from && lane->n_filled[k] >= n) return;
    lane->filled[k] = from, lane->n_filled[k] = n;
    if (act->count > 0)
        copy_run(lane->at[act->y[0]], from, 0, n, act->bytes);
    else
        weft_act_bring(s, lane, act);
}

void weft_act_bring_rows(const weft_space *s, weft_lane *lane, const weft_act *act)
{
    int64_t at[WEFT_MAX_DIMS + 1];
    memcpy(at, lane->outer, sizeof at);
    const size_t bytes = (size_t)(act->count * act->bytes);
    for (int64_t r = 0; r < lane->n_rows; r++, next_row(s, at))
        memcpy(lane->at[act->y[0]] + (size_t)r * bytes,
               s->data[act->number] + dot(at, s->stride[act->number], s->n_outer) * act->bytes,
               bytes);
}

void weft_act_spread(const weft_space *s, weft_lane *lane, const weft_act *act)
{
    (void)s;
    for (int64_t r = 0; r < lane->n_rows; r++)
        copy_run(lane->at[act->y[0]] + r * act->count * act->bytes,
                 lane->at[act->x[0]] + r * act->bytes, 0, act->count, act->bytes);
}

/* Past the end it is asked for in vain, and nothing is touched. */
void weft_act_ahead(const weft_space *s, weft_lane *lane, const weft_act *act)
{
    enum { LINE = 64 };
    (void)s;
    const int64_t bytes = lane->n * act->bytes;
    const char *next = lane->at[act->x[0]] + bytes;
    for (int64_t at = 0; at < bytes; at += LINE)
        __builtin_prefetch(next + at);
}

/* ---- ops ------------------------------------------------------------------------------------- */

/* On n numbers; block functions take WEFT_BLOCK at a time. */
static void run_block(const weft_lane *lane, const weft_act *act, int64_t n, weft_block_env *env)
{
    const void *x[3] = {lane->at[act->x[0]], lane->at[act->x[1]], lane->at[act->x[2]]};
    char *y = lane->at[act->y[0]];
    for (; n > WEFT_BLOCK; n -= WEFT_BLOCK) {
        act->block(WEFT_BLOCK, y, x, env);
        for (int i = 0; i < act->n_in; i++)
            x[i] = (const char *)x[i] + (int64_t)WEFT_BLOCK * act->x_bytes[i];
        y += (int64_t)WEFT_BLOCK * act->bytes;
        env->index += WEFT_BLOCK * env->stride;
    }
    act->block(n, y, x, env);
}

void weft_act_elements(const weft_space *s, weft_lane *lane, const weft_act *act)
{
    (void)s;
    run_block(lane, act, lane->n, &lane->env[act->number]);
}

void weft_act_indexed(const weft_space *s, weft_lane *lane, const weft_act *act)
{
    weft_block_env *env = &lane->env[act->number];
    const int64_t *stride = s->index_stride[act->number];
    env->index = s->index_begin[act->number] + dot(lane->outer, stride, s->n_outer) +
                 lane->skip * env->stride;
    run_block(lane, act, lane->n, env);
}

void weft_act_pieces(const weft_space *s, weft_lane *lane, const weft_act *act)
{
    weft_block_env *env = &lane->env[act->number];
    walk w = walk_begin(s, lane);
    do {
        const void *x[3] = {NULL, NULL, NULL};
        for (int i = 0; i < act->n_in; i++)
            x[i] = lane->at[act->x[i]] + w.done * act->x_bytes[i];
        env->index =
            s->index_begin[act->number] + dot(w.at, s->index_stride[act->number], s->n_dims);
        act->block(w.run, lane->at[act->y[0]] + w.done * act->bytes, x, env);
    } while (walk_on(s, lane, &w));
}

void weft_act_clear(const weft_space *s, weft_lane *lane, const weft_act *act)
{
    (void)s;
    weft_state_clear(act->combine, (double *)(void *)lane->at[act->y[0]], lane->n_rows);
}

/* What row r of the block gives a reduction. */
static weft_run run_of(const weft_space *s, const weft_lane *lane, const weft_act *act, int64_t r)
{
    return (weft_run){.x = lane->at[act->x[0]] + r * lane->run * act->bytes,
                      .n = lane->run,
                      .part = s->piece,
                      .index = s->index_begin[act->number] + lane->skip,
                      .ahead = act->asks ? lane->n : 0};
}

/* Row r of the group is column r of the state. */
void weft_act_reduce(const weft_space *s, weft_lane *lane, const weft_act *act)
{
    double *state = (double *)(void *)lane->at[act->y[0]];
    for (int64_t r = 0; r < lane->n_rows; r++) {
        const weft_run run = run_of(s, lane, act, r);
        weft_reducers[act->combine].row[act->dtype](state + r, &run);
    }
}

/* Of row r in the block at hand, one for each of its pieces: a group of several rows has one block, of one piece. */
static double *shift_of(const weft_space *s, const weft_lane *lane, const weft_act *act, int64_t r)
{
    return (double *)(void *)lane->at[act->x[1]] + lane->skip / s->piece + r;
}

void weft_act_leave(const weft_space *s, weft_lane *lane, const weft_act *act)
{
    double *state = (double *)(void *)lane->at[act->y[0]];
    const int64_t bytes = lane->run * act->bytes;
    for (int64_t r = 0; r < lane->n_rows && lane->run > 0; r++) {
        const weft_run run = run_of(s, lane, act, r);
        weft_reducers[act->combine].leave[act->dtype](
            state + r, &run, lane->at[act->y[1]] + r * bytes, shift_of(s, lane, act, r));
    }
}

/* Elements [begin, end) of row r in the block at hand, which have one shift. */
static void resume_pieces(weft_lane *lane, const weft_act *act, int64_t r, int64_t begin,
                          int64_t end, double shift)
{
    const weft_reducer *reducer = &weft_reducers[act->combine];
    weft_known_factor *known = &lane->known;
    const int64_t first = (r * lane->run + begin) * act->bytes;
    if (lane->skip + begin == 0 || known->act != act || known->shift != shift)
        *known = (weft_known_factor){
            act, shift, reducer->factor[act->dtype](shift, lane->at[act->x[2]] + r * act->bytes)};
    reducer->resume[act->dtype](end - begin, lane->at[act->y[0]] + first,
                                lane->at[act->x[0]] + first, known->factor);
}

/* Pieces of a row, one after the other, mostly have one shift, and so one factor. */
void weft_act_resume(const weft_space *s, weft_lane *lane, const weft_act *act)
{
    for (int64_t r = 0; r < lane->n_rows; r++) {
        const double *shift = shift_of(s, lane, act, r);
        for (int64_t begin = 0, end; begin < lane->run; begin = end) {
            const double one = *shift;
            for (end = begin; end < lane->run && *shift == one; shift++)
                end += s->piece;
            if (end == begin) end += s->piece, shift++; /* NaN */
            if (end > lane->run) end = lane->run;
            resume_pieces(lane, act, r, begin, end, one);
        }
    }
}

void weft_act_store(const weft_space *s, weft_lane *lane, const weft_act *act)
{
    (void)s;
    weft_state_store(act->combine, act->dtype, (const double *)(void *)lane->at[act->x[0]],
                     lane->n_rows, lane->at[act->y[0]], act->count);
}

void weft_act_rows(const weft_space *s, weft_lane *lane, const weft_act *act)
{
    (void)s;
    run_block(lane, act, lane->n_rows, &lane->env[act->number]);
}

void weft_act_indexed_rows(const weft_space *s, weft_lane *lane, const weft_act *act)
{
    weft_block_env *env = &lane->env[act->number];
    int64_t at[WEFT_MAX_DIMS + 1];
    memcpy(at, lane->outer, sizeof at);
    for (int64_t r = 0; r < lane->n_rows; r++, next_row(s, at)) {
        const void *x[3] = {NULL, NULL, NULL};
        for (int i = 0; i < act->n_in; i++)
            x[i] = lane->at[act->x[i]] + r * act->x_bytes[i];
        env->index =
            s->index_begin[act->number] + dot(at, s->index_stride[act->number], s->n_outer);
        act->block(1, lane->at[act->y[0]] + r * act->bytes, x, env);
    }
}

void weft_act_finish(const weft_space *s, weft_lane *lane, const weft_act *act)
{
    (void)s;
    void *const y[2] = {lane->at[act->y[0]], lane->at[act->y[1]]};
    act->finish(lane->n_rows, y, lane->at[act->x[0]], lane->env[act->number].number[0]);
}

/* ---- results that had to wait ---------------------------------------------------------------- */

void weft_act_copy(const weft_space *s, weft_lane *lane, const weft_act *act)
{
    (void)s;
    memcpy(lane->at[act->y[0]], lane->at[act->x[0]], (size_t)(lane->n * act->bytes));
}

void weft_act_copy_rows(const weft_space *s, weft_lane *lane, const weft_act *act)
{
    (void)s;
    memcpy(lane->at[act->y[0]], lane->at[act->x[0]],
           (size_t)(lane->n_rows * act->count * act->bytes));
}

/* ---- a lane ---------------------------------------------------------------------------------- */

int64_t weft_space_tables(const weft_space *s)
{
    const int64_t bytes = 3 * s->n_refs * (int64_t)sizeof(char *) +
                          s->n_ops * (int64_t)sizeof(weft_block_env) +
                          s->n_in * (int64_t)(sizeof(void *) + sizeof(int64_t));
    return (bytes + 63) / 64 * 64;
}

static void lane_open(const weft_space *s, weft_lane *lane, void *tables, uint64_t run)
{
    lane->base = tables, lane->begin = lane->base + s->n_refs;
    lane->at = lane->begin + s->n_refs;
    lane->env = (weft_block_env *)(void *)(lane->at + s->n_refs);
    lane->filled = (const void **)(void *)(lane->env + s->n_ops);
    lane->n_filled = (int64_t *)(void *)(lane->filled + s->n_in);
    lane->begin[0] = lane->at[0] = NULL; /* an operand that an op has not */
    for (int k = 1; k < s->n_refs; k++)
        lane->base[k] = (s->refs[k].data ? s->refs[k].data : lane->scratch) + s->refs[k].offset;
    for (int k = 0; k < s->n_ops; k++) {
        lane->env[k] = s->env[k];
        lane->env[k].step = run;
    }
    for (int k = 0; k < s->n_in; k++)
        lane->filled[k] = NULL;
}

/* To the first row of a group. */
static void locate(const weft_space *s, weft_lane *lane, int64_t group)
{
    const int64_t first = group * s->rows, left = s->n_rows - first;
    lane->first_row = first;
    lane->n_rows = left < s->rows ? left : s->rows;
    lane->skip = lane->run = lane->n = 0;
    int64_t row = first;
    for (int d = s->n_outer - 1; d >= 0 && s->needs_outer; d--) {
        lane->outer[d] = row % s->size[d];
        row /= s->size[d];
    }
    for (int k = 1; k < s->n_refs; k++) {
        const weft_ref *ref = &s->refs[k];
        lane->begin[k] = lane->at[k] =
            lane->base[k] +
            (ref->outer ? dot(lane->outer, ref->outer, s->n_outer) : first * ref->row);
    }
}

static void set_block(const weft_space *s, weft_lane *lane, int64_t part)
{
    lane->skip = part * s->part;
    lane->run = s->row - lane->skip < s->part ? s->row - lane->skip : s->part;
    lane->n = lane->n_rows * lane->run;
    for (int k = 1; k < s->n_refs && s->n_parts > 1; k++)
        lane->at[k] = lane->begin[k] + lane->skip * s->refs[k].step;
}

static void run_stage(const weft_space *s, weft_lane *lane, const weft_stage *stage)
{
    for (const weft_act *act = stage->acts, *end = act + stage->n_acts; act < end; act++)
        act->run(s, lane, act);
}

/* Blocks [begin, end) of a group. */
static void run_group(const weft_space *s, weft_lane *lane, int64_t group, int64_t begin,
                      int64_t end)
{
    locate(s, lane, group);
    for (int k = 0; k < s->n_stages; k++) {
        const bool is_once = k % 2 == 0;
        for (int64_t b = begin; b < (is_once ? begin + 1 : end); b++) {
            if (begin < end) set_block(s, lane, b);
            run_stage(s, lane, &s->stages[k]);
        }
    }
}

/* Units [begin, end) of a space. */
static void run_space(const weft_space *s, weft_lane *lane, uint64_t run, int64_t begin,
                      int64_t end)
{
    lane_open(s, lane, lane->scratch, run);
    while (begin < end) {
        const int64_t group = begin / s->cuts, first = begin % s->cuts;
        const int64_t stop = s->cuts - first < end - begin ? s->cuts : first + end - begin;
        run_group(s, lane, group, first, s->cuts == 1 ? s->n_parts : stop);
        begin += stop - first;
    }
    if (s->streams) weft_relay_fence();
}

typedef struct task {
    const weft_prepared_loop *loop;
    uint64_t run;
    weft_stream *stream;
    int64_t first; /* of the units that lanes share out */
} task;

static void run_units(void *argument, int64_t begin, int64_t end, int lane_index)
{
    const task *t = argument;
    weft_lane lane;
    lane.scratch = weft_stream_scratch(t->stream, lane_index);
    begin += t->first, end += t->first;
    for (const weft_space *s = t->loop->spaces; begin < end; s++) {
        const int64_t n = s->n_groups * s->cuts, stop = end < n ? end : n;
        if (begin < stop) run_space(s, &lane, t->run, begin, stop);
        begin = begin < n ? 0 : begin - n;
        end -= n;
    }
}

void weft_loop_run(const weft_prepared_loop *loop, uint64_t run, weft_stream *stream)
{
    weft_parallel(stream, loop->n_units, loop->grain, run_units, &(task){loop, run, stream, 0});
}

/* ---- for one stream -------------------------------------------------------------------------- */

/* A loop that is one group of one block has its lane opened and located once for all: its acts are gone through, and
 * nothing else is left to do. */
struct weft_bound_loop {
    const weft_prepared_loop *loop;
    weft_stream *stream;
    int64_t begin, end;      /* units */
    const weft_space *space; /* NULL: lanes share them out */
    weft_lane lane;
};

static bool is_one_block(const weft_prepared_loop *loop)
{
    const weft_space *s = loop->spaces;
    return loop->n_spaces == 1 && loop->n_units == 1 && s->n_groups == 1 && s->n_parts == 1;
}

weft_status weft_loop_bind(const weft_prepared_loop *loop, weft_loop_part part, weft_stream *stream,
                           weft_arena *arena, weft_bound_loop **bound, weft_error *error)
{
    weft_bound_loop *b = *bound = weft_arena_take(arena, sizeof *b);
    if (b == NULL) return weft_fail_memory(error, sizeof *b);
    b->loop = loop;
    b->stream = stream;
    b->begin = loop->n_units * part.index / part.count;
    b->end = loop->n_units * (part.index + 1) / part.count;
    if (stream == NULL || b->begin == b->end || !is_one_block(loop)) return WEFT_OK;
    const size_t bytes = (size_t)weft_space_tables(loop->spaces);
    void *tables = weft_arena_take(arena, bytes);
    if (tables == NULL) return weft_fail_memory(error, bytes);
    b->space = loop->spaces;
    b->lane.scratch = weft_stream_scratch(stream, 0);
    lane_open(b->space, &b->lane, tables, 0);
    locate(b->space, &b->lane, 0);
    set_block(b->space, &b->lane, 0);
    return WEFT_OK;
}

void weft_bound_loop_run(weft_bound_loop *bound, uint64_t run)
{
    const weft_space *s = bound->space;
    if (s == NULL) {
        weft_parallel(bound->stream, bound->end - bound->begin, bound->loop->grain, run_units,
                      &(task){bound->loop, run, bound->stream, bound->begin});
        return;
    }
    for (int k = 0; k < s->n_ops; k++)
        bound->lane.env[k].step = run;
    for (int k = 0; k < s->n_in; k++) /* another run's numbers */
        bound->lane.filled[k] = NULL;
    for (int k = 0; k < s->n_stages; k++)
        run_stage(s, &bound->lane, &s->stages[k]);
}

/* ---- as the registry has it ------------------------------------------------------------------------ */

static weft_status bind_here(const weft_loop *loop, weft_loop_part part, weft_stream *stream,
                             weft_arena *arena, void **bound, weft_error *error)
{
    const weft_prepared_loop *prepared;
    weft_bound_loop *b = NULL;
    WEFT_TRY(weft_loop_prepare(loop, arena, &prepared, error));
    const weft_status status = weft_loop_bind(prepared, part, stream, arena, &b, error);
    *bound = b;
    return status;
}

static void run_here(void *bound, uint64_t run)
{
    weft_bound_loop_run(bound, run);
}

const weft_loop_driver weft_loops_own = {.device = WEFT_CPU, .bind = bind_here, .run = run_here};
