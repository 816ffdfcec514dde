/* shape: elements move, none changes: transpose, copy, slice, reindex, concat. All of them copy boxes, except reindex
 * backwards. */
#include "images.h"
#include "kernels.h"
#include "reindex.h"
#include "require.h"

static cuda_kernel moves[] = {
    {"move_1", NULL}, {"move_2", NULL}, {"move_4", NULL}, {"move_8", NULL}};
enum { N_MOVES = sizeof moves / sizeof *moves };

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

/* [outer, dim, inner] in both. */
static void sizes_around(const weft_view *view, int dim, int64_t *outer, int64_t *inner)
{
    *outer = *inner = 1;
    for (int d = 0; d < view->shape.n_dims; d++) {
        if (d < dim) *outer *= weft_view_size(view, d);
        if (d > dim) *inner *= weft_view_size(view, d);
    }
}

static void copy_run(const weft_call *call, int dim, const weft_reindex_run *run)
{
    const weft_view *in = &call->in[0], *out = &call->out[0];
    weft_box_copy box = {.run = 1};
    int64_t outer, inner;
    sizes_around(out, dim, &outer, &inner);
    weft_box_copy_add(&box, inner, 1, 1);
    weft_box_copy_add(&box, run->count, run->from_step * inner, run->to_step * inner);
    weft_box_copy_add(&box, outer, weft_view_size(in, dim) * inner,
                      weft_view_size(out, dim) * inner);
    box.from_at = (run->from - in->box.begin[dim]) * inner;
    box.to_at = (run->to - out->box.begin[dim]) * inner;
    copy_box(call, out, in, &box);
}

/* Boxes have no loop that goes backwards. */
static void move_run(const weft_call *call, int dim, const weft_reindex_run *run)
{
    const weft_view *in = &call->in[0], *out = &call->out[0];
    const int64_t element = (int64_t)weft_dtype_bytes(out->dtype);
    int64_t outer, inner;
    int k = 0;
    sizes_around(out, dim, &outer, &inner);
    while (1 << k < element)
        k++;
    cuda_moving m = {.to = (char *)out->data + (run->to - out->box.begin[dim]) * inner * element,
                     .from = (const char *)in->data +
                             (run->from - in->box.begin[dim]) * inner * element,
                     .n = outer * run->count * inner};
    cuda_nest_add(&m.nest, outer, weft_view_size(out, dim) * inner, weft_view_size(in, dim) * inner,
                  0);
    cuda_nest_add(&m.nest, run->count, run->to_step * inner, run->from_step * inner, 0);
    cuda_nest_add(&m.nest, inner, 1, 1, 0);
    cuda_launch(call->stream, WEFT_COMPUTE, &moves[k], m.n, &m);
}

static void reindex(const weft_call *call)
{
    const weft_reindex_attributes *attributes = call->attributes;
    const weft_view *in = &call->in[0], *out = &call->out[0];
    const int dim = weft_shape_find(&out->shape, attributes->to);
    if (weft_view_count(out) == 0) return;
    const weft_reindex_run run = weft_reindex_between(
        attributes, out->box.begin[dim], out->box.end[dim], in->box.begin[dim], in->box.end[dim]);
    if (run.count < weft_view_size(out, dim))
        cuda_clear(call->stream, WEFT_COMPUTE, out->data, bytes_of(out));
    if (run.count == 0 || weft_view_count(in) == 0) return;
    (run.from_step > 0 ? copy_run : move_run)(call, dim, &run);
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

/* The host looks whether the condition holds, before anything is written: the result may lie in a variable's memory. */
static void require(const weft_call *call)
{
    int32_t holds = 0;
    char number[8];
    cuda_get_bytes(call->stream, &holds, call->in[1].data, sizeof holds);
    if (cuda_failed(call->stream, NULL) != WEFT_OK) return;
    if (holds != 0) {
        copy(call);
        return;
    }
    if (call->n_in > 2)
        cuda_get_bytes(call->stream, number, call->in[2].data, weft_dtype_bytes(call->in[2].dtype));
    weft_require_fail(call, call->n_in > 2 ? number : NULL);
}

weft_status cuda_shapes_open(weft_device_kind device, weft_error *error)
{
    static const struct {
        const char *op;
        weft_launch launch;
    } all[] = {{"transpose", transpose}, {"rename", copy},  {"reshape", copy},
               {"copy", copy},           {"slice", slice},  {"reindex", reindex},
               {"concat", concat},       {"in_order", copy}};
    cuda_kernel *kernels[N_MOVES];
    const int n = cuda_list_kernels(moves, N_MOVES, kernels);
    WEFT_TRY(cuda_load_image(cuda_image_shape, kernels, n, error));
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        WEFT_TRY(cuda_add_kernel(all[i].op,
                                 (weft_kernel){.dtypes = WEFT_ANY_DTYPE, .launch = all[i].launch},
                                 device, error));
    return cuda_add_kernel(
        "require", (weft_kernel){.dtypes = WEFT_ANY_DTYPE, .launch = require, .waits = true},
        device, error);
}
