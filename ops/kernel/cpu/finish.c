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
    int64_t n;
} finish;

/* ---- n states in a row ----------------------------------------------------------------------- */

#define FINISHES(T, suffix)                                                                        \
    static void lse_##suffix(int64_t n, void *const *y, const void *state, double number)          \
    {                                                                                              \
        const T *s = state;                                                                        \
        (void)number;                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const double sum = (double)s[2 * i + 1];                                               \
            ((T *)y[0])[i] = s[2 * i];                                                             \
            ((T *)y[1])[i] = (T)log(sum);                                                          \
        }                                                                                          \
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

/* All that does not change from run to run. */
static void plan(finish *f, const weft_call *call, const weft_finish *finishes, double number)
{
    const weft_view *out = &call->out[0];
    *f = (finish){.finish = finishes[call->in[0].dtype], .number = number};
    const weft_strided state = weft_strided_view(&call->in[0]), first = weft_strided_view(out);
    const weft_strided second = weft_strided_view(&call->out[call->n_out - 1]);
    for (int d = 0; d < out->shape.n_dims; d++) {
        const char *name = out->shape.dims[d].name;
        const int64_t stride[3] = {weft_strided_of(&state, name), first.stride[d],
                                   weft_strided_of(&second, name)};
        weft_nest_add(&f->nest, weft_view_size(out, d), stride);
    }
    f->n = weft_view_count(out);
    f->state = call->in[0].data;
    f->out[0] = out->data, f->out[1] = call->out[call->n_out - 1].data;
    f->bytes[0] = weft_dtype_bytes(call->in[0].dtype), f->bytes[1] = weft_dtype_bytes(out->dtype);
}

static void run_states(const finish *f, weft_stream *stream)
{
    if (f->n > 0) weft_parallel(stream, f->n, 2048, run, (void *)(uintptr_t)f);
}

static void launch(const weft_call *call)
{
    run_states(call->prepared, call->stream);
}

static void plan_lse(finish *f, const weft_call *call)
{
    plan(f, call, weft_lse_finishes, 0);
}

static void plan_argmax(finish *f, const weft_call *call)
{
    plan(f, call, weft_argmax_finishes, 0);
}

static void plan_moments(finish *f, const weft_call *call)
{
    const weft_number_attributes *attributes = call->attributes;
    plan(f, call, weft_moments_finishes, attributes->number);
}

/* The kernel of an op, prepared, and as one call. */
#define FINISH_KERNEL(op, its_dtypes)                                                              \
    static weft_status prepare_##op(const weft_call *call, weft_arena *arena, void **prepared,     \
                                    weft_error *error)                                             \
    {                                                                                              \
        finish *f = *prepared = weft_arena_take(arena, sizeof *f);                                 \
        if (f == NULL) return weft_fail_memory(error, sizeof *f);                                  \
        plan_##op(f, call);                                                                        \
        return WEFT_OK;                                                                            \
    }                                                                                              \
    void weft_##op##_finish_cpu(const weft_call *call)                                             \
    {                                                                                              \
        finish f;                                                                                  \
        plan_##op(&f, call);                                                                       \
        run_states(&f, call->stream);                                                              \
    }                                                                                              \
    const weft_kernel weft_kernel_##op##_finish = {                                                \
        .size = sizeof(weft_kernel),                                                               \
        .name = #op "_finish",                                                                     \
        .device = WEFT_CPU,                                                                        \
        .dtypes = its_dtypes,                                                                      \
        .prepare = prepare_##op,                                                                   \
        .launch = launch,                                                                          \
    };
FINISH_KERNEL(lse, WEFT_FLOAT_DTYPES)
FINISH_KERNEL(argmax, WEFT_FLOAT_DTYPES | WEFT_DTYPE_BIT(WEFT_I32))
FINISH_KERNEL(moments, WEFT_FLOAT_DTYPES)
