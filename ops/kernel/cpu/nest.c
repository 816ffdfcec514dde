/* nest.c: loops over several strided tensors; see nest.h. */
#include "cpu/nest.h"

#include <string.h>

weft_strided weft_strided_view(const weft_view *view)
{
    weft_strided strided = {.view = view};
    int64_t step = 1;
    for (int d = view->shape.n_dims - 1; d >= 0; d--) {
        strided.stride[d] = step;
        step *= weft_view_size(view, d);
    }
    return strided;
}

int64_t weft_strided_of(const weft_strided *strided, const char *name)
{
    const int d = weft_shape_find(&strided->view->shape, name);
    return d < 0 ? 0 : strided->stride[d];
}

static bool lines_up(const weft_nest *nest, int64_t size, const int64_t *stride)
{
    const int last = nest->n_dims - 1;
    for (int t = 0; t < WEFT_NEST_TENSORS; t++)
        if (nest->stride[last][t] != size * stride[t]) return false;
    return true;
}

void weft_nest_add(weft_nest *nest, int64_t size, const int64_t stride[WEFT_NEST_TENSORS])
{
    if (size == 1) return;
    if (nest->n_dims > 0 && lines_up(nest, size, stride)) {
        nest->size[nest->n_dims - 1] *= size;
    } else {
        nest->size[nest->n_dims] = size;
        nest->n_dims++;
    }
    for (int t = 0; t < WEFT_NEST_TENSORS; t++)
        nest->stride[nest->n_dims - 1][t] = stride[t];
}

void weft_nest_drop(weft_nest *nest, int d)
{
    nest->n_dims--;
    for (; d < nest->n_dims; d++) {
        nest->size[d] = nest->size[d + 1];
        for (int t = 0; t < WEFT_NEST_TENSORS; t++)
            nest->stride[d][t] = nest->stride[d + 1][t];
    }
}

void weft_nest_append(weft_nest *nest, const weft_nest *inner)
{
    for (int d = 0; d < inner->n_dims; d++)
        weft_nest_add(nest, inner->size[d], inner->stride[d]);
}

int64_t weft_nest_count(const weft_nest *nest)
{
    int64_t count = 1;
    for (int d = 0; d < nest->n_dims; d++)
        count *= nest->size[d];
    return count;
}

void weft_nest_offset(const weft_nest *nest, int64_t index, int64_t offset[WEFT_NEST_TENSORS])
{
    for (int t = 0; t < WEFT_NEST_TENSORS; t++)
        offset[t] = 0;
    for (int d = nest->n_dims - 1; d >= 0; d--) {
        const int64_t at = d > 0 ? index % nest->size[d] : index;
        if (d > 0) index /= nest->size[d];
        for (int t = 0; t < WEFT_NEST_TENSORS; t++)
            offset[t] += at * nest->stride[d][t];
    }
}

int64_t weft_grain(int64_t work)
{
    enum { WORTH = 16384 }; /* elements that take about as long as waking a thread */
    return work >= WORTH ? 1 : WORTH / (work > 0 ? work : 1);
}

enum { BEGUN = 1 << 16 }; /* bytes that a lane begins at a time */
typedef struct beginning {
    char *data;
    const char *from; /* the sum so far; NULL: zeros */
    size_t bytes;
} beginning;

static void begin_pieces(void *argument, int64_t begin, int64_t end, int lane)
{
    const beginning *b = argument;
    const size_t first = (size_t)begin * BEGUN, stop = (size_t)end * BEGUN;
    const size_t n = (stop < b->bytes ? stop : b->bytes) - first;
    (void)lane;
    if (b->from)
        memcpy(b->data + first, b->from + first, n);
    else
        memset(b->data + first, 0, n);
}

void weft_begin_sum(const weft_call *call)
{
    const weft_view *out = &call->out[0];
    beginning b = {out->data, call->accumulates ? call->in[call->n_in - 1].data : NULL,
                   (size_t)weft_view_count(out) * weft_dtype_bytes(out->dtype)};
    if (b.from == b.data) return;
    weft_parallel(call->stream, (int64_t)((b.bytes + BEGUN - 1) / BEGUN), weft_grain(BEGUN / 16),
                  begin_pieces, &b);
}
