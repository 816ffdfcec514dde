/* loop.c: prepared loops are run: how a lane goes through its groups and blocks, and how what lanes have reduced of long rows
 * becomes one. See loop_prepared.h.
 */
#include "cpu/loop_prepared.h"
#include "cpu/relay.h"

#include <string.h>

/* ---- a lane ---------------------------------------------------------------------------------- */

int64_t weft_space_tables(const weft_space *s)
{
    const int64_t bytes = 3 * s->n_refs * (int64_t)sizeof(char *) +
                          s->n_ops * (int64_t)sizeof(weft_block_env) +
                          s->n_in * (int64_t)(sizeof(void *) + sizeof(int64_t));
    return weft_aligned(bytes);
}

/* What is another in each run and trip. */
static void lane_count(const weft_space *s, weft_lane *lane, uint64_t run, int64_t trip)
{
    lane->trip = trip;
    for (int k = 0; k < s->n_ops; k++) {
        lane->env[k].step = run;
        lane->env[k].index = weft_index_begin(s, lane, k);
    }
}

static void lane_open(const weft_space *s, weft_lane *lane, void *tables, uint64_t run,
                      int64_t trip)
{
    lane->base = tables, lane->begin = lane->base + s->n_refs;
    lane->at = lane->begin + s->n_refs;
    lane->env = (weft_block_env *)(void *)(lane->at + s->n_refs);
    lane->filled = (const void **)(void *)(lane->env + s->n_ops);
    lane->n_filled = (int64_t *)(void *)(lane->filled + s->n_in);
    lane->begin[0] = lane->at[0] = NULL; /* an operand that an op has not */
    for (int k = 1; k < s->n_refs; k++)
        lane->base[k] = (s->refs[k].data ? s->refs[k].data : lane->scratch) + s->refs[k].offset;
    for (int k = 0; k < s->n_ops; k++)
        lane->env[k] = s->env[k];
    lane_count(s, lane, run, trip);
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
            (ref->outer ? weft_loop_dot(lane->outer, ref->outer, s->n_outer) : first * ref->row);
    }
}

/* The block that begins at element `from` of a row, of the unit that ends at `to`. */
static void set_block(const weft_space *s, weft_lane *lane, int64_t from, int64_t to)
{
    const int64_t left = s->within < s->row ? s->within - from % s->within : s->row - from;
    lane->skip = from;
    lane->run = to - from < s->part ? to - from : s->part;
    if (left < lane->run) lane->run = left;
    lane->n = lane->n_rows * lane->run;
    for (int k = 1; k < s->n_refs && s->n_parts > 1; k++)
        lane->at[k] = lane->begin[k] + weft_ref_bytes(s, &s->refs[k], from);
}

/* Of a row that lies together the next block follows, or the next row. The next piece of one that does not lies elsewhere. */
const char *weft_lane_next(const weft_space *s, const weft_lane *lane, int r, int64_t bytes)
{
    const weft_ref *ref = &s->refs[r];
    const int64_t next = lane->skip + lane->run, row = lane->first_row + 1;
    if (ref->inner == NULL) return lane->at[r] + lane->n * bytes;
    if (next < s->row) return lane->begin[r] + weft_ref_bytes(s, ref, next);
    if (ref->outer == NULL) return lane->begin[r] + ref->row;
    int64_t at = 0;
    for (int64_t d = s->n_outer - 1, left = row; d >= 0; d--) {
        at += left % s->size[d] * ref->outer[d];
        left /= s->size[d];
    }
    return lane->base[r] + at;
}

static void run_stage(const weft_space *s, weft_lane *lane, const weft_stage *stage)
{
    for (const weft_act *act = stage->acts, *end = act + stage->n_acts; act < end; act++)
        act->run(s, lane, act);
}

/* Stages [0, n_stages) of elements [from, to) of a group's rows. */
static void run_group(const weft_space *s, weft_lane *lane, int64_t group, int64_t from, int64_t to,
                      int n_stages)
{
    locate(s, lane, group);
    for (int k = 0; k < n_stages; k++) {
        const bool is_once = k % 2 == 0;
        if (from < to) set_block(s, lane, from, to);
        if (is_once) run_stage(s, lane, &s->stages[k]);
        for (int64_t at = from; at < to && !is_once; at += lane->run) {
            set_block(s, lane, at, to);
            run_stage(s, lane, &s->stages[k]);
        }
    }
}

static double *state_of(const weft_space *s, const weft_lane *lane, int reduction)
{
    return (double *)(void *)lane->at[s->states[reduction].ref];
}

/* What a unit of a long row has reduced is kept for the merge: all of the unit's states side by side. */
static double *kept_states(const weft_space *s, double *kept, int64_t unit)
{
    return kept + (s->first_kept + unit) * s->n_states * WEFT_STATE;
}

static void keep_states(const weft_space *s, const weft_lane *lane, double *to)
{
    for (int r = 0; r < s->n_states; r++)
        for (int c = 0; c < weft_combine_width(s->states[r].combine); c++)
            to[r * WEFT_STATE + c] = state_of(s, lane, r)[c * WEFT_COLUMNS];
}

/* Into the lane's states, which come before. */
static void merge_states(const weft_space *s, const weft_lane *lane, const double *from)
{
    double other[(WEFT_STATE - 1) * WEFT_COLUMNS + 1]; /* one column of each component is read */
    for (int r = 0; r < s->n_states; r++) {
        for (int c = 0; c < weft_combine_width(s->states[r].combine); c++)
            other[c * WEFT_COLUMNS] = from[r * WEFT_STATE + c];
        weft_reducers[s->states[r].combine].merge(state_of(s, lane, r), other, 1);
    }
}

typedef struct task {
    const weft_prepared_loop *loop;
    uint64_t run;
    int64_t trip;
    weft_stream *stream;
    int64_t first; /* of the units that lanes share out      */
    double *kept;  /* states of long rows, in lane 0's scratch */
} task;

/* Units [begin, end) of a space. */
static void run_space(const weft_space *s, weft_lane *lane, const task *t, int64_t begin,
                      int64_t end)
{
    lane_open(s, lane, lane->scratch, t->run, t->trip);
    while (begin < end) {
        const int64_t group = begin / s->cuts, first = begin % s->cuts;
        int64_t stop = s->cuts - first < end - begin ? s->cuts : first + end - begin;
        if (s->n_states > 0) stop = first + 1;
        const int64_t to = stop * s->cut < s->row ? stop * s->cut : s->row;
        run_group(s, lane, group, first * s->cut, to, s->n_states > 0 ? 2 : s->n_stages);
        if (s->n_states > 0) keep_states(s, lane, kept_states(s, t->kept, begin));
        begin += stop - first;
    }
    if (s->streams) weft_relay_fence();
}

static void run_units(void *argument, int64_t begin, int64_t end, int lane_index)
{
    const task *t = argument;
    weft_lane lane;
    lane.scratch = weft_stream_scratch(t->stream, lane_index);
    begin += t->first, end += t->first;
    for (const weft_space *s = t->loop->spaces; begin < end; s++) {
        const int64_t n = s->n_groups * s->cuts, stop = end < n ? end : n;
        if (begin < stop) run_space(s, &lane, t, begin, stop);
        begin = begin < n ? 0 : begin - n;
        end -= n;
    }
}

/* The units of a long row, in order, become its states; then what is done after its pass. */
static void merge_group(const weft_space *s, weft_lane *lane, const task *t, int64_t group)
{
    run_group(s, lane, group, 0, s->row, 1);
    for (int64_t c = 0; c < s->cuts; c++)
        merge_states(s, lane, kept_states(s, t->kept, group * s->cuts + c));
    run_stage(s, lane, &s->stages[2]);
}

/* After units [begin, end) are done, whole groups: by the stream's owner. */
static void merge_units(const task *t, int64_t begin, int64_t end)
{
    weft_lane lane;
    lane.scratch = weft_stream_scratch(t->stream, 0);
    for (const weft_space *s = t->loop->spaces; begin < end; s++) {
        const int64_t n = s->n_groups * s->cuts, stop = end < n ? end : n;
        if (begin < stop && s->n_states > 0) {
            lane_open(s, &lane, lane.scratch, t->run, t->trip);
            for (int64_t group = begin / s->cuts; group < stop / s->cuts; group++)
                merge_group(s, &lane, t, group);
        }
        begin = begin < n ? 0 : begin - n;
        end -= n;
    }
}

/* Units [begin, end) of a loop, by all lanes. */
static void run_loop(const weft_prepared_loop *loop, uint64_t run, int64_t trip,
                     weft_stream *stream, int64_t begin, int64_t end)
{
    task t = {loop, run, trip, stream, begin, NULL};
    if (loop->kept > 0) t.kept = (double *)((char *)weft_stream_scratch(stream, 0) + loop->kept);
    weft_parallel(stream, end - begin, loop->grain, run_units, &t);
    if (loop->kept > 0) merge_units(&t, begin, end);
}

void weft_loop_run(const weft_prepared_loop *loop, uint64_t run, weft_stream *stream)
{
    run_loop(loop, run, 0, stream, 0, loop->n_units);
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

/* The last unit up to `unit` at which a part may begin: a long row is merged by the one who has all of it. */
static int64_t whole_groups(const weft_prepared_loop *loop, int64_t unit)
{
    int64_t first = 0;
    for (int i = 0; i < loop->n_spaces; i++) {
        const weft_space *s = &loop->spaces[i];
        const int64_t n = s->n_groups * s->cuts;
        if (unit < first + n) return s->n_states > 0 ? unit - (unit - first) % s->cuts : unit;
        first += n;
    }
    return unit;
}

weft_status weft_loop_bind(const weft_prepared_loop *loop, weft_loop_part part, weft_stream *stream,
                           weft_arena *arena, weft_bound_loop **bound, weft_error *error)
{
    weft_bound_loop *b = *bound = weft_arena_take(arena, sizeof *b);
    if (b == NULL) return weft_fail_memory(error, sizeof *b);
    b->loop = loop;
    b->stream = stream;
    b->begin = whole_groups(loop, loop->n_units * part.index / part.count);
    b->end = whole_groups(loop, loop->n_units * (part.index + 1) / part.count);
    if (stream == NULL || b->begin == b->end || !is_one_block(loop)) return WEFT_OK;
    const size_t bytes = (size_t)weft_space_tables(loop->spaces);
    void *tables = weft_arena_take(arena, bytes);
    if (tables == NULL) return weft_fail_memory(error, bytes);
    b->space = loop->spaces;
    b->lane.scratch = weft_stream_scratch(stream, 0);
    lane_open(b->space, &b->lane, tables, 0, 0);
    locate(b->space, &b->lane, 0);
    set_block(b->space, &b->lane, 0, b->space->row);
    return WEFT_OK;
}

void weft_bound_loop_run(weft_bound_loop *bound, uint64_t run, int64_t trip)
{
    const weft_space *s = bound->space;
    if (s == NULL) {
        run_loop(bound->loop, run, trip, bound->stream, bound->begin, bound->end);
        return;
    }
    lane_count(s, &bound->lane, run, trip);
    for (int k = 0; k < s->n_in; k++) /* another run's numbers */
        bound->lane.filled[k] = NULL;
    for (int k = 0; k < s->n_stages; k++)
        run_stage(s, &bound->lane, &s->stages[k]);
}

static void move_ref(weft_bound_loop *bound, const weft_space *s, int r, void *data)
{
    weft_lane *lane = &bound->lane;
    s->refs[r].data = data;
    if (bound->space != NULL) /* one group of one block: all is at its begin */
        lane->base[r] = lane->begin[r] = lane->at[r] = (char *)data + s->refs[r].offset;
}

void weft_bound_loop_move(weft_bound_loop *bound, int number, void *data)
{
    const weft_space *s = bound->loop->spaces;
    const bool is_in = number >= 0;
    int at = is_in ? number : -1 - number;
    for (int n = is_in ? s->n_in : s->n_out; at >= n; at -= n)
        s++;
    if (is_in)
        s->data[at] = data;
    else
        ((char **)(uintptr_t)s->out)[at] = data;
    for (int r = 1; r < s->n_refs; r++)
        if (s->refs[r].of == (is_in ? at + 1 : -(at + 1))) move_ref(bound, s, r, data);
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

static void run_here(void *bound, uint64_t run, int64_t trip)
{
    weft_bound_loop_run(bound, run, trip);
}

static weft_status bind_again(const void *like, weft_loop_part part, const void *const *in,
                              void *const *out, weft_arena *arena, void **bound, weft_error *error)
{
    const weft_bound_loop *first = like;
    const weft_prepared_loop *prepared;
    weft_bound_loop *b = NULL;
    *bound = NULL;
    WEFT_TRY(weft_loop_again(first->loop, in, out, arena, &prepared, error));
    if (!prepared) return WEFT_OK;
    const weft_status status = weft_loop_bind(prepared, part, first->stream, arena, &b, error);
    *bound = b;
    return status;
}

/* Shorter pieces, which have a block each, are better reduced by a kernel. */
enum { LEAST_PIECE = 64 };

static void move_here(void *bound, int number, void *data)
{
    weft_bound_loop_move(bound, number, data);
}

const weft_loop_driver weft_loops_own = {.device = WEFT_CPU,
                                         .bind = bind_here,
                                         .run = run_here,
                                         .again = bind_again,
                                         .move = move_here,
                                         .least_piece = LEAST_PIECE};
