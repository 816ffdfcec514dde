/* finish.c: states of lse, argmax and moments become the values they stand for.
 *
 * A state is the innermost dim "~" of the input; results have the other dims, in any order.
 */
#include "cpu/nest.h"

#include <math.h>
#include <string.h>

typedef struct finish {
    weft_nest nest; /* tensors: state, out[0], out[1] (which has out[0]'s dims in some order) */
    const char *state;
    char *out[2];
    size_t bytes[2]; /* of a number of the state, of the results */
    double number;
    weft_finish finish;
} finish;

/* ---- n states in a row ----------------------------------------------------------------------- */

#define FINISHES(T, suffix)                                                                        \
    static void lse_##suffix(int64_t n, void *const *y, const void *state, double number)          \
    {                                                                                              \
        const T *s = state;                                                                        \
        (void)number;                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            ((T *)y[0])[i] = (T)((double)s[2 * i] + log((double)s[2 * i + 1]));                    \
    }                                                                                              \
    static void moments_##suffix(int64_t n, void *const *y, const void *state, double number)      \
    {                                                                                              \
        const T *s = state;                                                                        \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const double count = (double)s[3 * i], square = (double)s[3 * i + 2];                  \
            ((T *)y[0])[i] = s[3 * i + 1];                                                         \
            ((T *)y[1])[i] = (T)(1.0 / sqrt(square / count + number));                             \
        }                                                                                          \
    }
FINISHES(float, f32)
FINISHES(double, f64)

/* The index stands as int32 bits in a float, as a number in a double. */
static void argmax_bits(int64_t n, void *const *y, const void *state, double number)
{
    (void)number;
    for (int64_t i = 0; i < n; i++)
        memcpy((int32_t *)y[0] + i, (const char *)state + (2 * i + 1) * 4, 4);
}
static void argmax_f64(int64_t n, void *const *y, const void *state, double number)
{
    (void)number;
    for (int64_t i = 0; i < n; i++)
        ((int32_t *)y[0])[i] = (int32_t)((const double *)state)[2 * i + 1];
}

const weft_finish weft_lse_finishes[WEFT_DTYPES] = {[WEFT_F32] = lse_f32, [WEFT_F64] = lse_f64};
const weft_finish weft_argmax_finishes[WEFT_DTYPES] = {
    [WEFT_F32] = argmax_bits, [WEFT_F64] = argmax_f64, [WEFT_I32] = argmax_bits};
const weft_finish weft_moments_finishes[WEFT_DTYPES] = {
    [WEFT_F32] = moments_f32, [WEFT_F64] = moments_f64};

/* ---- kernels --------------------------------------------------------------------------------- */

static void run(void *argument, int64_t begin, int64_t end, int lane)
{
    const finish *f = argument;
    (void)lane;
    for (int64_t i = begin; i < end; i++) {
        int64_t at[3];
        weft_nest_offset(&f->nest, i, at);
        void *const y[2] = {f->out[0] + at[1] * (int64_t)f->bytes[1],
                            f->out[1] + at[2] * (int64_t)f->bytes[1]};
        f->finish(1, y, f->state + at[0] * (int64_t)f->bytes[0], f->number);
    }
}

static void finish_states(const weft_call *call, const weft_finish *finishes, double number)
{
    const weft_view *out = &call->out[0];
    if (weft_view_count(out) == 0) return;
    finish f = {.finish = finishes[call->in[0].dtype], .number = number};
    const weft_strided state = weft_strided_view(&call->in[0]), first = weft_strided_view(out);
    const weft_strided second = weft_strided_view(&call->out[call->n_out - 1]);
    for (int d = 0; d < out->shape.n_dims; d++) {
        const char *name = out->shape.dims[d].name;
        const int64_t stride[3] = {weft_strided_of(&state, name), first.stride[d],
                                   weft_strided_of(&second, name)};
        weft_nest_add(&f.nest, weft_view_size(out, d), stride);
    }
    f.state = call->in[0].data;
    f.out[0] = out->data, f.out[1] = call->out[call->n_out - 1].data;
    f.bytes[0] = weft_dtype_bytes(call->in[0].dtype), f.bytes[1] = weft_dtype_bytes(out->dtype);
    weft_parallel(call->stream, weft_nest_count(&f.nest), 2048, run, &f);
}

void weft_lse_finish_cpu(const weft_call *call)
{
    finish_states(call, weft_lse_finishes, 0);
}

const weft_kernel weft_kernel_lse_finish = {
    .size = sizeof(weft_kernel),
    .name = "lse_finish",
    .device = WEFT_CPU,
    .dtypes = WEFT_FLOAT_DTYPES,
    .launch = weft_lse_finish_cpu,
};

void weft_argmax_finish_cpu(const weft_call *call)
{
    finish_states(call, weft_argmax_finishes, 0);
}

const weft_kernel weft_kernel_argmax_finish = {
    .size = sizeof(weft_kernel),
    .name = "argmax_finish",
    .device = WEFT_CPU,
    .dtypes = WEFT_ANY_DTYPE,
    .launch = weft_argmax_finish_cpu,
};

void weft_moments_finish_cpu(const weft_call *call)
{
    const weft_number_attributes *attributes = call->attributes;
    finish_states(call, weft_moments_finishes, attributes->number);
}

const weft_kernel weft_kernel_moments_finish = {
    .size = sizeof(weft_kernel),
    .name = "moments_finish",
    .device = WEFT_CPU,
    .dtypes = WEFT_FLOAT_DTYPES,
    .launch = weft_moments_finish_cpu,
};
