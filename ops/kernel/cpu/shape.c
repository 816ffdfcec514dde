/* shape.c: elements move, none changes: transpose, copy, slice, unslice, concat. Any dtype, by its
 * bytes.
 *
 * A transpose whose innermost direction differs is done in square tiles that fit the first-level
 * cache. slice, unslice and concat see [outer, dim, inner] and copy whole [dim, inner] pieces; dims
 * are matched by place there, since the cut dim may have another name in the result.
 */
#include "cpu/nest.h"

#include <string.h>

enum { TO, FROM };

typedef uint8_t __attribute__((may_alias)) word1;
typedef uint16_t __attribute__((may_alias)) word2;
typedef uint32_t __attribute__((may_alias)) word4;
typedef uint64_t __attribute__((may_alias)) word8;

/* ---- transpose ------------------------------------------------------------------------------- */

enum { TILE = 32 };

typedef struct transpose {
    char *to;
    const char *from;
    size_t bytes;
    weft_nest outer;
    int64_t n, from_stride; /* contiguous in `to`: stride 1 there   */
    int64_t m, to_stride;   /* contiguous in `from`: stride 1 there */
    int64_t m_tiles;
} transpose;

#define MOVE(T)                                                                                    \
    static void move_##T(const transpose *t, char *to, const char *from, int64_t j, int64_t stop,  \
                         int64_t m)                                                                \
    {                                                                                              \
        for (int64_t i = 0; i < m; i++) {                                                          \
            T *y = (T *)(void *)to + i * t->to_stride;                                             \
            const T *x = (const T *)(const void *)from + i;                                        \
            for (int64_t l = j; l < stop; l++)                                                     \
                y[l] = x[l * t->from_stride];                                                      \
        }                                                                                          \
    }
MOVE(word1)
MOVE(word2)
MOVE(word4)
MOVE(word8)
/* By the bytes of an element. */
static void (*const moves[])(const transpose *t, char *to, const char *from, int64_t j,
                             int64_t stop, int64_t m) = {
    [1] = move_word1, [2] = move_word2, [4] = move_word4, [8] = move_word8};

static void move_tile(const transpose *t, char *to, const char *from, int64_t n, int64_t m)
{
    if (t->m == 1 && t->from_stride == 1) {
        memcpy(to, from, (size_t)n * t->bytes);
        return;
    }
    for (int64_t j = 0; j < n; j += TILE) {
        moves[t->bytes](t, to, from, j, j + TILE < n ? j + TILE : n, m);
    }
}

static void transpose_tiles(void *argument, int64_t begin, int64_t end, int lane)
{
    const transpose *t = argument;
    (void)lane;
    for (int64_t i = begin; i < end; i++) {
        int64_t at[3];
        weft_nest_offset(&t->outer, i / t->m_tiles, at);
        const int64_t first = i % t->m_tiles * TILE, left = t->m - first;
        move_tile(t, t->to + (size_t)(at[TO] + first * t->to_stride) * t->bytes,
                  t->from + (size_t)(at[FROM] + first) * t->bytes, t->n, left < TILE ? left : TILE);
    }
}

void weft_transpose_cpu(const weft_call *call)
{
    const weft_view *in = &call->in[0], *out = &call->out[0];
    if (weft_view_count(out) == 0) return;
    const weft_strided x = weft_strided_view(in), y = weft_strided_view(out);
    transpose t = {.to = out->data, .from = in->data, .bytes = weft_dtype_bytes(out->dtype)};
    t.n = t.m = t.from_stride = 1;
    for (int d = 0; d < out->shape.n_dims; d++)
        weft_nest_add(&t.outer, weft_view_size(out, d),
                      (int64_t[3]){y.stride[d], weft_strided_of(&x, out->shape.dims[d].name)});
    const int last = t.outer.n_dims - 1;
    if (last >= 0) {
        t.n = t.outer.size[last], t.from_stride = t.outer.stride[last][FROM];
        weft_nest_drop(&t.outer, last);
    }
    for (int d = 0; d < t.outer.n_dims && t.from_stride != 1; d++) {
        if (t.outer.stride[d][FROM] != 1) continue;
        t.m = t.outer.size[d], t.to_stride = t.outer.stride[d][TO];
        weft_nest_drop(&t.outer, d);
        break;
    }
    t.m_tiles = (t.m + TILE - 1) / TILE;
    const int64_t work = t.n * (t.m < TILE ? t.m : TILE);
    weft_parallel(call->stream, weft_nest_count(&t.outer) * t.m_tiles, weft_grain(work),
                  transpose_tiles, &t);
}

const weft_kernel weft_kernel_transpose = {
    .size = sizeof(weft_kernel),
    .name = "transpose",
    .device = WEFT_CPU,
    .dtypes = WEFT_ANY_DTYPE,
    .launch = weft_transpose_cpu,
};

/* ---- pieces ---------------------------------------------------------------------------------- */

/* n pieces of `bytes` each, evenly spaced; from NULL: zeros. */
typedef struct pieces {
    char *to;
    const char *from;
    size_t bytes, to_step, from_step;
} pieces;

static void copy_pieces(void *argument, int64_t begin, int64_t end, int lane)
{
    const pieces *p = argument;
    (void)lane;
    for (int64_t i = begin; i < end; i++) {
        char *to = p->to + (size_t)i * p->to_step;
        if (p->from != NULL)
            memcpy(to, p->from + (size_t)i * p->from_step, p->bytes);
        else
            memset(to, 0, p->bytes);
    }
}

static void run_pieces(weft_stream *stream, pieces p, int64_t n)
{
    if (p.bytes == 0) return;
    weft_parallel(stream, n, weft_grain((int64_t)(p.bytes / 4)), copy_pieces, &p);
}

void weft_copy_cpu(const weft_call *call)
{
    enum { PIECE = 1 << 16 };
    const size_t bytes =
        (size_t)weft_view_count(&call->out[0]) * weft_dtype_bytes(call->out[0].dtype);
    const size_t whole = bytes / PIECE * PIECE;
    char *to = call->out[0].data;
    const char *from = call->in[0].data;
    run_pieces(call->stream, (pieces){to, from, PIECE, PIECE, PIECE}, (int64_t)(bytes / PIECE));
    if (bytes > whole) memcpy(to + whole, from + whole, bytes - whole);
}

const weft_kernel weft_kernel_copy = {
    .size = sizeof(weft_kernel),
    .name = "copy",
    .device = WEFT_CPU,
    .dtypes = WEFT_ANY_DTYPE,
    .launch = weft_copy_cpu,
};

/* A view as [outer, dim, inner]; bytes of one [dim, inner] and of one [inner]. */
typedef struct cut {
    int64_t n_outer;
    size_t row, inner;
} cut;

static cut cut_at(const weft_view *view, int dim)
{
    cut c = {1, 0, weft_dtype_bytes(view->dtype)};
    for (int d = 0; d < dim; d++)
        c.n_outer *= weft_view_size(view, d);
    for (int d = dim + 1; d < view->shape.n_dims; d++)
        c.inner *= (size_t)weft_view_size(view, d);
    c.row = c.inner * (size_t)weft_view_size(view, dim);
    return c;
}

/* The attributes' dim is one of the whole tensor: of the input of slice, of the result of unslice
 * and concat. */
void weft_slice_cpu(const weft_call *call)
{
    const weft_slice_attributes *attributes = call->attributes;
    const weft_view *in = &call->in[0], *out = &call->out[0];
    if (weft_view_count(out) == 0) return;
    const int dim = weft_shape_find(&in->shape, attributes->dim);
    const cut from = cut_at(in, dim), to = cut_at(out, dim);
    const char *first =
        (const char *)in->data + (size_t)(attributes->begin - in->box.begin[dim]) * from.inner;
    run_pieces(call->stream, (pieces){out->data, first, to.row, to.row, from.row}, to.n_outer);
}

const weft_kernel weft_kernel_slice = {
    .size = sizeof(weft_kernel),
    .name = "slice",
    .device = WEFT_CPU,
    .dtypes = WEFT_ANY_DTYPE,
    .launch = weft_slice_cpu,
};

void weft_unslice_cpu(const weft_call *call)
{
    const weft_slice_attributes *attributes = call->attributes;
    const weft_view *in = &call->in[0], *out = &call->out[0];
    if (weft_view_count(out) == 0) return;
    const int dim = weft_shape_find(&out->shape, attributes->dim);
    const cut from = cut_at(in, dim), to = cut_at(out, dim);
    const size_t before = (size_t)(attributes->begin - out->box.begin[dim]) * to.inner,
                 after = before + from.row;
    char *y = out->data;
    run_pieces(call->stream, (pieces){y, NULL, before, to.row, 0}, to.n_outer);
    if (from.row > 0)
        run_pieces(call->stream, (pieces){y + before, in->data, from.row, to.row, from.row},
                   to.n_outer);
    run_pieces(call->stream, (pieces){y + after, NULL, to.row - after, to.row, 0}, to.n_outer);
}

const weft_kernel weft_kernel_unslice = {
    .size = sizeof(weft_kernel),
    .name = "unslice",
    .device = WEFT_CPU,
    .dtypes = WEFT_ANY_DTYPE,
    .launch = weft_unslice_cpu,
};

void weft_concat_cpu(const weft_call *call)
{
    const weft_slice_attributes *attributes = call->attributes;
    const weft_view *out = &call->out[0];
    if (weft_view_count(out) == 0) return;
    const int dim = weft_shape_find(&out->shape, attributes->dim);
    const cut to = cut_at(out, dim);
    size_t begin = 0;
    for (int i = 0; i < call->n_in; i++) {
        const cut from = cut_at(&call->in[i], dim);
        if (from.row > 0)
            run_pieces(
                call->stream,
                (pieces){(char *)out->data + begin, call->in[i].data, from.row, to.row, from.row},
                to.n_outer);
        begin += from.row;
    }
}

const weft_kernel weft_kernel_concat = {
    .size = sizeof(weft_kernel),
    .name = "concat",
    .device = WEFT_CPU,
    .dtypes = WEFT_ANY_DTYPE,
    .launch = weft_concat_cpu,
};
