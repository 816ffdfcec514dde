/* pool.c: max pooling, elements put back by taps, and picked by them. Dims match by place.
 *
 * The last dim is one loop, the others are a lane's work one after the other; taps go in row-major order over the windows, and
 * sums in that order too. Rows of a last dim without a window are done in vectors (pool_rows.h).
 */
#include "cpu/nest.h"
#include "cpu/pool_rows.h"
#include "cpu/relay.h"

#include <math.h>
#include <string.h>

typedef struct pool_dim {         /* of x and y, by place */
    int64_t x_size, y_size, x, y; /* of the boxes, with element strides */
    int64_t taps, stride, dilation,
        offset; /* local: element o and tap t are at stride o + dilation t + offset */
    int64_t by; /* of the number of a tap: those of the windows after it */
} pool_dim;

typedef struct pool {
    int n_dims;
    pool_dim dim[WEFT_MAX_DIMS];
    int64_t n_taps, count; /* count: of elements before the last dim, on the side that results */
    weft_dtype dtype;
    const void *from;
    const int32_t *which;
    void *to;
    int32_t *taps; /* max_pool's */
    bool streams;  /* a large result */
} pool;

static void find_window(pool *p, const weft_call *call, const weft_view *x, const weft_view *y,
                        int d)
{
    const weft_pool_attributes *attributes = call->attributes;
    pool_dim *dim = &p->dim[d];
    dim->taps = dim->stride = dim->by = 1;
    dim->dilation = 0;
    dim->offset = y->box.begin[d] - x->box.begin[d];
    for (int s = attributes->n_windows - 1, by = 1; s >= 0; s--) {
        const weft_pool_window *w = &attributes->window[s];
        if (strcmp(w->x, x->shape.dims[d].name) == 0) {
            dim->taps = w->taps, dim->stride = w->stride, dim->dilation = w->dilation;
            dim->offset = w->stride * y->box.begin[d] + w->offset - x->box.begin[d];
            dim->by = by;
        }
        by *= (int)w->taps;
    }
}

static pool pool_of(const weft_call *call, const weft_view *x, const weft_view *y)
{
    const weft_pool_attributes *attributes = call->attributes;
    pool p = {.n_dims = x->shape.n_dims, .n_taps = 1, .dtype = call->in[0].dtype};
    int64_t x_stride = 1, y_stride = 1;
    for (int d = p.n_dims - 1; d >= 0; d--) {
        p.dim[d] = (pool_dim){weft_view_size(x, d), weft_view_size(y, d), x_stride, y_stride};
        x_stride *= p.dim[d].x_size, y_stride *= p.dim[d].y_size;
        find_window(&p, call, x, y, d);
    }
    for (int s = 0; s < attributes->n_windows; s++)
        p.n_taps *= attributes->window[s].taps;
    p.from = call->in[0].data, p.to = call->out[0].data;
    return p;
}

static int64_t tap_of(const pool_dim *dim, int64_t tap)
{
    return dim->dilation * (tap / dim->by % dim->taps);
}

static int64_t floor_of(int64_t a, int64_t by)
{
    return a / by - (a % by < 0);
}

/* Of the last dim those o whose tap is in x: [*begin, *end); x: of o = 0. */
static void reach(const pool_dim *last, int64_t tap, int64_t *begin, int64_t *end, int64_t *x)
{
    *x = last->offset + tap_of(last, tap);
    *begin = -floor_of(*x, last->stride);
    *end = floor_of(last->x_size - 1 - *x, last->stride) + 1;
    if (*begin < 0) *begin = 0;
    if (*end > last->y_size) *end = last->y_size;
}

/* Row number `row` of y and a tap: the row of x; false: it is outside. */
static bool row_of_x(const pool *p, int64_t row, int64_t tap, int64_t *x)
{
    for (int d = p->n_dims - 2; d >= 0; d--) {
        const pool_dim *dim = &p->dim[d];
        const int64_t at = dim->stride * (row % dim->y_size) + dim->offset + tap_of(dim, tap);
        row /= dim->y_size;
        if (at < 0 || at >= dim->x_size) return false;
        *x += at * dim->x;
    }
    return true;
}

/* Row number `row` of x and a tap: the row of y; false: there is none. */
static bool row_of_y(const pool *p, int64_t row, int64_t tap, int64_t *y)
{
    for (int d = p->n_dims - 2; d >= 0; d--) {
        const pool_dim *dim = &p->dim[d];
        const int64_t at = row % dim->x_size - dim->offset - tap_of(dim, tap);
        row /= dim->x_size;
        if (at % dim->stride != 0 || at < 0 || at / dim->stride >= dim->y_size) return false;
        *y += at / dim->stride * dim->y;
    }
    return true;
}

#define POOL(s, T, LEAST, IS_MORE)                                                                 \
    static void largest_##s(const pool *p, int64_t row)                                            \
    {                                                                                              \
        const pool_dim *last = &p->dim[p->n_dims - 1];                                             \
        T *y = (T *)p->to + row * last->y_size;                                                    \
        int32_t *which = p->taps + row * last->y_size;                                             \
        for (int64_t i = 0; i < last->y_size; i++)                                                 \
            y[i] = LEAST, which[i] = -1;                                                           \
        for (int64_t tap = 0; tap < p->n_taps; tap++) {                                            \
            int64_t at = 0, begin, end, first;                                                     \
            if (!row_of_x(p, row, tap, &at)) continue;                                             \
            reach(last, tap, &begin, &end, &first);                                                \
            const T *x = (const T *)p->from + at + first;                                          \
            for (int64_t i = begin; i < end; i++) {                                                \
                const T a = x[i * last->stride], b = y[i];                                         \
                const bool is_more = which[i] < 0 || (IS_MORE);                                    \
                y[i] = is_more ? a : b;                                                            \
                which[i] = is_more ? (int32_t)tap : which[i];                                      \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void put_##s(const pool *p, int64_t row)                                                \
    {                                                                                              \
        const pool_dim *last = &p->dim[p->n_dims - 1];                                             \
        T *x = (T *)p->to + row * last->x_size;                                                    \
        memset(x, 0, (size_t)last->x_size * sizeof *x);                                            \
        for (int64_t tap = 0; tap < p->n_taps; tap++) {                                            \
            int64_t at = 0, begin, end, first;                                                     \
            if (!row_of_y(p, row, tap, &at)) continue;                                             \
            reach(last, tap, &begin, &end, &first);                                                \
            const T *y = (const T *)p->from + at;                                                  \
            for (int64_t i = begin; i < end; i++)                                                  \
                if (p->which[at + i] == tap) x[first + i * last->stride] += y[i];                  \
        }                                                                                          \
    }
POOL(f32, float, -INFINITY, (a > b || a != a) && b == b)
POOL(f64, double, -INFINITY, (a > b || a != a) && b == b)
POOL(i32, int32_t, INT32_MIN, a > b)
POOL(i64, int64_t, INT64_MIN, a > b)

typedef void (*row_work)(const pool *p, int64_t row);
static const row_work largest[WEFT_DTYPES] = {[WEFT_F32] = largest_f32,
                                              [WEFT_F64] = largest_f64,
                                              [WEFT_I32] = largest_i32,
                                              [WEFT_I64] = largest_i64};
static const row_work put[WEFT_DTYPES] = {
    [WEFT_F32] = put_f32, [WEFT_F64] = put_f64, [WEFT_I32] = put_i32, [WEFT_I64] = put_i64};

/* ---- rows without a window --------------------------------------------------------------------- */

/* Of one dim: what of the other side goes with a coordinate, by rising tap. */
typedef struct reached {
    int n;
    int64_t at[WEFT_POOL_TAPS]; /* elements */
    int32_t tap[WEFT_POOL_TAPS];
} reached;

static void add_reached(reached *r, int64_t at, int64_t tap)
{
    r->at[r->n] = at;
    r->tap[r->n++] = (int32_t)tap;
}

static void reach_x(const pool_dim *dim, int64_t i, reached *r)
{
    r->n = 0;
    for (int64_t t = 0, at = dim->stride * i + dim->offset; t < dim->taps; t++, at += dim->dilation)
        if (at >= 0 && at < dim->x_size) add_reached(r, at * dim->x, t * dim->by);
}

static void reach_y(const pool_dim *dim, int64_t i, reached *r)
{
    r->n = 0;
    for (int64_t t = 0, at = i - dim->offset; t < dim->taps; t++, at -= dim->dilation)
        if (at >= 0 && at % dim->stride == 0 && at / dim->stride < dim->y_size)
            add_reached(r, at / dim->stride * dim->y, t * dim->by);
}

/* A place in the rows of one side, and what of the other goes with each of its coordinates. */
typedef struct place {
    const pool *p;
    bool is_of_y;
    int64_t index[WEFT_MAX_DIMS];
    reached of[WEFT_MAX_DIMS];
} place;

static int64_t size_of(const place *at, int d)
{
    return at->is_of_y ? at->p->dim[d].y_size : at->p->dim[d].x_size;
}

static void reach_dim(place *at, int d)
{
    (at->is_of_y ? reach_x : reach_y)(&at->p->dim[d], at->index[d], &at->of[d]);
}

static void go_to(place *at, int64_t row)
{
    for (int d = at->p->n_dims - 2; d >= 0; d--) {
        at->index[d] = row % size_of(at, d);
        row /= size_of(at, d);
        reach_dim(at, d);
    }
}

static void go_on(place *at)
{
    for (int d = at->p->n_dims - 2; d >= 0; d--) {
        const bool is_next = ++at->index[d] < size_of(at, d);
        if (!is_next) at->index[d] = 0;
        reach_dim(at, d);
        if (is_next) return;
    }
}

/* All that goes with a row: every choice of what goes with its coordinates. */
static void join(const place *at, weft_pool_taps *taps)
{
    taps->n = 1;
    taps->at[0] = 0, taps->tap[0] = 0;
    for (int d = at->p->n_dims - 2; d >= 0; d--) {
        const reached *r = &at->of[d];
        const int n = taps->n;
        for (int i = r->n - 1; i >= 0; i--) /* the first last: it is what the others are made of */
            for (int k = 0; k < n; k++) {
                taps->at[i * n + k] = taps->at[k] + r->at[i];
                taps->tap[i * n + k] = taps->tap[k] + r->tap[i];
            }
        taps->n = n * r->n;
    }
}

static void vector_rows(const pool *p, bool is_of_y, int64_t begin, int64_t end)
{
    const weft_pool_rows *rows = weft_pool_rows_of(p->dtype);
    const int64_t n = p->dim[p->n_dims - 1].y_size;
    const size_t bytes = weft_dtype_bytes(p->dtype);
    const bool streams =
        !is_of_y && p->streams && (uintptr_t)p->to % 64 == 0 && n * (int64_t)bytes % 64 == 0;
    place at = {.p = p, .is_of_y = is_of_y};
    weft_pool_taps taps;
    go_to(&at, begin);
    for (int64_t i = begin; i < end; i++, go_on(&at)) {
        char *to = (char *)p->to + (size_t)(i * n) * bytes;
        join(&at, &taps);
        if (is_of_y)
            rows->largest(&taps, n, p->from, to, p->taps + i * n);
        else
            rows->put(&taps, n, p->from, p->which, streams, to);
    }
    if (streams) weft_relay_fence();
}

static bool has_vectors(const pool *p)
{
    const pool_dim *last = &p->dim[p->n_dims - 1];
    return last->taps == 1 && last->stride == 1 && last->offset == 0 &&
           last->x_size == last->y_size && p->n_taps <= WEFT_POOL_TAPS;
}

/* ---- any rows ---------------------------------------------------------------------------------- */

/* Element i of a row of y: its tap may be any. */
static void pick_row(const pool *p, int64_t row)
{
    const pool_dim *last = &p->dim[p->n_dims - 1];
    const size_t bytes = weft_dtype_bytes(p->dtype);
    char *y = (char *)p->to + (size_t)(row * last->y_size) * bytes;
    for (int64_t i = 0; i < last->y_size; i++, y += bytes) {
        const int64_t tap = p->which[row * last->y_size + i];
        int64_t x = 0;
        memset(y, 0, bytes);
        if (tap < 0 || tap >= p->n_taps || !row_of_x(p, row, tap, &x)) continue;
        const int64_t at = last->stride * i + last->offset + tap_of(last, tap);
        if (at < 0 || at >= last->x_size) continue;
        memcpy(y, (const char *)p->from + (size_t)(x + at) * bytes, bytes);
    }
}

#define ROWS(name, work)                                                                           \
    static void name(void *argument, int64_t begin, int64_t end, int lane)                         \
    {                                                                                              \
        const pool *p = argument;                                                                  \
        (void)lane;                                                                                \
        for (int64_t i = begin; i < end; i++)                                                      \
            (work)(p, i);                                                                          \
    }
ROWS(largest_any_rows, largest[p->dtype])
ROWS(put_any_rows, put[p->dtype])
ROWS(pick_rows, pick_row)

static void largest_rows(void *argument, int64_t begin, int64_t end, int lane)
{
    if (has_vectors(argument))
        vector_rows(argument, true, begin, end);
    else
        largest_any_rows(argument, begin, end, lane);
}

static void put_rows(void *argument, int64_t begin, int64_t end, int lane)
{
    if (has_vectors(argument))
        vector_rows(argument, false, begin, end);
    else
        put_any_rows(argument, begin, end, lane);
}

static void run(const weft_call *call, pool *p, int64_t length, weft_piece body)
{
    const int64_t count = weft_view_count(&call->out[0]);
    p->streams = count * (int64_t)weft_dtype_bytes(p->dtype) >= WEFT_STREAMED;
    if (count > 0)
        weft_parallel(call->stream, count / length, weft_grain(length * p->n_taps), body, p);
}

void weft_max_pool_cpu(const weft_call *call)
{
    pool p = pool_of(call, &call->in[0], &call->out[0]);
    p.taps = call->out[1].data;
    run(call, &p, p.dim[p.n_dims - 1].y_size, largest_rows);
}

void weft_unpool_cpu(const weft_call *call)
{
    pool p = pool_of(call, &call->out[0], &call->in[0]);
    p.which = call->in[1].data;
    run(call, &p, p.dim[p.n_dims - 1].x_size, put_rows);
}

void weft_pool_pick_cpu(const weft_call *call)
{
    pool p = pool_of(call, &call->in[0], &call->out[0]);
    p.which = call->in[1].data;
    run(call, &p, p.dim[p.n_dims - 1].y_size, pick_rows);
}

#define KERNEL(op, of)                                                                             \
    const weft_kernel weft_kernel_##op = {                                                         \
        .size = sizeof(weft_kernel),                                                               \
        .name = #op,                                                                               \
        .device = WEFT_CPU,                                                                        \
        .dtypes = of,                                                                              \
        .launch = weft_##op##_cpu,                                                                 \
    };
KERNEL(max_pool, WEFT_WIDE_DTYPES)
KERNEL(unpool, WEFT_WIDE_DTYPES)
KERNEL(pool_pick, WEFT_ANY_DTYPE)
