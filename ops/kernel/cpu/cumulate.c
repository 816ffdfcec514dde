/* cumulate.c: sums and products along a dim that is whole, in its order or against it; kept in double for floats.
 *
 * Both tensors are [outer, dim, inner]; a lane does stretches of inner, and goes along the dim in one pass for each.
 */
#include "cpu/nest.h"

#include <math.h>

enum { STRETCH = 256 };

typedef struct cumulating {
    const weft_call *call;
    int64_t length, inner, stretches;
    bool exclusive, reverse;
    void (*run)(const struct cumulating *c, int64_t at, int64_t n);
} cumulating;

#define CUMULATE(name, T, SUM, FIRST, OP)                                                          \
    static void name(const cumulating *c, int64_t at, int64_t n)                                   \
    {                                                                                              \
        const T *x = (const T *)c->call->in[0].data + at;                                          \
        T *y = (T *)c->call->out[0].data + at;                                                     \
        SUM sum[STRETCH];                                                                          \
        for (int64_t i = 0; i < n; i++)                                                            \
            sum[i] = FIRST;                                                                        \
        for (int64_t k = 0; k < c->length; k++) {                                                  \
            const int64_t row = (c->reverse ? c->length - 1 - k : k) * c->inner;                   \
            for (int64_t i = 0; i < n && c->exclusive; i++)                                        \
                y[row + i] = (T)sum[i];                                                            \
            for (int64_t i = 0; i < n; i++)                                                        \
                sum[i] = OP(sum[i], (SUM)x[row + i]);                                              \
            for (int64_t i = 0; i < n && !c->exclusive; i++)                                       \
                y[row + i] = (T)sum[i];                                                            \
        }                                                                                          \
    }
#include "cumulate_list.inc"

typedef void (*cumulate)(const cumulating *c, int64_t at, int64_t n);
#define OF_DTYPES(name)                                                                            \
    {                                                                                              \
        [WEFT_F32] = name##_f32, [WEFT_F64] = name##_f64, [WEFT_I32] = name##_i32,                 \
        [WEFT_I64] = name##_i64                                                                    \
    }
static const cumulate sums[WEFT_DTYPES] = OF_DTYPES(cumsum);
static const cumulate products[WEFT_DTYPES] = OF_DTYPES(cumprod);
static const cumulate tops[WEFT_DTYPES] = OF_DTYPES(cummax);

static void run_stretches(void *argument, int64_t begin, int64_t end, int lane)
{
    const cumulating *c = argument;
    (void)lane;
    for (int64_t i = begin; i < end; i++) {
        const int64_t from = i % c->stretches * STRETCH, left = c->inner - from;
        c->run(c, i / c->stretches * c->length * c->inner + from, left < STRETCH ? left : STRETCH);
    }
}

static void run(const weft_call *call, const cumulate *of)
{
    const weft_cumulate_attributes *attributes = call->attributes;
    const weft_view *out = &call->out[0];
    const int dim = weft_shape_find(&out->shape, attributes->dim);
    cumulating c = {.call = call,
                    .length = weft_view_size(out, dim),
                    .inner = 1,
                    .exclusive = attributes->exclusive,
                    .reverse = attributes->reverse,
                    .run = of[out->dtype]};
    if (weft_view_count(out) == 0) return;
    for (int d = dim + 1; d < out->shape.n_dims; d++)
        c.inner *= weft_view_size(out, d);
    c.stretches = (c.inner + STRETCH - 1) / STRETCH;
    const int64_t width = c.inner < STRETCH ? c.inner : STRETCH;
    weft_parallel(call->stream, weft_view_count(out) / (c.length * c.inner) * c.stretches,
                  weft_grain(c.length * width), run_stretches, &c);
}

void weft_cumsum_cpu(const weft_call *call)
{
    run(call, sums);
}

void weft_cumprod_cpu(const weft_call *call)
{
    run(call, products);
}

void weft_cummax_cpu(const weft_call *call)
{
    run(call, tops);
}

const weft_kernel weft_kernel_cumsum = {
    .size = sizeof(weft_kernel),
    .name = "cumsum",
    .device = WEFT_CPU,
    .dtypes = WEFT_WIDE_DTYPES,
    .launch = weft_cumsum_cpu,
};
const weft_kernel weft_kernel_cumprod = {
    .size = sizeof(weft_kernel),
    .name = "cumprod",
    .device = WEFT_CPU,
    .dtypes = WEFT_WIDE_DTYPES,
    .launch = weft_cumprod_cpu,
};
const weft_kernel weft_kernel_cummax = {
    .size = sizeof(weft_kernel),
    .name = "cummax",
    .device = WEFT_CPU,
    .dtypes = WEFT_WIDE_DTYPES,
    .launch = weft_cummax_cpu,
};
