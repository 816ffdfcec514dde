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
#define ADDED(a, b) ((a) + (b))
#define TIMES(a, b) ((a) * (b))
/* A NaN stays the largest. */
#define LARGER(a, b) ((b) > (a) || (b) != (b) ? (b) : (a))
CUMULATE(sums_f32, float, double, 0, ADDED)
CUMULATE(sums_f64, double, double, 0, ADDED)
CUMULATE(sums_i32, int32_t, uint32_t, 0, ADDED)
CUMULATE(sums_i64, int64_t, uint64_t, 0, ADDED)
CUMULATE(products_f32, float, double, 1, TIMES)
CUMULATE(products_f64, double, double, 1, TIMES)
CUMULATE(products_i32, int32_t, uint32_t, 1, TIMES)
CUMULATE(products_i64, int64_t, uint64_t, 1, TIMES)
CUMULATE(tops_f32, float, float, -INFINITY, LARGER)
CUMULATE(tops_f64, double, double, (double)-INFINITY, LARGER)
CUMULATE(tops_i32, int32_t, int32_t, INT32_MIN, LARGER)
CUMULATE(tops_i64, int64_t, int64_t, INT64_MIN, LARGER)

typedef void (*cumulate)(const cumulating *c, int64_t at, int64_t n);
static const cumulate sums[WEFT_DTYPES] = {
    [WEFT_F32] = sums_f32, [WEFT_F64] = sums_f64, [WEFT_I32] = sums_i32, [WEFT_I64] = sums_i64};
static const cumulate products[WEFT_DTYPES] = {[WEFT_F32] = products_f32,
                                               [WEFT_F64] = products_f64,
                                               [WEFT_I32] = products_i32,
                                               [WEFT_I64] = products_i64};
static const cumulate tops[WEFT_DTYPES] = {
    [WEFT_F32] = tops_f32, [WEFT_F64] = tops_f64, [WEFT_I32] = tops_i32, [WEFT_I64] = tops_i64};

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
