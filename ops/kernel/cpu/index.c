/* index.c: gather and pick: the dim that a tensor of ids points into. See indexing.h. */
#include "cpu/indexing.h"
#include "cpu/widened.h"
#include "weft/extend/target_clones.h"

#include <string.h>

typedef uint8_t __attribute__((may_alias)) word1;
typedef uint16_t __attribute__((may_alias)) word2;
typedef uint32_t __attribute__((may_alias)) word4;
typedef uint64_t __attribute__((may_alias)) word8;

void weft_indexing_open(weft_indexing *x, const weft_view *table, const weft_view *ids,
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
    const weft_indexing *x = argument;
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

/* Does the box have what all of n ids point at? */
WEFT_TARGET_CLONES static bool holds_all(const weft_indexing *x, const int32_t *id, int64_t n)
{
    int32_t low = INT32_MAX, high = INT32_MIN;
    for (int64_t i = 0; i < n; i++) {
        low = id[i] < low ? id[i] : low;
        high = id[i] > high ? id[i] : high;
    }
    return low >= x->first && high < x->end;
}

/* n elements, each by itself, along the innermost loop of the ids. Neighbours of one row of the table are looked at all at once before
 * any is picked: one by one they would take longer to look at than to pick. */
#define PICK_EACH(T)                                                                               \
    WEFT_TARGET_CLONES static void pick_##T(const weft_indexing *x, const int64_t *stride,         \
                                            const int32_t *id, const char *table, char *rows,      \
                                            int64_t n)                                             \
    {                                                                                              \
        const T *from = (const T *)(const void *)table;                                            \
        T *to = (T *)(void *)rows;                                                                 \
        const int64_t first = x->first, size = x->end - x->first, step = x->step;                  \
        const int64_t of_id = stride[IDS], of_table = stride[TABLE], of_row = stride[ROWS];        \
        if (of_id == 1 && of_row == 1 && step == 1 && of_table == 0 && holds_all(x, id, n)) {      \
            for (int64_t i = 0; i < n; i++)                                                        \
                to[i] = from[id[i] - first];                                                       \
            return;                                                                                \
        }                                                                                          \
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
static void (*const picks[])(const weft_indexing *x, const int64_t *stride, const int32_t *id,
                             const char *table, char *rows, int64_t n) = {
    [1] = pick_word1, [2] = pick_word2, [4] = pick_word4, [8] = pick_word8};

enum { LINE = 64, PIECE = 32 };

/* What a stretch asks memory for on its way: the table's row of the next one. A processor follows no ids. */
typedef struct asking {
    const char *from;
    int64_t n_lines; /* 0: for nothing */
} asking;

/* Lines of the table's row that n elements choose from at random; 0: so few that they leave most of them out. */
static int64_t lines_of_row(const weft_indexing *x, const int64_t *stride, int64_t n)
{
    const int64_t lines = (x->end - x->first) * (int64_t)x->bytes / LINE;
    return x->step == 1 && stride[TABLE] == 0 && lines <= n ? lines : 0;
}

/* The lines are shared out among pieces, so that few are on their way at once. */
static void pick_stretch(const weft_indexing *x, const int64_t *stride, const int64_t *at,
                         int64_t n, asking next)
{
    const int64_t piece = next.n_lines > 0 ? PIECE : n;
    for (int64_t i = 0, line = 0; i < n; i += piece) {
        const int64_t some = n - i < piece ? n - i : piece;
        for (const int64_t stop = next.n_lines * (i + some) / n; line < stop; line++)
            __builtin_prefetch(next.from + line * LINE);
        picks[x->bytes](x, stride, x->id + at[IDS] + i * stride[IDS],
                        x->table + (at[TABLE] + i * stride[TABLE]) * (int64_t)x->bytes,
                        x->rows + (at[ROWS] + i * stride[ROWS]) * (int64_t)x->bytes, some);
    }
}

/* Of all elements in their order, some: stretches of the innermost loop. */
static void pick_elements(void *argument, int64_t begin, int64_t end, int lane)
{
    const weft_indexing *x = argument;
    const int last = x->ids.n_dims - 1;
    const int64_t size = x->ids.size[last], *stride = x->ids.stride[last];
    (void)lane;
    int64_t at[WEFT_NEST_TENSORS] = {0}, then[WEFT_NEST_TENSORS] = {0};
    if (begin < end) weft_nest_offset(&x->ids, begin, at);
    while (begin < end) {
        const int64_t left = size - begin % size, n = left < end - begin ? left : end - begin;
        asking next = {0};
        begin += n;
        if (begin < end) {
            weft_nest_offset(&x->ids, begin, then);
            next = (asking){x->table + then[TABLE] * (int64_t)x->bytes, lines_of_row(x, stride, n)};
        }
        pick_stretch(x, stride, at, n, next);
        memcpy(at, then, sizeof at);
    }
}

static void gather(const weft_call *call)
{
    const weft_dim_attributes *attributes = call->attributes;
    const weft_view *table = &call->in[0], *ids = &call->in[1], *out = &call->out[0];
    if (weft_view_count(out) == 0) return;
    weft_indexing x = {0};
    weft_indexing_open(&x, table, ids, out, attributes->dim);
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
