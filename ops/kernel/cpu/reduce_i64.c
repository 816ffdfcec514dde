/* reduce_i64.c: sums and largest elements of i64, exactly: sums wrap around. (Other dtypes are reduced in doubles, which hold
 * whole numbers up to 2^53 only.)
 *
 * Each element of the result is one lane's, and no order of its elements changes it.
 */
#include "cpu/nest.h"

enum { IN, OUT };

typedef struct reduction {
    weft_nest kept, reduced;
    const int64_t *in;
    int64_t *out;
    bool is_sum;
} reduction;

static int64_t reduce_one(const reduction *r, const int64_t *x)
{
    const int64_t n = weft_nest_count(&r->reduced);
    uint64_t sum = 0;
    int64_t most = INT64_MIN;
    for (int64_t i = 0; i < n; i++) {
        int64_t at[WEFT_NEST_TENSORS];
        weft_nest_offset(&r->reduced, i, at);
        sum += (uint64_t)x[at[IN]];
        most = x[at[IN]] > most ? x[at[IN]] : most;
    }
    return r->is_sum ? (int64_t)sum : most;
}

static void run(void *argument, int64_t begin, int64_t end, int lane)
{
    const reduction *r = argument;
    (void)lane;
    for (int64_t i = begin; i < end; i++) {
        int64_t at[WEFT_NEST_TENSORS];
        weft_nest_offset(&r->kept, i, at);
        r->out[at[OUT]] = reduce_one(r, r->in + at[IN]);
    }
}

void weft_reduce_i64_cpu(const weft_call *call)
{
    const weft_reduce_attributes *attributes = call->attributes;
    const weft_view *in = &call->in[0], *out = &call->out[0];
    if (weft_view_count(out) == 0) return;
    const weft_strided x = weft_strided_view(in), y = weft_strided_view(out);
    reduction r = {.in = in->data, .out = out->data, .is_sum = attributes->combine == WEFT_SUM};
    for (int d = 0; d < out->shape.n_dims; d++)
        weft_nest_add(&r.kept, weft_view_size(out, d),
                      (int64_t[3]){weft_strided_of(&x, out->shape.dims[d].name), y.stride[d]});
    for (int d = 0; d < in->shape.n_dims; d++)
        if (weft_shape_find(&out->shape, in->shape.dims[d].name) < 0)
            weft_nest_add(&r.reduced, weft_view_size(in, d), (int64_t[3]){x.stride[d]});
    weft_parallel(call->stream, weft_view_count(out), weft_grain(weft_nest_count(&r.reduced)), run,
                  &r);
}

const weft_kernel weft_kernel_reduce_i64 = {
    .size = sizeof(weft_kernel),
    .name = "reduce_i64",
    .device = WEFT_CPU,
    .dtypes = WEFT_DTYPE_BIT(WEFT_I64),
    .launch = weft_reduce_i64_cpu,
};
