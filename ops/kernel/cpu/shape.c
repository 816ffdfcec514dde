/* shape.c: elements move, none changes: transpose, copy, slice, concat. Any dtype, by its
 * bytes.
 *
 * Each says which boxes go where, and the device copies boxes into boxes. slice and concat see [outer, dim, inner]
 * and copy whole [dim, inner] pieces; dims are matched by place there, since the cut dim may have another name in the
 * result.
 */
#include "cpu/nest.h"

#include <string.h>

static void copy_box(const weft_call *call, const void *from, const weft_box_copy *box)
{
    const weft_view *out = &call->out[0];
    weft_devices[WEFT_CPU]->copy_box(call->stream, WEFT_COMPUTE, out->data, from, box,
                                     weft_dtype_bytes(out->dtype));
}

/* ---- whole tensors --------------------------------------------------------------------------- */

void weft_transpose_cpu(const weft_call *call)
{
    const weft_view *in = &call->in[0], *out = &call->out[0];
    if (weft_view_count(out) == 0) return;
    const weft_strided x = weft_strided_view(in), y = weft_strided_view(out);
    weft_box_copy box = {.run = 1};
    for (int d = out->shape.n_dims - 1; d >= 0; d--)
        weft_box_copy_add(&box, weft_view_size(out, d),
                          weft_strided_of(&x, out->shape.dims[d].name), y.stride[d]);
    copy_box(call, in->data, &box);
}

const weft_kernel weft_kernel_transpose = {
    .size = sizeof(weft_kernel),
    .name = "transpose",
    .device = WEFT_CPU,
    .dtypes = WEFT_ANY_DTYPE,
    .launch = weft_transpose_cpu,
};

void weft_copy_cpu(const weft_call *call)
{
    const weft_view *out = &call->out[0];
    const int64_t count = weft_view_count(out);
    if (count > 0)
        weft_devices[WEFT_CPU]->copy(call->stream, WEFT_COMPUTE, out->data, call->in[0].data,
                                     (size_t)count * weft_dtype_bytes(out->dtype));
}

const weft_kernel weft_kernel_copy = {
    .size = sizeof(weft_kernel),
    .name = "copy",
    .device = WEFT_CPU,
    .dtypes = WEFT_ANY_DTYPE,
    .launch = weft_copy_cpu,
};

/* ---- pieces ---------------------------------------------------------------------------------- */

/* A view as [outer, dim, inner]: elements of one [dim, inner] and of one [inner]. */
typedef struct cut {
    int64_t n_outer, row, inner;
} cut;

static cut cut_at(const weft_view *view, int dim)
{
    cut c = {1, 0, 1};
    for (int d = 0; d < dim; d++)
        c.n_outer *= weft_view_size(view, d);
    for (int d = dim + 1; d < view->shape.n_dims; d++)
        c.inner *= weft_view_size(view, d);
    c.row = c.inner * weft_view_size(view, dim);
    return c;
}

/* Of each outer: `count` elements, from and to so far into its row. */
static void copy_rows(const weft_call *call, const void *from, int64_t count, const cut *of_from,
                      int64_t from_at, const cut *of_to, int64_t to_at)
{
    /* loops that there are not stay unset: it is as quick as the copy of a few rows */
    weft_box_copy box;
    box.from_at = from_at, box.to_at = to_at, box.run = count, box.n_loops = 0;
    weft_box_copy_add(&box, of_to->n_outer, of_from->row, of_to->row);
    if (count > 0) copy_box(call, from, &box);
}

/* The attributes' dim is one of the whole tensor: of the input of slice, of the result of
 * concat. Boxes along it are any: what falls into the result's is copied. */
void weft_slice_cpu(const weft_call *call)
{
    const weft_slice_attributes *attributes = call->attributes;
    const weft_view *in = &call->in[0], *out = &call->out[0];
    if (weft_view_count(out) == 0) return;
    const int dim = weft_shape_find(&in->shape, attributes->dim);
    const cut from = cut_at(in, dim), to = cut_at(out, dim);
    const int64_t first = attributes->begin + out->box.begin[dim] - in->box.begin[dim];
    copy_rows(call, in->data, to.row, &from, first * from.inner, &to, 0);
}

const weft_kernel weft_kernel_slice = {
    .size = sizeof(weft_kernel),
    .name = "slice",
    .device = WEFT_CPU,
    .dtypes = WEFT_ANY_DTYPE,
    .launch = weft_slice_cpu,
};

/* Where in a result's box an operand lies whose first element stands at `offset` of the whole result. */
static void find_part(const weft_view *in, const weft_view *out, int dim, int64_t offset,
                      int64_t *begin, int64_t *end)
{
    const int64_t length = weft_view_size(out, dim);
    *begin = in->box.begin[dim] + offset - out->box.begin[dim];
    *end = in->box.end[dim] + offset - out->box.begin[dim];
    *begin = *begin < 0 ? 0 : *begin < length ? *begin : length;
    *end = *end < *begin ? *begin : *end < length ? *end : length;
}

/* Put there what of the operand falls into it. */
static void copy_part(const weft_call *call, int i, int dim, int64_t offset)
{
    const weft_view *in = &call->in[i], *out = &call->out[0];
    const cut from = cut_at(in, dim), to = cut_at(out, dim);
    int64_t begin, end;
    find_part(in, out, dim, offset, &begin, &end);
    const int64_t first = out->box.begin[dim] + begin - offset - in->box.begin[dim];
    copy_rows(call, in->data, (end - begin) * to.inner, &from, first * from.inner, &to,
              begin * to.inner);
}

void weft_concat_cpu(const weft_call *call)
{
    const weft_slice_attributes *attributes = call->attributes;
    const weft_view *out = &call->out[0];
    if (weft_view_count(out) == 0) return;
    const int dim = weft_shape_find(&out->shape, attributes->dim);
    for (int i = 0; i < call->n_in; i++)
        copy_part(call, i, dim, i * attributes->begin);
}

const weft_kernel weft_kernel_concat = {
    .size = sizeof(weft_kernel),
    .name = "concat",
    .device = WEFT_CPU,
    .dtypes = WEFT_ANY_DTYPE,
    .launch = weft_concat_cpu,
};
