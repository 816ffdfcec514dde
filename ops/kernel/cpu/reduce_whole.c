/* reduce_whole.c: sums, largest elements and products of whole numbers, exactly: sums and products wrap around. (reduce.c goes by
 * doubles, which hold whole numbers up to 2^53 only: of i32 it has all but products.)
 *
 * Each element of the result is one lane's, and no order of its elements changes it.
 */
#include "cpu/nest.h"

enum { IN, OUT };

typedef struct reduction {
    weft_nest kept, reduced;
    const weft_call *call;
    void (*one)(const struct reduction *r, int64_t from, int64_t to);
} reduction;

#define EACH(r, from, x)                                                                           \
    for (int64_t i_ = 0, n_ = weft_nest_count(&(r)->reduced), at_[WEFT_NEST_TENSORS];              \
         i_ < n_ && (weft_nest_offset(&(r)->reduced, i_, at_), x = (from)[at_[IN]], true); i_++)

#define REDUCE(name, T, S, first, step)                                                            \
    static void name(const reduction *r, int64_t from, int64_t to)                                 \
    {                                                                                              \
        const T *in = (const T *)r->call->in[0].data + from;                                       \
        S a = (S)(first);                                                                          \
        T x;                                                                                       \
        EACH(r, in, x)                                                                             \
        a = (step);                                                                                \
        ((T *)r->call->out[0].data)[to] = (T)a;                                                    \
    }
REDUCE(sum_i64, int64_t, uint64_t, 0, a + (uint64_t)x)
REDUCE(max_i64, int64_t, int64_t, INT64_MIN, x > a ? x : a)
REDUCE(prod_i64, int64_t, uint64_t, 1, a *(uint64_t)x)
REDUCE(prod_i32, int32_t, uint32_t, 1, a *(uint32_t)x)

typedef void (*reducer)(const reduction *r, int64_t from, int64_t to);
static const reducer reducers[WEFT_COMBINES][WEFT_DTYPES] = {
    [WEFT_SUM] = {[WEFT_I64] = sum_i64},
    [WEFT_MAX] = {[WEFT_I64] = max_i64},
    [WEFT_PROD] = {[WEFT_I64] = prod_i64, [WEFT_I32] = prod_i32}};

static reducer reducer_of(const weft_call *call)
{
    const weft_reduce_attributes *attributes = call->attributes;
    return reducers[attributes->combine][call->in[0].dtype];
}

static bool takes(const weft_call *call)
{
    return reducer_of(call) != NULL;
}

static void run(void *argument, int64_t begin, int64_t end, int lane)
{
    const reduction *r = argument;
    (void)lane;
    for (int64_t i = begin; i < end; i++) {
        int64_t at[WEFT_NEST_TENSORS];
        weft_nest_offset(&r->kept, i, at);
        r->one(r, at[IN], at[OUT]);
    }
}

void weft_reduce_whole_cpu(const weft_call *call)
{
    const weft_view *in = &call->in[0], *out = &call->out[0];
    if (weft_view_count(out) == 0) return;
    const weft_strided x = weft_strided_view(in), y = weft_strided_view(out);
    reduction r = {.call = call, .one = reducer_of(call)};
    for (int d = 0; d < out->shape.n_dims; d++)
        weft_nest_add(&r.kept, weft_view_size(out, d),
                      (int64_t[3]){weft_strided_of(&x, out->shape.dims[d].name), y.stride[d]});
    for (int d = 0; d < in->shape.n_dims; d++)
        if (weft_shape_find(&out->shape, in->shape.dims[d].name) < 0)
            weft_nest_add(&r.reduced, weft_view_size(in, d), (int64_t[3]){x.stride[d]});
    weft_parallel(call->stream, weft_view_count(out), weft_grain(weft_nest_count(&r.reduced)), run,
                  &r);
}

const weft_kernel weft_kernel_reduce_whole = {
    .size = sizeof(weft_kernel),
    .name = "reduce_whole",
    .device = WEFT_CPU,
    .dtypes = WEFT_DTYPE_BIT(WEFT_I64) | WEFT_DTYPE_BIT(WEFT_I32),
    .priority = -1, /* after reduce, which is faster at what it has of i32 */
    .takes = takes,
    .launch = weft_reduce_whole_cpu,
};
