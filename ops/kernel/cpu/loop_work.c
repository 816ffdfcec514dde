/* loop_work.c: what each act of a prepared loop does. See loop_prepared.h. */
#include "cpu/loop_prepared.h"
#include "cpu/relay.h"
#include "weft/extend/target_clones.h"

#include <string.h>

typedef uint8_t __attribute__((may_alias)) word1;
typedef uint16_t __attribute__((may_alias)) word2;
typedef uint32_t __attribute__((may_alias)) word4;
typedef uint64_t __attribute__((may_alias)) word8;

/* ---- where things are ------------------------------------------------------------------------ */

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

/* By itself one number along a run is as much work as an op: with the widest stores. */
#define COPY_RUN(T)                                                                                \
    WEFT_TARGET_CLONES static void copy_##T(void *to, const void *from, int64_t stride, int64_t n) \
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
        copy_run(to + w.done * act->bytes,
                 from + weft_loop_dot(w.at, stride, s->n_dims) * act->bytes, stride[s->n_dims - 1],
                 w.run, act->bytes);
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
               s->data[act->number] +
                   weft_loop_dot(at, s->stride[act->number], s->n_outer) * act->bytes,
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
    const int64_t bytes = lane->n * act->bytes;
    const char *next = weft_lane_next(s, lane, act->x[0], act->bytes);
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
    env->index = weft_index_begin(s, lane, act->number) +
                 weft_loop_dot(lane->outer, stride, s->n_outer) + lane->skip * env->stride;
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
        env->index = weft_index_begin(s, lane, act->number) +
                     weft_loop_dot(w.at, s->index_stride[act->number], s->n_dims);
        act->block(w.run, lane->at[act->y[0]] + w.done * act->bytes, x, env);
    } while (walk_on(s, lane, &w));
}

void weft_act_clear(const weft_space *s, weft_lane *lane, const weft_act *act)
{
    (void)s;
    weft_state_clear(act->combine, (double *)(void *)lane->at[act->y[0]], lane->n_rows);
}

/* How far ahead, in elements, memory is asked for what a reduction reads next: what is asked for by the row of 3072 pushes out of
 * the first-level cache what the next pass reads. One that leaves elements, or asks late, has been through the whole block
 * before. */
enum { ASKED_AHEAD = 1024 };

static int64_t ahead_of(const weft_space *s, const weft_lane *lane, const weft_act *act)
{
    if (!act->asks) return 0;
    if (s->refs[act->x[0]].inner != NULL)
        return (weft_lane_next(s, lane, act->x[0], act->bytes) - lane->at[act->x[0]]) / act->bytes;
    const bool has_all = act->run == weft_act_leave || weft_reducers[act->combine].asks_late;
    return has_all || lane->n < ASKED_AHEAD ? lane->n : ASKED_AHEAD;
}

/* What row r of the block gives a reduction. */
static weft_span run_of(const weft_space *s, const weft_lane *lane, const weft_act *act, int64_t r)
{
    return (weft_span){.x = lane->at[act->x[0]] + r * lane->run * act->bytes,
                       .n = lane->run,
                       .part = s->piece,
                       .index = s->index_begin[act->number] + lane->skip,
                       .ahead = ahead_of(s, lane, act)};
}

/* Row r of the group is column r of the state. */
void weft_act_reduce(const weft_space *s, weft_lane *lane, const weft_act *act)
{
    double *state = (double *)(void *)lane->at[act->y[0]];
    for (int64_t r = 0; r < lane->n_rows; r++) {
        const weft_span run = run_of(s, lane, act, r);
        weft_reducers[act->combine].row[act->dtype](state + r, &run);
    }
}

/* Of row r in the block at hand, one for each of its pieces: a group of several rows has one block, of one piece. */
static double *shift_of(const weft_space *s, const weft_lane *lane, const weft_act *act, int64_t r)
{
    return (double *)(void *)lane->at[act->x[1]] + weft_space_pieces(s, lane->skip) + r;
}

void weft_act_leave(const weft_space *s, weft_lane *lane, const weft_act *act)
{
    double *state = (double *)(void *)lane->at[act->y[0]];
    const int64_t bytes = lane->run * act->bytes;
    for (int64_t r = 0; r < lane->n_rows && lane->run > 0; r++) {
        const weft_span run = run_of(s, lane, act, r);
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
    const int64_t first = (r * lane->run + begin) * act->bytes, row = r * act->bytes;
    if (lane->skip + begin == 0 || known->act != act || known->shift != shift)
        *known = (weft_known_factor){act, shift,
                                     reducer->factor[act->dtype](shift, lane->at[act->x[2]] + row,
                                                                 lane->at[act->x[3]] + row)};
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
        env->index = weft_index_begin(s, lane, act->number) +
                     weft_loop_dot(at, s->index_stride[act->number], s->n_outer);
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
