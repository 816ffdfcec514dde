/* finish.c: states of lse, argmax and moments become the values they stand for.
 *
 * A state is the innermost dim "~" of the input; results have the other dims, in any order.
 */
#include "cpu/nest.h"

#include <math.h>
#include <string.h>

typedef struct finish {
    weft_nest nest; /* tensors: state, out[0], out[1] (which has out[0]'s dims in some order) */
    const void *state;
    void *out[2];
    double number;
    void (*one)(const struct finish *f, const int64_t at[3]);
} finish;

static void lse_f32(const finish *f, const int64_t at[3])
{
    const float *s = (const float *)f->state + at[0];
    ((float *)f->out[0])[at[1]] = (float)((double)s[0] + log((double)s[1]));
}
static void lse_f64(const finish *f, const int64_t at[3])
{
    const double *s = (const double *)f->state + at[0];
    ((double *)f->out[0])[at[1]] = s[0] + log(s[1]);
}

/* The index stands as int32 bits in a float, as a number in a double. */
static void argmax_bits(const finish *f, const int64_t at[3])
{
    memcpy((int32_t *)f->out[0] + at[1], (const char *)f->state + (at[0] + 1) * 4, 4);
}
static void argmax_f64(const finish *f, const int64_t at[3])
{
    ((int32_t *)f->out[0])[at[1]] = (int32_t)((const double *)f->state)[at[0] + 1];
}

static void moments_f32(const finish *f, const int64_t at[3])
{
    const float *s = (const float *)f->state + at[0];
    ((float *)f->out[0])[at[1]] = s[1];
    ((float *)f->out[1])[at[2]] = (float)(1.0 / sqrt((double)s[2] / (double)s[0] + f->number));
}
static void moments_f64(const finish *f, const int64_t at[3])
{
    const double *s = (const double *)f->state + at[0];
    ((double *)f->out[0])[at[1]] = s[1];
    ((double *)f->out[1])[at[2]] = 1.0 / sqrt(s[2] / s[0] + f->number);
}

static void run(void *argument, int64_t begin, int64_t end, int lane)
{
    const finish *f = argument;
    (void)lane;
    for (int64_t i = begin; i < end; i++) {
        int64_t at[3];
        weft_nest_offset(&f->nest, i, at);
        f->one(f, at);
    }
}

static void finish_states(const weft_call *call, finish *f)
{
    const weft_view *out = &call->out[0];
    if (weft_view_count(out) == 0) return;
    const weft_strided state = weft_strided_view(&call->in[0]), first = weft_strided_view(out);
    const weft_strided second = weft_strided_view(&call->out[call->n_out - 1]);
    for (int d = 0; d < out->shape.n_dims; d++) {
        const char *name = out->shape.dims[d].name;
        const int64_t stride[3] = {weft_strided_of(&state, name), first.stride[d],
                                   weft_strided_of(&second, name)};
        weft_nest_add(&f->nest, weft_view_size(out, d), stride);
    }
    f->state = call->in[0].data;
    f->out[0] = out->data, f->out[1] = call->out[call->n_out - 1].data;
    weft_parallel(call->stream, weft_nest_count(&f->nest), 2048, run, f);
}

void weft_lse_finish_cpu(const weft_call *call)
{
    finish_states(call, &(finish){.one = call->in[0].dtype == WEFT_F64 ? lse_f64 : lse_f32});
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
    finish_states(call, &(finish){.one = call->in[0].dtype == WEFT_F64 ? argmax_f64 : argmax_bits});
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
    finish_states(call, &(finish){.one = call->in[0].dtype == WEFT_F64 ? moments_f64 : moments_f32,
                                  .number = attributes->number});
}

const weft_kernel weft_kernel_moments_finish = {
    .size = sizeof(weft_kernel),
    .name = "moments_finish",
    .device = WEFT_CPU,
    .dtypes = WEFT_FLOAT_DTYPES,
    .launch = weft_moments_finish_cpu,
};
