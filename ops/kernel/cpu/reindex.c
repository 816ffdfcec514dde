/* reindex.c: elements at other coordinates along one dim, among zeros. Any dtype, by its bytes.
 *
 * Both tensors are [outer, dim, inner]. The read elements are a run with steps in both (reindex.h). Where it goes
 * upwards, the device copies it as one box, else rows are copied one after the other. The gaps between the elements
 * of a run are cleared, with all of the result then, and so are its margins.
 */
#include "cpu/nest.h"
#include "reindex.h"

#include <string.h>

typedef struct reindexing {
    char *to;
    const char *from;
    int64_t n_outer, row, from_row, inner; /* bytes; row: of one outer */
    size_t element;
    weft_reindex_run run; /* from the boxes' beginnings */
} reindexing;

/* What no element of x goes to: before and behind the run, or everywhere. */
static void clear_rows(void *argument, int64_t begin, int64_t end, int lane)
{
    const reindexing *r = argument;
    const bool has_gaps = r->run.count == 0 || r->run.to_step > 1;
    const int64_t before = has_gaps ? r->row : r->run.to * r->inner;
    const int64_t after = has_gaps ? r->row : (r->run.to + r->run.count) * r->inner;
    (void)lane;
    for (int64_t i = begin; i < end; i++) {
        char *row = r->to + i * r->row;
        memset(row, 0, (size_t)before);
        memset(row + after, 0, (size_t)(r->row - after));
    }
}

#define COPY_BACK(name, T)                                                                         \
    static void name(const reindexing *r, char *to, const char *from)                              \
    {                                                                                              \
        T *y = (T *)(void *)to;                                                                    \
        const T *x = (const T *)(const void *)from;                                                \
        for (int64_t i = 0; i < r->run.count; i++)                                                 \
            y[i * r->run.to_step] = x[i * r->run.from_step];                                       \
    }
COPY_BACK(copy_1, uint8_t)
COPY_BACK(copy_2, uint16_t)
COPY_BACK(copy_4, uint32_t)
COPY_BACK(copy_8, uint64_t)

static void copy_runs(const reindexing *r, char *to, const char *from)
{
    for (int64_t i = 0; i < r->run.count; i++)
        memcpy(to + i * r->run.to_step * r->inner, from + i * r->run.from_step * r->inner,
               (size_t)r->inner);
}

static void copy_rows(void *argument, int64_t begin, int64_t end, int lane)
{
    static void (*const single[])(const reindexing *r, char *to, const char *from) = {
        [1] = copy_1, [2] = copy_2, [4] = copy_4, [8] = copy_8};
    const reindexing *r = argument;
    (void)lane;
    for (int64_t i = begin; i < end; i++) {
        char *to = r->to + i * r->row + r->run.to * r->inner;
        const char *from = r->from + i * r->from_row + r->run.from * r->inner;
        (r->inner == (int64_t)r->element ? single[r->element] : copy_runs)(r, to, from);
    }
}

static void copy_upwards(const weft_call *call, const reindexing *r)
{
    const int64_t element = (int64_t)r->element, inner = r->inner / element;
    weft_box_copy box = {.run = 1};
    weft_box_copy_add(&box, inner, 1, 1);
    weft_box_copy_add(&box, r->run.count, r->run.from_step * inner, r->run.to_step * inner);
    weft_box_copy_add(&box, r->n_outer, r->from_row / element, r->row / element);
    box.from_at = r->run.from * inner, box.to_at = r->run.to * inner;
    weft_devices[WEFT_CPU]->copy_box(call->stream, WEFT_COMPUTE, r->to, r->from, &box, r->element);
}

static reindexing reindexing_of(const weft_call *call)
{
    const weft_reindex_attributes *attributes = call->attributes;
    const weft_view *in = &call->in[0], *out = &call->out[0];
    const int dim = weft_shape_find(&out->shape, attributes->to);
    reindexing r = {
        .to = out->data, .from = in->data, .n_outer = 1, .element = weft_dtype_bytes(out->dtype)};
    r.inner = (int64_t)r.element;
    for (int d = 0; d < dim; d++)
        r.n_outer *= weft_view_size(out, d);
    for (int d = dim + 1; d < out->shape.n_dims; d++)
        r.inner *= weft_view_size(out, d);
    r.row = r.inner * weft_view_size(out, dim);
    r.from_row = r.inner * weft_view_size(in, dim);
    r.run = weft_reindex_between(attributes, out->box.begin[dim], out->box.end[dim],
                                 in->box.begin[dim], in->box.end[dim]);
    r.run.to -= out->box.begin[dim];
    r.run.from -= in->box.begin[dim];
    return r;
}

void weft_reindex_cpu(const weft_call *call)
{
    if (weft_view_count(&call->out[0]) == 0) return;
    reindexing r = reindexing_of(call);
    const int64_t read = r.run.count * r.inner, per_row = r.row / (int64_t)r.element;
    if (read < r.row) weft_parallel(call->stream, r.n_outer, weft_grain(per_row), clear_rows, &r);
    if (read == 0) return;
    if (r.run.from_step > 0)
        copy_upwards(call, &r);
    else
        weft_parallel(call->stream, r.n_outer, weft_grain(per_row), copy_rows, &r);
}

const weft_kernel weft_kernel_reindex = {
    .size = sizeof(weft_kernel),
    .name = "reindex",
    .device = WEFT_CPU,
    .dtypes = WEFT_ANY_DTYPE,
    .launch = weft_reindex_cpu,
};
