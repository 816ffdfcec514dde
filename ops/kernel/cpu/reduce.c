/* reduce.c: an operand reduced over the dims that the result lacks.
 *
 * The direction with neighbours in memory is either reduced (rows: SIMD along a run) or kept (columns: many results
 * side by side); the rest of the dims, in any interleaving, are loops around that. Lanes share out the kept elements;
 * when there are few of those the reduced range is cut into chunks, by shape alone, merged in order: the result has
 * the same bits on any number of lanes.
 */
#include "cpu/nest.h"
#include "cpu/reduce_state.h"

#include <math.h>
#include <string.h>

enum { IN, OUT };
enum { ONE_STATE = WEFT_STATE * WEFT_COLUMNS };
_Static_assert(WEFT_MOST_CHUNKS *ONE_STATE * sizeof(double) <= WEFT_LANE_SCRATCH,
               "partial states fit a lane");

typedef struct reduction {
    const weft_reducer *reducer;
    weft_dtype dtype;
    weft_combine combine;
    int width; /* numbers per result element */
    const char *in;
    char *out;
    size_t bytes;
    weft_nest kept, reduced;
    int64_t column_stride[2]; /* columns: of the kept direction that is contiguous in `in` */
    int64_t n_columns;        /* 1: rows                                                   */
    int64_t column_units;
    int64_t last, last_stride; /* innermost reduced loop, not in `reduced`                 */
    bool rows, asks;
    int64_t part;        /* rows: how many elements enter at a time   */
    int64_t first_index; /* argmax: global coordinate of the first element */
    int64_t n_reduced, n_chunks, chunk;
    int64_t n_units, grain;
} reduction;

/* A run of it. */
typedef struct running {
    const reduction *reduction;
    double *partial; /* [unit, chunk, state], in lane 0's scratch; NULL: one chunk */
} running;

/* ---- the plan -------------------------------------------------------------------------------- */

static void sort_dims(reduction *r, const weft_view *in, const weft_view *out)
{
    const weft_strided x = weft_strided_view(in), y = weft_strided_view(out);
    for (int d = 0; d < out->shape.n_dims - (r->width > 1); d++) {
        const char *name = out->shape.dims[d].name;
        weft_nest_add(&r->kept, weft_view_size(out, d),
                      (int64_t[3]){weft_strided_of(&x, name), y.stride[d]});
    }
    for (int d = 0; d < in->shape.n_dims; d++)
        if (weft_shape_find(&out->shape, in->shape.dims[d].name) < 0)
            weft_nest_add(&r->reduced, weft_view_size(in, d), (int64_t[3]){x.stride[d]});
    r->n_reduced = weft_nest_count(&r->reduced);
}

static void choose_direction(reduction *r)
{
    r->last = r->n_columns = r->column_units = 1;
    const int inner = r->reduced.n_dims - 1;
    if (inner >= 0) {
        r->last = r->reduced.size[inner];
        r->last_stride = r->reduced.stride[inner][IN];
        weft_nest_drop(&r->reduced, inner);
    }
    r->rows = r->last_stride == 1;
    r->asks = r->rows && r->reducer->asks[r->dtype];
    r->part = weft_row_part(r->last);
    for (int d = 0; d < r->kept.n_dims && !r->rows; d++) {
        if (r->kept.stride[d][IN] != 1) continue;
        r->n_columns = r->kept.size[d];
        memcpy(r->column_stride, r->kept.stride[d], sizeof r->column_stride);
        weft_nest_drop(&r->kept, d);
        break;
    }
    r->column_units = (r->n_columns + WEFT_COLUMNS - 1) / WEFT_COLUMNS;
}

static void cut_chunks(reduction *r)
{
    const int64_t n_units = r->n_units = weft_nest_count(&r->kept) * r->column_units;
    const int64_t columns = r->n_columns < WEFT_COLUMNS ? r->n_columns : WEFT_COLUMNS;
    r->chunk = weft_reduce_chunk(r->n_reduced, n_units, columns, r->rows ? r->part : 1);
    r->n_chunks = r->chunk > 0 ? (r->n_reduced + r->chunk - 1) / r->chunk : 1;
    r->grain = weft_grain(r->chunk * columns);
}

/* ---- the work -------------------------------------------------------------------------------- */

/* What enters a state at once: elements [begin, end) of an innermost reduced loop, which begins at x; the first of the loop has
 * number `index`. next: what is read after them. */
typedef struct stretch {
    const char *x, *next;
    int64_t begin, end, index;
} stretch;

/* For n columns. A row asks for what is read next, piece by piece. */
static void take_run(const reduction *r, double *state, int64_t n, const stretch *run)
{
    const int64_t most = WEFT_PARTS * r->part;
    if (!r->rows) {
        weft_columns[r->combine][r->dtype](
            state, run->x + (size_t)(run->begin * r->last_stride) * r->bytes, r->last_stride,
            run->end - run->begin, n, run->index + run->begin);
        return;
    }
    for (int64_t i = run->begin; i < run->end; i += most) {
        const bool is_last = run->end - i <= most;
        const int64_t some = is_last ? run->end - i : most;
        const char *x = run->x + (size_t)i * r->bytes;
        const int64_t ahead = is_last ? (run->next - x) / (int64_t)r->bytes : some;
        r->reducer->row[r->dtype](state, &(weft_span){.x = x,
                                                      .n = some,
                                                      .part = r->part,
                                                      .index = run->index + i,
                                                      .ahead = r->asks ? ahead : 0});
    }
}

/* Elements [begin, end) of the reduced range enter `state`, for n columns from `from`. Behind the last of them is what is read
 * next, mostly. */
static void take_in(const reduction *r, double *state, const char *from, int64_t n, int64_t begin,
                    int64_t end)
{
    if (r->reduced.n_dims ==
        0) { /* the innermost loop is all of it, as of argmax, which reduces one dim */
        take_run(r, state, n,
                 &(stretch){from, from + (size_t)end * r->bytes, begin, end, r->first_index});
        return;
    }
    int64_t at[3];
    weft_nest_offset(&r->reduced, begin / r->last, at);
    while (begin < end) {
        const int64_t i = begin % r->last, left = r->last - i;
        const int64_t some = end - begin < left ? end - begin : left;
        const char *x = from + (size_t)at[IN] * r->bytes;
        stretch run = {x, x + (size_t)(i + some) * r->bytes, i, i + some,
                       r->first_index + begin - i};
        begin += some;
        if (begin < end) {
            weft_nest_offset(&r->reduced, begin / r->last, at);
            run.next = from + (size_t)at[IN] * r->bytes;
        }
        take_run(r, state, n, &run);
    }
}

typedef struct unit { /* where a unit reads and writes */
    const char *from;
    char *to;
    int64_t n; /* columns */
} unit;

static void store(const reduction *r, const double *state, const unit *u)
{
    weft_state_store(r->combine, r->dtype, state, u->n, u->to, r->column_stride[OUT]);
}

static unit locate(const reduction *r, int64_t index)
{
    int64_t at[3];
    const bool is_whole = r->column_units == 1; /* a division takes as long as a short row */
    weft_nest_offset(&r->kept, is_whole ? index : index / r->column_units, at);
    const int64_t first = is_whole ? 0 : index % r->column_units * WEFT_COLUMNS;
    const int64_t left = r->n_columns - first;
    return (unit){r->in + (size_t)(at[IN] + first) * r->bytes,
                  r->out + (size_t)(at[OUT] + first * r->column_stride[OUT]) * r->bytes,
                  left < WEFT_COLUMNS ? left : WEFT_COLUMNS};
}

/* Rows one after the other, each the whole of a result: the next one lies a step further. */
static bool has_plain_rows(const reduction *r)
{
    return r->rows && r->dtype == WEFT_F32 && r->width == 1 && r->n_chunks == 1 &&
           r->reduced.n_dims == 0 && r->kept.n_dims <= 1;
}

static void run_plain_rows(const reduction *r, int64_t begin, int64_t end)
{
    const int64_t *stride = r->kept.stride[0];
    for (int64_t i = begin; i < end; i++) {
        double state = r->reducer->identity[0];
        const char *x = r->in + i * stride[IN] * (int64_t)sizeof(float);
        take_run(
            r, &state, 1,
            &(stretch){x, x + stride[IN] * (int64_t)sizeof(float), 0, r->last, r->first_index});
        ((float *)(void *)r->out)[i * stride[OUT]] = (float)state;
    }
}

static void run_tasks(void *argument, int64_t begin, int64_t end, int lane)
{
    const running *run = argument;
    const reduction *r = run->reduction;
    double own[ONE_STATE];
    (void)lane;
    if (has_plain_rows(r)) {
        run_plain_rows(r, begin, end);
        return;
    }
    for (int64_t task = begin; task < end; task++) {
        const bool is_whole = r->n_chunks == 1;
        const unit u = locate(r, is_whole ? task : task / r->n_chunks);
        double *state = run->partial != NULL ? run->partial + task * ONE_STATE : own;
        const int64_t first = is_whole ? 0 : task % r->n_chunks * r->chunk;
        const int64_t stop = first + r->chunk < r->n_reduced ? first + r->chunk : r->n_reduced;
        weft_state_clear(r->combine, state, u.n);
        take_in(r, state, u.from, u.n, first, stop);
        if (run->partial == NULL) store(r, state, &u);
    }
}

static void merge_chunks(const reduction *r, double *partial)
{
    for (int64_t i = 0; i < r->n_units; i++) {
        const unit u = locate(r, i);
        double *state = partial + i * r->n_chunks * ONE_STATE;
        for (int64_t c = 1; c < r->n_chunks; c++)
            r->reducer->merge(state, state + c * ONE_STATE, u.n);
        store(r, state, &u);
    }
}

static void point_at(reduction *r, const weft_call *call)
{
    r->in = call->in[0].data, r->out = call->out[0].data;
}

/* All that does not change from run to run. */
static void plan(reduction *r, const weft_call *call)
{
    const weft_reduce_attributes *attributes = call->attributes;
    const weft_view *in = &call->in[0], *out = &call->out[0];
    *r = (reduction){.combine = attributes->combine, .dtype = in->dtype};
    if (weft_view_count(out) == 0) return; /* no units */
    r->reducer = &weft_reducers[attributes->combine];
    r->bytes = weft_dtype_bytes(r->dtype);
    r->width = weft_combine_width(r->combine);
    const int along = r->combine == WEFT_ARGMAX ? weft_shape_find(&in->shape, attributes->dim) : -1;
    if (along >= 0) r->first_index = in->box.begin[along];
    sort_dims(r, in, out);
    choose_direction(r);
    cut_chunks(r);
}

static void run(const reduction *r, weft_stream *stream)
{
    running now = {.reduction = r};
    if (r->n_units == 0) return;
    if (r->n_chunks > 1) now.partial = weft_stream_scratch(stream, 0);
    weft_parallel(stream, r->n_units * r->n_chunks, r->grain, run_tasks, &now);
    if (now.partial != NULL) merge_chunks(r, now.partial);
}

static weft_status prepare(const weft_call *call, weft_arena *arena, void **prepared,
                           weft_error *error)
{
    reduction *r = *prepared = weft_arena_take(arena, sizeof *r);
    if (r == NULL) return weft_fail_memory(error, sizeof *r);
    plan(r, call);
    return WEFT_OK;
}

static void launch(const weft_call *call)
{
    reduction *r = call->prepared;
    point_at(r, call);
    run(r, call->stream);
}

/* What doubles do not hold is not for this one. */
static bool takes(const weft_call *call)
{
    const weft_reduce_attributes *attributes = call->attributes;
    return weft_reducers[attributes->combine].row[call->in[0].dtype] != NULL;
}

void weft_reduce_cpu(const weft_call *call)
{
    reduction r;
    plan(&r, call);
    point_at(&r, call);
    run(&r, call->stream);
}

const weft_kernel weft_kernel_reduce = {
    .size = sizeof(weft_kernel),
    .name = "reduce",
    .device = WEFT_CPU,
    .dtypes = WEFT_FLOAT_DTYPES | WEFT_DTYPE_BIT(WEFT_I32),
    .takes = takes,
    .prepare = prepare,
    .launch = launch,
    .prepares_alike = true,
};
