/* index.c: gather, pick, scatter_add, scatter_max and unpick: the dim that a tensor of ids points into.
 *
 * Two nests of loops: `ids`, over the dims of the ids, and `rest`, over the result dims
 * (scatter_add: row dims) that the ids lack. The table's stride along a dim it shares with the ids
 * makes pick out of gather. Ids are global; one that the local box does not hold reads zeros and
 * adds nothing.
 */
#include "cpu/nest.h"
#include "cpu/widened.h"
#include "weft/extend/math.h"
#include "weft/extend/target_clones.h"

#include <math.h>
#include <string.h>

enum {
    IDS,
    TABLE,
    ROWS
}; /* the tensors of both nests; ROWS: gather's result, scatter_add's operand */

typedef uint8_t __attribute__((may_alias)) word1;
typedef uint16_t __attribute__((may_alias)) word2;
typedef uint32_t __attribute__((may_alias)) word4;
typedef uint64_t __attribute__((may_alias)) word8;

typedef void (*put_run)(char *to, int64_t to_stride, const char *from, int64_t stride, int64_t n);

typedef struct indexing {
    put_run put; /* of what scatters */
    size_t bytes;
    weft_nest ids, rest;
    int64_t n_rest;                             /* iterations of rest */
    int64_t run, run_stride[WEFT_NEST_TENSORS]; /* the innermost loop of rest, taken out of it */
    const int32_t *id;
    char *table, *rows;
    int64_t first, end, step; /* of the indexed dim in the table: its box and stride */
} indexing;

static void make_nests(indexing *x, const weft_view *table, const weft_view *ids,
                       const weft_view *rows, const char *dim)
{
    const weft_strided t = weft_strided_view(table), i = weft_strided_view(ids),
                       r = weft_strided_view(rows);
    const int along = weft_shape_find(&table->shape, dim);
    x->bytes = weft_dtype_bytes(table->dtype);
    x->id = ids->data, x->table = table->data, x->rows = rows->data;
    if (along >= 0)
        x->first = table->box.begin[along], x->end = table->box.end[along],
        x->step = t.stride[along];
    for (int d = 0; d < rows->shape.n_dims; d++) {
        const char *name = rows->shape.dims[d].name;
        const bool in_ids = weft_shape_find(&ids->shape, name) >= 0;
        const int64_t stride[3] = {weft_strided_of(&i, name), weft_strided_of(&t, name),
                                   r.stride[d]};
        weft_nest_add(in_ids ? &x->ids : &x->rest, weft_view_size(rows, d), stride);
    }
    x->run = 1;
    const int last = x->rest.n_dims - 1;
    if (last >= 0) {
        x->run = x->rest.size[last];
        memcpy(x->run_stride, x->rest.stride[last], sizeof x->run_stride);
        weft_nest_drop(&x->rest, last);
    }
    x->n_rest = weft_nest_count(&x->rest);
}

/* ---- gather ---------------------------------------------------------------------------------- */

static void clear_run(char *to, int64_t stride, int64_t n, size_t bytes)
{
    if (stride == 1) {
        memset(to, 0, (size_t)n * bytes);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        memset(to + (size_t)(i * stride) * bytes, 0, bytes);
}

#define COPY_EACH(T)                                                                               \
    static void copy_##T(char *to, int64_t to_stride, const char *from, int64_t stride, int64_t n) \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            ((T *)(void *)to)[i * to_stride] = ((const T *)(const void *)from)[i * stride];        \
    }
COPY_EACH(word1)
COPY_EACH(word2)
COPY_EACH(word4)
COPY_EACH(word8)
/* By the bytes of an element. */
static void (*const copies[])(char *to, int64_t to_stride, const char *from, int64_t stride,
                              int64_t n) = {
    [1] = copy_word1, [2] = copy_word2, [4] = copy_word4, [8] = copy_word8};

static void copy_run(char *to, int64_t to_stride, const char *from, int64_t stride, int64_t n,
                     size_t bytes)
{
    if (stride == 1 && to_stride == 1)
        memcpy(to, from, (size_t)n * bytes);
    else
        copies[bytes](to, to_stride, from, stride, n);
}

static void gather_pieces(void *argument, int64_t begin, int64_t end, int lane)
{
    const indexing *x = argument;
    (void)lane;
    for (int64_t i = begin; i < end; i++) {
        int64_t at[3], in[3];
        weft_nest_offset(&x->ids, i, at);
        const int64_t id = x->id[at[IDS]];
        const bool held = id >= x->first && id < x->end;
        for (int64_t r = 0; r < x->n_rest; r++) {
            weft_nest_offset(&x->rest, r, in);
            char *to = x->rows + (size_t)(at[ROWS] + in[ROWS]) * x->bytes;
            if (!held) {
                clear_run(to, x->run_stride[ROWS], x->run, x->bytes);
                continue;
            }
            const char *from =
                x->table + (size_t)(at[TABLE] + in[TABLE] + (id - x->first) * x->step) * x->bytes;
            copy_run(to, x->run_stride[ROWS], from, x->run_stride[TABLE], x->run, x->bytes);
        }
    }
}

/* n elements, each by itself, along the innermost loop of the ids. */
#define PICK_EACH(T)                                                                               \
    WEFT_TARGET_CLONES static void pick_##T(const indexing *x, const int64_t *stride,              \
                                            const int32_t *id, const char *table, char *rows,      \
                                            int64_t n)                                             \
    {                                                                                              \
        const T *from = (const T *)(const void *)table;                                            \
        T *to = (T *)(void *)rows;                                                                 \
        const int64_t first = x->first, size = x->end - x->first, step = x->step;                  \
        const int64_t of_id = stride[IDS], of_table = stride[TABLE], of_row = stride[ROWS];        \
        if (of_id == 1 && of_row == 1) {                                                           \
            for (int64_t i = 0; i < n; i++) {                                                      \
                const int64_t k = id[i] - first;                                                   \
                to[i] = k >= 0 && k < size ? from[k * step + i * of_table] : 0;                    \
            }                                                                                      \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const int64_t k = id[i * of_id] - first;                                               \
            to[i * of_row] = k >= 0 && k < size ? from[k * step + i * of_table] : 0;               \
        }                                                                                          \
    }
PICK_EACH(word1)
PICK_EACH(word2)
PICK_EACH(word4)
PICK_EACH(word8)
static void (*const picks[])(const indexing *x, const int64_t *stride, const int32_t *id,
                             const char *table, char *rows, int64_t n) = {
    [1] = pick_word1, [2] = pick_word2, [4] = pick_word4, [8] = pick_word8};

/* Of all elements in their order, some: stretches of the innermost loop. */
static void pick_elements(void *argument, int64_t begin, int64_t end, int lane)
{
    const indexing *x = argument;
    const int last = x->ids.n_dims - 1;
    const int64_t size = x->ids.size[last], *stride = x->ids.stride[last];
    (void)lane;
    while (begin < end) {
        const int64_t left = size - begin % size, n = left < end - begin ? left : end - begin;
        int64_t at[3];
        weft_nest_offset(&x->ids, begin, at);
        picks[x->bytes](x, stride, x->id + at[IDS], x->table + (size_t)at[TABLE] * x->bytes,
                        x->rows + (size_t)at[ROWS] * x->bytes, n);
        begin += n;
    }
}

static void gather(const weft_call *call)
{
    const weft_dim_attributes *attributes = call->attributes;
    const weft_view *table = &call->in[0], *ids = &call->in[1], *out = &call->out[0];
    if (weft_view_count(out) == 0) return;
    indexing x = {0};
    make_nests(&x, table, ids, out, attributes->dim);
    const int64_t n = weft_nest_count(&x.ids);
    if (x.n_rest * x.run == 1 && x.ids.n_dims > 0)
        weft_parallel(call->stream, n, weft_grain(4), pick_elements, &x);
    else
        weft_parallel(call->stream, n, weft_grain(x.n_rest * x.run + 8), gather_pieces, &x);
}

/* What is chosen of a table of one dtype may come out in another of f32 and bf16. */
static bool takes_table(const weft_call *call)
{
    const weft_dtype from = call->in[0].dtype, to = call->out[0].dtype;
    return from == to || (from == WEFT_F32 && to == WEFT_BF16) ||
           (from == WEFT_BF16 && to == WEFT_F32);
}

/* Then it is first chosen as it is. */
static int64_t chosen_bytes(const weft_call *call)
{
    const weft_dtype from = call->in[0].dtype;
    return from == call->out[0].dtype
               ? 0
               : weft_view_count(&call->out[0]) * (int64_t)weft_dtype_bytes(from);
}

void weft_gather_cpu(const weft_call *call)
{
    const weft_view *out = &call->out[0];
    weft_call chosen = *call;
    if (chosen_bytes(call) == 0) {
        gather(call);
        return;
    }
    chosen.out[0].dtype = call->in[0].dtype, chosen.out[0].data = call->scratch;
    gather(&chosen);
    if (out->dtype == WEFT_BF16)
        weft_narrow(call->stream, weft_view_count(out), call->scratch, out->data);
    else
        weft_widen(call->stream, weft_view_count(out), call->scratch, out->data);
}

const weft_kernel weft_kernel_gather = {
    .size = sizeof(weft_kernel),
    .name = "gather",
    .device = WEFT_CPU,
    .dtypes = WEFT_ANY_DTYPE,
    .takes = takes_table,
    .scratch = chosen_bytes,
    .launch = weft_gather_cpu,
    .converts = true,
    .rounds = true,
};

void weft_pick_cpu(const weft_call *call)
{
    weft_gather_cpu(call);
}

const weft_kernel weft_kernel_pick = {
    .size = sizeof(weft_kernel),
    .name = "pick",
    .device = WEFT_CPU,
    .dtypes = WEFT_ANY_DTYPE,
    .takes = takes_table,
    .scratch = chosen_bytes,
    .launch = weft_pick_cpu,
    .converts = true,
    .rounds = true,
};

/* ---- scatter_add, scatter_max ----------------------------------------------------------------------------- */

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
    }
PUT_RUN(add_run_f32, float, y + x)
PUT_RUN(add_run_f64, double, y + x)
PUT_RUN(add_run_i32, int32_t, (uint32_t)y + (uint32_t)x)
PUT_RUN(add_run_i64, int64_t, (uint64_t)y + (uint64_t)x)
PUT_RUN(max_run_f32, float, x > y || x != x ? x : y)
PUT_RUN(max_run_f64, double, x > y || x != x ? x : y)
PUT_RUN(max_run_i32, int32_t, x > y ? x : y)
PUT_RUN(max_run_i64, int64_t, x > y ? x : y)

static const put_run add_runs[WEFT_DTYPES] = {[WEFT_F32] = add_run_f32,
                                              [WEFT_F64] = add_run_f64,
                                              [WEFT_I32] = add_run_i32,
                                              [WEFT_I64] = add_run_i64};
static const put_run max_runs[WEFT_DTYPES] = {[WEFT_F32] = max_run_f32,
                                              [WEFT_F64] = max_run_f64,
                                              [WEFT_I32] = max_run_i32,
                                              [WEFT_I64] = max_run_i64};

/* What is put where: ids in [first, end), elements [from, stop) of a run; and the innermost loop of the ids. */
typedef struct scattering {
    const indexing *x;
    int64_t first, end, from, stop;
    int64_t size, by[WEFT_NEST_TENSORS];
} scattering;

/* A row that comes later, and where it goes to: both are asked for, as no row says where the next one goes. Always inlined: gcc takes
 * a function that only asks for one that does nothing, and drops its calls. */
enum { AHEAD = 6, LINE = 64, LEAST_ASKED = 4 * LINE };
WEFT_INLINE void ask_ahead(const scattering *s, const int64_t *at, int64_t i)
{
    const indexing *x = s->x;
    const int64_t bytes = (s->stop - s->from) * (int64_t)x->bytes;
    if (i >= s->size) return;
    const int64_t id = x->id[at[IDS] + i * s->by[IDS]];
    if (id < s->first || id >= s->end) return;
    const int64_t to = at[TABLE] + i * s->by[TABLE] + (id - x->first) * x->step + s->from;
    const int64_t row = at[ROWS] + i * s->by[ROWS] + s->from;
    const char *table = x->table + (size_t)to * x->bytes, *rows = x->rows + (size_t)row * x->bytes;
    for (int64_t b = 0; b < bytes; b += LINE) {
        __builtin_prefetch(rows + b, 0, 2);
        __builtin_prefetch(table + b, 1, 3);
    }
}

/* Along the innermost loop of the ids a place follows from the one before. */
static void scatter_along(const scattering *s, const int64_t *at, bool asks)
{
    const indexing *x = s->x;
    const int64_t *stride = x->run_stride;
    for (int64_t i = 0; i < s->size; i++) {
        const int64_t id = x->id[at[IDS] + i * s->by[IDS]];
        if (id < s->first || id >= s->end) continue;
        if (asks) ask_ahead(s, at, i + AHEAD);
        const int64_t to =
            at[TABLE] + i * s->by[TABLE] + (id - x->first) * x->step + s->from * stride[TABLE];
        const int64_t row = at[ROWS] + i * s->by[ROWS] + s->from * stride[ROWS];
        int64_t in[WEFT_NEST_TENSORS] = {0};
        for (int64_t r = 0; r < x->n_rest; r++) {
            if (x->n_rest > 1) weft_nest_offset(&x->rest, r, in);
            x->put(x->table + (size_t)(to + in[TABLE]) * x->bytes, stride[TABLE],
                   x->rows + (size_t)(row + in[ROWS]) * x->bytes, stride[ROWS], s->stop - s->from);
        }
    }
}

/* Every id in order, so that sums have one order whatever the lanes. */
static void scatter(const indexing *x, int64_t first, int64_t end, int64_t from, int64_t stop)
{
    const int last = x->ids.n_dims - 1;
    scattering s = {x, first, end, from, stop, 1, {0}};
    if (last >= 0) {
        s.size = x->ids.size[last];
        memcpy(s.by, x->ids.stride[last], sizeof s.by);
    }
    const bool asks = (stop - from) * (int64_t)x->bytes >= LEAST_ASKED &&
                      x->run_stride[TABLE] == 1 && x->run_stride[ROWS] == 1;
    const int64_t n_ids = weft_nest_count(&x->ids);
    for (int64_t begin = 0; begin < n_ids; begin += s.size) {
        int64_t at[WEFT_NEST_TENSORS];
        weft_nest_offset(&x->ids, begin, at);
        scatter_along(&s, at, asks);
    }
}

/* Lanes own parts of every row ... */
enum { PART = 16 };
static void scatter_parts(void *argument, int64_t begin, int64_t end, int lane)
{
    const indexing *x = argument;
    (void)lane;
    scatter(x, x->first, x->end, begin * PART, end * PART < x->run ? end * PART : x->run);
}

/* ... or, where rows are short, whole rows. */
static void scatter_rows(void *argument, int64_t begin, int64_t end, int lane)
{
    const indexing *x = argument;
    (void)lane;
    scatter(x, x->first + begin, x->first + end, 0, x->run);
}

/* Where rows are few elements each lane would look at all ids, which is most of the work: one lane does all. */
enum { LEAST_SHARED = 4 };

/* Into a result that holds what rows go on from. */
static void scatter_all(const weft_call *call, const put_run *runs)
{
    const weft_dim_attributes *attributes = call->attributes;
    const weft_view *rows = &call->in[0], *ids = &call->in[1], *out = &call->out[0];
    if (weft_view_count(rows) == 0) return;
    indexing x = {.put = runs[out->dtype]};
    make_nests(&x, out, ids, rows, attributes->dim);
    const int64_t n_ids = weft_nest_count(&x.ids);
    if (x.run >= 4 * PART)
        weft_parallel(call->stream, (x.run + PART - 1) / PART, weft_grain(n_ids * x.n_rest * PART),
                      scatter_parts, &x);
    else if (x.n_rest * x.run < LEAST_SHARED)
        scatter(&x, x.first, x.end, 0, x.run);
    else
        weft_parallel(call->stream, x.end - x.first,
                      weft_grain(n_ids * x.n_rest * x.run / (x.end - x.first)), scatter_rows, &x);
}

void weft_scatter_add_cpu(const weft_call *call)
{
    if (weft_view_count(&call->out[0]) == 0) return;
    weft_begin_sum(call);
    scatter_all(call, add_runs);
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
    scatter_all(call, max_runs);
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
