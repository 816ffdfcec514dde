/* scatter.c: scatter_add, scatter_max and unpick: rows go where a tensor of ids points. See indexing.h.
 *
 * Each element of the result is one lane's, and gets its rows in the order of the ids: its bits are the same however lanes share
 * the work.
 */
#include "cpu/indexing.h"
#include "weft/extend/math.h"
#include "weft/extend/target_clones.h"

#include <math.h>
#include <string.h>

typedef void (*put_run)(char *to, int64_t to_stride, const char *from, int64_t stride, int64_t n);

/* What is put where: ids in [first, end) whose band (below) is of a class in [class_first, class_end), elements [from, stop) of a
 * run; and the innermost loop of the ids. */
typedef struct scattering {
    const weft_indexing *x;
    const struct putting *put;
    int64_t first, end, from, stop;
    int band;
    uint64_t class_first, class_end;
    int64_t size, by[WEFT_NEST_TENSORS];
} scattering;

/* Rows of one element, along the innermost loop of the ids. */
typedef void (*put_each)(const scattering *s, const int64_t *at);

/* `both` of what is there, y, and of the row's x. */
#define PUT_RUN(name, T, both)                                                                     \
    WEFT_TARGET_CLONES static void name(char *to, int64_t to_stride, const char *from,             \
                                        int64_t stride, int64_t n)                                 \
    {                                                                                              \
        T *y_ = (T *)to;                                                                           \
        const T *x_ = (const T *)from;                                                             \
        if (to_stride == 1 && stride == 1) {                                                       \
            for (int64_t i = 0; i < n; i++) {                                                      \
                const T y = y_[i], x = x_[i];                                                      \
                y_[i] = (T)(both);                                                                 \
            }                                                                                      \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const T y = y_[i * to_stride], x = x_[i * stride];                                     \
            y_[i * to_stride] = (T)(both);                                                         \
        }                                                                                          \
    }                                                                                              \
    static void name##_each(const scattering *s, const int64_t *at)                                \
    {                                                                                              \
        const int32_t *id_ = s->x->id + at[IDS];                                                   \
        T *y_ = (T *)(void *)s->x->table + at[TABLE] - s->x->first * s->x->step;                   \
        const T *x_ = (const T *)(const void *)s->x->rows + at[ROWS];                              \
        for (int64_t i = 0; i < s->size; i++) {                                                    \
            const int64_t id = id_[i * s->by[IDS]];                                                \
            if (id < s->first || id >= s->end) continue;                                           \
            T *to = y_ + i * s->by[TABLE] + id * s->x->step;                                       \
            const T y = *to, x = x_[i * s->by[ROWS]];                                              \
            *to = (T)(both);                                                                       \
        }                                                                                          \
    }
PUT_RUN(add_f32, float, y + x)
PUT_RUN(add_f64, double, y + x)
PUT_RUN(add_i32, int32_t, (uint32_t)y + (uint32_t)x)
PUT_RUN(add_i64, int64_t, (uint64_t)y + (uint64_t)x)
PUT_RUN(max_f32, float, x > y || x != x ? x : y)
PUT_RUN(max_f64, double, x > y || x != x ? x : y)
PUT_RUN(max_i32, int32_t, x > y ? x : y)
PUT_RUN(max_i64, int64_t, x > y ? x : y)

typedef struct putting {
    put_run run;
    put_each each;
} putting;
static const putting adds[WEFT_DTYPES] = {[WEFT_F32] = {add_f32, add_f32_each},
                                          [WEFT_F64] = {add_f64, add_f64_each},
                                          [WEFT_I32] = {add_i32, add_i32_each},
                                          [WEFT_I64] = {add_i64, add_i64_each}};
static const putting maxima[WEFT_DTYPES] = {[WEFT_F32] = {max_f32, max_f32_each},
                                            [WEFT_F64] = {max_f64, max_f64_each},
                                            [WEFT_I32] = {max_i32, max_i32_each},
                                            [WEFT_I64] = {max_i64, max_i64_each}};

/* Rows next to each other are a band, and every CLASSES-th band is of one class. The rows that most ids point to often have numbers
 * near each other, as frequent words have: so a band and the next are of classes that are far apart, and of two lanes. */
enum { CLASSES = 64, APART = 39, BAND_BYTES = 4096, ALL_ONE_BAND = 63 };
static bool is_wanted(const scattering *s, int64_t id)
{
    const uint64_t row = (uint64_t)(id - s->first), n_rows = (uint64_t)(s->end - s->first);
    const uint64_t class = ((uint64_t)(id - s->x->first) >> s->band) * APART % CLASSES;
    return (row < n_rows) & (class - s->class_first < s->class_end - s->class_first);
}

/* Those of n ids from `from` on that are wanted, in order: by how much they come after it. */
static int list_wanted(const scattering *s, const int32_t *from, int n, int32_t *list)
{
    int n_wanted = 0;
    for (int32_t i = 0; i < n; i++) {
        list[n_wanted] = i;
        n_wanted += is_wanted(s, from[i * s->by[IDS]]);
    }
    return n_wanted;
}

/* Along the innermost loop of the ids: where row i of it is, and where it goes to. */
WEFT_INLINE void find_row(const scattering *s, const int64_t *at, int64_t i, int64_t *row,
                          int64_t *to)
{
    const weft_indexing *x = s->x;
    const int64_t id = x->id[at[IDS] + i * s->by[IDS]];
    *to = at[TABLE] + i * s->by[TABLE] + (id - x->first) * x->step + s->from * x->run_stride[TABLE];
    *row = at[ROWS] + i * s->by[ROWS] + s->from * x->run_stride[ROWS];
}

/* A row that comes later, and where it goes to: both are asked for, as no row says where the next one goes. Always inlined: gcc takes
 * a function that only asks for one that does nothing, and drops its calls. */
enum { AHEAD = 6, LINE = 64, LEAST_ASKED = 4 * LINE };
WEFT_INLINE void ask_ahead(const scattering *s, const int64_t *at, int64_t i)
{
    const weft_indexing *x = s->x;
    const int64_t bytes = (s->stop - s->from) * (int64_t)x->bytes;
    int64_t row, to;
    find_row(s, at, i, &row, &to);
    const char *table = x->table + (size_t)to * x->bytes, *rows = x->rows + (size_t)row * x->bytes;
    for (int64_t b = 0; b < bytes; b += LINE) {
        __builtin_prefetch(rows + b, 0, 2);
        __builtin_prefetch(table + b, 1, 3);
    }
}

static void put_row(const scattering *s, const int64_t *at, int64_t i)
{
    const weft_indexing *x = s->x;
    const int64_t *stride = x->run_stride;
    int64_t in[WEFT_NEST_TENSORS] = {0}, row, to;
    find_row(s, at, i, &row, &to);
    for (int64_t r = 0; r < x->n_rest; r++) {
        if (x->n_rest > 1) weft_nest_offset(&x->rest, r, in);
        s->put->run(x->table + (size_t)(to + in[TABLE]) * x->bytes, stride[TABLE],
                    x->rows + (size_t)(row + in[ROWS]) * x->bytes, stride[ROWS], s->stop - s->from);
    }
}

/* Along the innermost loop of the ids, a list of them after the other. */
enum { LISTED = 1024 };
static void scatter_along(const scattering *s, const int64_t *at, bool asks)
{
    int32_t list[LISTED];
    for (int64_t begin = 0; begin < s->size; begin += LISTED) {
        const int n = (int)(s->size - begin < LISTED ? s->size - begin : LISTED);
        const int n_wanted = list_wanted(s, s->x->id + at[IDS] + begin * s->by[IDS], n, list);
        for (int k = 0; k < n_wanted; k++) {
            if (asks && k + AHEAD < n_wanted) ask_ahead(s, at, begin + list[k + AHEAD]);
            put_row(s, at, begin + list[k]);
        }
    }
}

/* Every id in order, so that sums have one order whatever the lanes. */
static void scatter(scattering s)
{
    const weft_indexing *x = s.x;
    const int last = x->ids.n_dims - 1;
    const bool is_each = x->n_rest * x->run == 1;
    s.size = 1;
    if (last >= 0) {
        s.size = x->ids.size[last];
        memcpy(s.by, x->ids.stride[last], sizeof s.by);
    }
    const bool asks = (s.stop - s.from) * (int64_t)x->bytes >= LEAST_ASKED &&
                      x->run_stride[TABLE] == 1 && x->run_stride[ROWS] == 1;
    const int64_t n_ids = weft_nest_count(&x->ids);
    for (int64_t begin = 0; begin < n_ids; begin += s.size) {
        int64_t at[WEFT_NEST_TENSORS];
        weft_nest_offset(&x->ids, begin, at);
        if (is_each)
            s.put->each(&s, at);
        else
            scatter_along(&s, at, asks);
    }
}

/* All ids, and all of each row. */
static scattering all_of(const weft_indexing *x, const putting *put)
{
    return (scattering){.x = x,
                        .put = put,
                        .first = x->first,
                        .end = x->end,
                        .stop = x->run,
                        .band = ALL_ONE_BAND,
                        .class_end = CLASSES};
}

/* Lanes own parts of every row ... */
enum { PART = 16 };
static void scatter_parts(void *argument, int64_t begin, int64_t end, int lane)
{
    scattering s = *(const scattering *)argument;
    (void)lane;
    s.from = begin * PART, s.stop = end * PART < s.stop ? end * PART : s.stop;
    scatter(s);
}

/* ... or whole rows: those of a class ... */
static int band_of(const weft_indexing *x)
{
    const int64_t bytes = x->step * (int64_t)x->bytes;
    int band = 0;
    while (bytes > 0 && bytes << band < BAND_BYTES)
        band++;
    return band;
}

static void scatter_classes(void *argument, int64_t begin, int64_t end, int lane)
{
    scattering s = *(const scattering *)argument;
    (void)lane;
    s.band = band_of(s.x);
    s.class_first = (uint64_t)begin, s.class_end = (uint64_t)end;
    scatter(s);
}

/* ... or, where there are few, those next to each other. */
static void scatter_rows(void *argument, int64_t begin, int64_t end, int lane)
{
    scattering s = *(const scattering *)argument;
    (void)lane;
    s.first += begin, s.end = s.first + end - begin;
    scatter(s);
}

/* A part of a row that is shorter than this, in bytes, is brought with its neighbour, which another lane has: memory is read
 * ahead. Where rows are few elements each lane would look at all ids, which is most of the work: one lane does all. */
enum { LEAST_PART = 1024, LEAST_SHARED = 4 };

static bool is_cut_in_parts(const weft_indexing *x, int n_lanes)
{
    const int64_t n_bands = (x->end - x->first) >> band_of(x);
    const bool is_short = x->run * (int64_t)x->bytes < n_lanes * LEAST_PART;
    return x->run >= 4 * PART && (!is_short || n_bands < 2 * CLASSES);
}

/* Into a result that holds what rows go on from. */
static void scatter_all(const weft_call *call, const putting *puts)
{
    const weft_dim_attributes *attributes = call->attributes;
    const weft_view *rows = &call->in[0], *ids = &call->in[1], *out = &call->out[0];
    if (weft_view_count(rows) == 0) return;
    weft_indexing x = {0};
    weft_indexing_open(&x, out, ids, rows, attributes->dim);
    const int64_t n_ids = weft_nest_count(&x.ids), n_rows = x.end - x.first;
    const int64_t work = n_ids * x.n_rest * x.run;
    scattering all = all_of(&x, &puts[out->dtype]);
    if (is_cut_in_parts(&x, weft_stream_lanes(call->stream)))
        weft_parallel(call->stream, (x.run + PART - 1) / PART, weft_grain(n_ids * x.n_rest * PART),
                      scatter_parts, &all);
    else if (x.n_rest * x.run < LEAST_SHARED)
        scatter(all);
    else if (n_rows >> band_of(&x) >= 2 * CLASSES)
        weft_parallel(call->stream, CLASSES, weft_grain(work / CLASSES), scatter_classes, &all);
    else
        weft_parallel(call->stream, n_rows, weft_grain(work / n_rows), scatter_rows, &all);
}

void weft_scatter_add_cpu(const weft_call *call)
{
    if (weft_view_count(&call->out[0]) == 0) return;
    weft_begin_sum(call);
    scatter_all(call, adds);
}

/* The least there is: what no row is put to. */
static void begin_least(void *argument, int64_t begin, int64_t end, int lane)
{
    const weft_view *out = argument;
    (void)lane;
    for (int64_t i = begin; i < end && out->dtype == WEFT_F32; i++)
        ((float *)out->data)[i] = -INFINITY;
    for (int64_t i = begin; i < end && out->dtype == WEFT_F64; i++)
        ((double *)out->data)[i] = (double)-INFINITY;
    for (int64_t i = begin; i < end && out->dtype == WEFT_I32; i++)
        ((int32_t *)out->data)[i] = INT32_MIN;
    for (int64_t i = begin; i < end && out->dtype == WEFT_I64; i++)
        ((int64_t *)out->data)[i] = INT64_MIN;
}

void weft_scatter_max_cpu(const weft_call *call)
{
    weft_view out = call->out[0];
    const int64_t n = weft_view_count(&out);
    if (n == 0) return;
    weft_parallel(call->stream, n, weft_grain(1), begin_least, &out);
    scatter_all(call, maxima);
}

const weft_kernel weft_kernel_scatter_max = {
    .size = sizeof(weft_kernel),
    .name = "scatter_max",
    .device = WEFT_CPU,
    .dtypes = WEFT_WIDE_DTYPES,
    .launch = weft_scatter_max_cpu,
};

const weft_kernel weft_kernel_scatter_add = {
    .size = sizeof(weft_kernel),
    .name = "scatter_add",
    .device = WEFT_CPU,
    .dtypes = WEFT_WIDE_DTYPES,
    .launch = weft_scatter_add_cpu,
    .accumulates = true,
};

void weft_unpick_cpu(const weft_call *call)
{
    weft_scatter_add_cpu(call);
}

const weft_kernel weft_kernel_unpick = {
    .size = sizeof(weft_kernel),
    .name = "unpick",
    .device = WEFT_CPU,
    .dtypes = WEFT_WIDE_DTYPES,
    .launch = weft_unpick_cpu,
    .accumulates = true,
};
