/* linear.c: cholesky, triangular_solve, solve: one matrix after the other, each by one lane.
 *
 * Columns of a substitution are apart: a matrix's are done in stretches, as lanes get to them. A matrix of solve is eliminated
 * in scratch of its slot, which has every n_slots-th of them.
 */
#include "cpu/factorize.h"
#include "cpu/nest.h"

#include <limits.h>
#include <math.h>
#include <string.h>

enum { STRETCH = 256, MOST_SLOTS = 8 };

typedef struct squares {
    const weft_call *call;
    int64_t n, batch, columns; /* of each matrix of in[1], that is of out */
    int64_t stretches, n_slots;
    size_t bytes; /* of an element */
    weft_dtype dtype;
} squares;

static squares plan(const weft_call *call)
{
    const weft_square_attributes *a = call->attributes;
    const weft_view *in = &call->in[0], *out = &call->out[0];
    squares s = {.call = call,
                 .n = a->size,
                 .batch = weft_view_count(in) / (a->size * a->size),
                 .columns = 1,
                 .bytes = weft_dtype_bytes(in->dtype),
                 .dtype = in->dtype};
    for (int d = in->shape.n_dims - 1; d < out->shape.n_dims; d++)
        s.columns *= weft_view_size(out, d);
    s.stretches = (s.columns + STRETCH - 1) / STRETCH;
    s.n_slots = s.batch < MOST_SLOTS ? s.batch : MOST_SLOTS;
    return s;
}

/* BLAS counts in ints. */
static bool takes(const weft_call *call)
{
    const squares s = plan(call);
    return s.n <= INT_MAX && s.columns <= INT_MAX;
}

static char *matrix_of(const squares *s, const void *data, int64_t number)
{
    return (char *)data + (size_t)(number * s->n * s->n) * s->bytes;
}

static char *columns_of(const squares *s, const void *data, int64_t number)
{
    return (char *)data + (size_t)(number * s->n * s->columns) * s->bytes;
}

static void put_nan(const squares *s, void *x, int64_t i)
{
    weft_dtype_put(s->dtype, x, i, (double)NAN);
}

/* ---- cholesky ------------------------------------------------------------------------------------ */

static void fill_triangle(const squares *s, char *l)
{
    memset(l, 0, (size_t)(s->n * s->n) * s->bytes);
    for (int64_t i = 0; i < s->n; i++)
        for (int64_t j = 0; j <= i; j++)
            put_nan(s, l, i * s->n + j);
}

static void factorize(void *argument, int64_t begin, int64_t end, int lane)
{
    const squares *s = argument;
    (void)lane;
    for (int64_t number = begin; number < end; number++) {
        char *l = matrix_of(s, s->call->out[0].data, number);
        memcpy(l, matrix_of(s, s->call->in[0].data, number), (size_t)(s->n * s->n) * s->bytes);
        if (!weft_factorize_positives[s->dtype](s->n, l)) fill_triangle(s, l);
    }
}

void weft_cholesky_cpu(const weft_call *call)
{
    squares s = plan(call);
    weft_parallel(call->stream, s.batch, weft_grain(s.n * s.n * (s.n / 3 + 1)), factorize, &s);
}

/* ---- triangular_solve ---------------------------------------------------------------------------- */

static void substitute(void *argument, int64_t begin, int64_t end, int lane)
{
    const squares *s = argument;
    const weft_triangle_attributes *a = s->call->attributes;
    const size_t row = (size_t)s->columns * s->bytes;
    (void)lane;
    for (int64_t i = begin; i < end; i++) {
        const int64_t number = i / s->stretches, first = i % s->stretches * STRETCH;
        const int64_t left = s->columns - first, m = left < STRETCH ? left : STRETCH;
        const weft_triangle_of t = {
            .data = matrix_of(s, s->call->in[0].data, number), .n = s->n, .is_upper = a->is_upper};
        const size_t at = (size_t)first * s->bytes;
        const char *b = columns_of(s, s->call->in[1].data, number) + at;
        char *x = columns_of(s, s->call->out[0].data, number) + at;
        for (int64_t k = 0; k < s->n; k++)
            memcpy(x + (size_t)k * row, b + (size_t)k * row, (size_t)m * s->bytes);
        weft_substitutes[s->dtype](&t, m, s->columns, x);
    }
}

void weft_triangular_solve_cpu(const weft_call *call)
{
    squares s = plan(call);
    const int64_t width = s.columns < STRETCH ? s.columns : STRETCH;
    if (weft_view_count(&call->out[0]) == 0) return;
    weft_parallel(call->stream, s.batch * s.stretches, weft_grain(s.n * s.n * width), substitute,
                  &s);
}

/* ---- solve ------------------------------------------------------------------------------------------ */

/* Of a slot: the matrix, then which rows were swapped; slots begin in lines of their own. */
static int64_t slot_bytes(const squares *s)
{
    return weft_aligned(s->n * s->n * (int64_t)s->bytes + s->n * (int64_t)sizeof(int32_t));
}

static int64_t scratch(const weft_call *call)
{
    const squares s = plan(call);
    return s.n_slots * slot_bytes(&s);
}

static void swap_rows(const squares *s, char *x, const int32_t *swaps)
{
    const size_t row = (size_t)s->columns * s->bytes;
    for (int64_t i = 0; i < s->n; i++) {
        char *a = x + (size_t)i * row, *b = x + (size_t)swaps[i] * row;
        for (size_t k = 0; k < row && a != b; k++) {
            const char kept = a[k];
            a[k] = b[k], b[k] = kept;
        }
    }
}

static void solve_one(const squares *s, int64_t number, char *slot)
{
    const size_t all = (size_t)(s->n * s->columns) * s->bytes, side = (size_t)(s->n * s->n);
    int32_t *swaps = (int32_t *)(void *)(slot + side * s->bytes);
    char *x = columns_of(s, s->call->out[0].data, number);
    memcpy(slot, matrix_of(s, s->call->in[0].data, number), side * s->bytes);
    memcpy(x, columns_of(s, s->call->in[1].data, number), all);
    if (!weft_factorize_anys[s->dtype](s->n, slot, swaps)) {
        for (int64_t i = 0; i < s->n * s->columns; i++)
            put_nan(s, x, i);
        return;
    }
    const weft_triangle_of lower = {.data = slot, .n = s->n, .has_ones = true},
                           upper = {.data = slot, .n = s->n, .is_upper = true};
    swap_rows(s, x, swaps);
    weft_substitutes[s->dtype](&lower, s->columns, s->columns, x);
    weft_substitutes[s->dtype](&upper, s->columns, s->columns, x);
}

static void solve_slots(void *argument, int64_t begin, int64_t end, int lane)
{
    const squares *s = argument;
    (void)lane;
    for (int64_t slot = begin; slot < end; slot++)
        for (int64_t number = slot; number < s->batch; number += s->n_slots)
            solve_one(s, number, (char *)s->call->scratch + slot * slot_bytes(s));
}

void weft_solve_cpu(const weft_call *call)
{
    squares s = plan(call);
    if (weft_view_count(&call->out[0]) == 0) return;
    weft_parallel(call->stream, s.n_slots,
                  weft_grain(s.batch / s.n_slots * s.n * s.n * (s.n + s.columns)), solve_slots, &s);
}

const weft_kernel weft_kernel_cholesky = {
    .size = sizeof(weft_kernel),
    .name = "cholesky",
    .device = WEFT_CPU,
    .dtypes = WEFT_FLOAT_DTYPES,
    .takes = takes,
    .launch = weft_cholesky_cpu,
};
const weft_kernel weft_kernel_triangular_solve = {
    .size = sizeof(weft_kernel),
    .name = "triangular_solve",
    .device = WEFT_CPU,
    .dtypes = WEFT_FLOAT_DTYPES,
    .takes = takes,
    .launch = weft_triangular_solve_cpu,
};
const weft_kernel weft_kernel_solve = {
    .size = sizeof(weft_kernel),
    .name = "solve",
    .device = WEFT_CPU,
    .dtypes = WEFT_FLOAT_DTYPES,
    .takes = takes,
    .scratch = scratch,
    .launch = weft_solve_cpu,
};
