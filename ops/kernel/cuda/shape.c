/* shape: elements move, none changes: transpose, copy, slice, unslice, concat, all of them boxes that are copied. */
#include "kernels.h"

/* Of all dims but `dim` all, of that `count`; dims by place. */
static weft_box_copy box_along(const weft_view *from, const weft_view *to, int dim, int64_t count)
{
    weft_box_copy box = {.run = 1};
    int64_t from_stride = 1, to_stride = 1;
    for (int d = to->shape.n_dims - 1; d >= 0; d--) {
        weft_box_copy_add(&box, d == dim ? count : weft_view_size(to, d), from_stride, to_stride);
        from_stride *= weft_view_size(from, d);
        to_stride *= weft_view_size(to, d);
    }
    return box;
}

static void copy_box(const weft_call *call, const weft_view *to, const weft_view *from,
                     const weft_box_copy *box)
{
    cuda_copy_box(call->stream, WEFT_COMPUTE, to->data, from->data, box,
                  weft_dtype_bytes(to->dtype));
}

static size_t bytes_of(const weft_view *view)
{
    return (size_t)weft_view_count(view) * weft_dtype_bytes(view->dtype);
}

/* Elements between neighbours along a dim. */
static int64_t stride_at(const weft_view *view, int dim)
{
    return cuda_stride_of(view, view->shape.dims[dim].name);
}

/* ---- kernels --------------------------------------------------------------------------------- */

static void transpose(const weft_call *call)
{
    const weft_view *in = &call->in[0], *out = &call->out[0];
    if (weft_view_count(out) == 0) return;
    weft_box_copy box = {.run = 1};
    for (int d = out->shape.n_dims - 1; d >= 0; d--)
        weft_box_copy_add(&box, weft_view_size(out, d), cuda_stride_of(in, out->shape.dims[d].name),
                          stride_at(out, d));
    copy_box(call, out, in, &box);
}

static void copy(const weft_call *call)
{
    cuda_copy(call->stream, WEFT_COMPUTE, call->out[0].data, call->in[0].data,
              bytes_of(&call->out[0]));
}

static void slice(const weft_call *call)
{
    const weft_slice_attributes *attributes = call->attributes;
    const weft_view *in = &call->in[0], *out = &call->out[0];
    if (weft_view_count(out) == 0) return;
    const int dim = weft_shape_find(&in->shape, attributes->dim);
    const int64_t first = attributes->begin + out->box.begin[dim] - in->box.begin[dim];
    weft_box_copy box = box_along(in, out, dim, weft_view_size(out, dim));
    box.from_at = first * stride_at(in, dim);
    copy_box(call, out, in, &box);
}

static int64_t within(int64_t low, int64_t x, int64_t high)
{
    return x < low ? low : x < high ? x : high;
}

/* What of an operand, whose first element stands at `offset` of the whole result, falls into the result's box. */
static void put_part(const weft_call *call, const weft_view *in, int dim, int64_t offset)
{
    const weft_view *out = &call->out[0];
    const int64_t shift = offset - out->box.begin[dim], length = weft_view_size(out, dim);
    const int64_t begin = within(0, in->box.begin[dim] + shift, length);
    const int64_t end = within(begin, in->box.end[dim] + shift, length);
    if (begin == end || weft_view_count(in) == 0) return;
    weft_box_copy box = box_along(in, out, dim, end - begin);
    box.from_at = (begin - shift - in->box.begin[dim]) * stride_at(in, dim);
    box.to_at = begin * stride_at(out, dim);
    copy_box(call, out, in, &box);
}

static void unslice(const weft_call *call)
{
    const weft_slice_attributes *attributes = call->attributes;
    const weft_view *out = &call->out[0];
    const int dim = weft_shape_find(&out->shape, attributes->dim);
    if (weft_view_count(out) == 0) return;
    cuda_clear(call->stream, WEFT_COMPUTE, out->data, bytes_of(out));
    put_part(call, &call->in[0], dim, attributes->begin);
}

static void concat(const weft_call *call)
{
    const weft_slice_attributes *attributes = call->attributes;
    const weft_view *out = &call->out[0];
    const int dim = weft_shape_find(&out->shape, attributes->dim);
    if (weft_view_count(out) == 0) return;
    for (int i = 0; i < call->n_in; i++)
        put_part(call, &call->in[i], dim, i * attributes->begin);
}

weft_status cuda_shapes_open(weft_device_kind device, weft_error *error)
{
    static const struct {
        const char *op;
        weft_launch launch;
    } all[] = {{"transpose", transpose}, {"rename", copy},     {"reshape", copy}, {"copy", copy},
               {"slice", slice},         {"unslice", unslice}, {"concat", concat}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        WEFT_TRY(cuda_add_kernel(all[i].op,
                                 (weft_kernel){.dtypes = WEFT_ANY_DTYPE, .launch = all[i].launch},
                                 device, error));
    return WEFT_OK;
}
