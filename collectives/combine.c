/* combine.c: the monoids of partial results: identity and combination, by kind and dtype.
 *
 * A state is `width` numbers. argmax keeps its index as a number in double, as the bits of an int32
 * in float, so that indices past 2^24 stay exact.
 */
#include "engine.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "weft/extend/clones.h"
#include "weft/extend/half.h"

/* `out` is a or b, or neither. */
#define EACH(name, T, expression)                                                                  \
    WEFT_CLONES static void name(void *out_, const void *a_, const void *b_, int64_t n_states)     \
    {                                                                                              \
        T *out = out_;                                                                             \
        const T *as = a_, *bs = b_;                                                                \
        WEFT_IVDEP                                                                                 \
        for (int64_t i = 0; i < n_states; i++) {                                                   \
            const T a = as[i], b = bs[i];                                                          \
            out[i] = (expression);                                                                 \
        }                                                                                          \
    }
#define FILL(name, T, value)                                                                       \
    static void name(void *into_, int64_t n_states)                                                \
    {                                                                                              \
        T *into = into_;                                                                           \
        for (int64_t i = 0; i < n_states; i++)                                                     \
            into[i] = (value);                                                                     \
    }

EACH(sum_f32, float, a + b)
EACH(sum_f64, double, a + b)
EACH(sum_i32, int32_t, (int32_t)((uint32_t)a + (uint32_t)b))
EACH(max_f32, float, a > b || a != a ? a : b) /* a NaN stays */
EACH(max_f64, double, a > b || a != a ? a : b)
EACH(max_i32, int32_t, a > b ? a : b)
EACH(min_f32, float, a < b || a != a ? a : b)
EACH(min_f64, double, a < b || a != a ? a : b)
EACH(min_i32, int32_t, a < b ? a : b)
EACH(sum_i64, int64_t, (int64_t)((uint64_t)a + (uint64_t)b))
EACH(max_i64, int64_t, a > b ? a : b)
EACH(min_i64, int64_t, a < b ? a : b)
EACH(sum_u8, uint8_t, (uint8_t)(a + b))
EACH(max_u8, uint8_t, a > b ? a : b)
EACH(min_u8, uint8_t, a < b ? a : b)
FILL(zero_i64, int64_t, 0)
FILL(low_i64, int64_t, INT64_MIN)
FILL(high_i64, int64_t, INT64_MAX)
FILL(zero_u8, uint8_t, 0)
FILL(high_u8, uint8_t, UINT8_MAX)

/* Of 16 bits: in f32, rounded. Weft's own partial values are never of 16 bits where that would lose anything. */
#define HALF(suffix, of, to, low, high)                                                            \
    EACH(sum_##suffix, uint16_t, to(of(a) + of(b)))                                                \
    EACH(max_##suffix, uint16_t, of(a) > of(b) || of(a) != of(a) ? a : b)                          \
    EACH(min_##suffix, uint16_t, of(a) < of(b) || of(a) != of(a) ? a : b)                          \
    FILL(low_##suffix, uint16_t, low)                                                              \
    FILL(high_##suffix, uint16_t, high)
HALF(bf16, weft_f32_of_bf16, weft_bf16_of_f32, 0xFF80, 0x7F80)
HALF(f16, weft_f32_of_f16, weft_f16_of_f32, 0xFC00, 0x7C00)
FILL(zero_half, uint16_t, 0)

FILL(zero_f32, float, 0)
FILL(zero_f64, double, 0)
FILL(zero_i32, int32_t, 0)
FILL(low_f32, float, -INFINITY)
FILL(low_f64, double, -INFINITY)
FILL(low_i32, int32_t, INT32_MIN)
FILL(high_f32, float, INFINITY)
FILL(high_f64, double, INFINITY)
FILL(high_i32, int32_t, INT32_MAX)

/* (max, sum of exp(x - max)): the smaller maximum's sum is scaled down. Two empty states stay empty. */
#define LSE(T, suffix, exponential)                                                                \
    static void lse_##suffix(void *out_, const void *a_, const void *b_, int64_t n_states)         \
    {                                                                                              \
        T *out = out_;                                                                             \
        const T *a = a_, *b = b_;                                                                  \
        for (int64_t i = 0; i < 2 * n_states; i += 2) {                                            \
            const T top = a[i] > b[i] || a[i] != a[i] ? a[i] : b[i];                               \
            const T of_a = a[i] == top ? 1 : exponential(a[i] - top);                              \
            const T of_b = b[i] == top ? 1 : exponential(b[i] - top);                              \
            const T sum = a[i + 1] * of_a + b[i + 1] * of_b;                                       \
            out[i] = top;                                                                          \
            out[i + 1] = sum;                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void no_lse_##suffix(void *into_, int64_t n_states)                                     \
    {                                                                                              \
        T *into = into_;                                                                           \
        for (int64_t i = 0; i < 2 * n_states; i += 2)                                              \
            into[i] = -INFINITY, into[i + 1] = 0;                                                  \
    }
LSE(float, f32, expf)
LSE(double, f64, exp)

static int32_t index_f32(const float *state)
{
    int32_t index;
    memcpy(&index, state + 1, sizeof index);
    return index;
}
static void put_f32(float *state, int32_t index)
{
    memcpy(state + 1, &index, sizeof index);
}
static int32_t index_f64(const double *state)
{
    return (int32_t)state[1];
}
static void put_f64(double *state, int32_t index)
{
    state[1] = index;
}
static int32_t index_i32(const int32_t *state)
{
    return state[1];
}
static void put_i32(int32_t *state, int32_t index)
{
    state[1] = index;
}

/* The larger value, a NaN above all; of equal ones the lower index; an empty state (index -1) loses. */
#define ARGMAX(T, suffix, lowest)                                                                  \
    static bool argmax_takes_##suffix(const T *a, const T *b)                                      \
    {                                                                                              \
        const int32_t at = index_##suffix(a), other = index_##suffix(b);                           \
        if (other < 0 || at < 0) return other >= 0;                                                \
        const bool a_is_nan = a[0] != a[0], b_is_nan = b[0] != b[0];                               \
        if (a_is_nan != b_is_nan) return b_is_nan;                                                 \
        return b[0] > a[0] || ((a_is_nan || b[0] == a[0]) && other < at);                          \
    }                                                                                              \
    static void argmax_##suffix(void *out_, const void *a_, const void *b_, int64_t n_states)      \
    {                                                                                              \
        T *out = out_;                                                                             \
        const T *a = a_, *b = b_;                                                                  \
        for (int64_t i = 0; i < 2 * n_states; i += 2)                                              \
            memmove(out + i, argmax_takes_##suffix(a + i, b + i) ? b + i : a + i, 2 * sizeof(T));  \
    }                                                                                              \
    static void no_argmax_##suffix(void *into_, int64_t n_states)                                  \
    {                                                                                              \
        T *into = into_;                                                                           \
        for (int64_t i = 0; i < 2 * n_states; i += 2) {                                            \
            into[i] = lowest;                                                                      \
            put_##suffix(into + i, -1);                                                            \
        }                                                                                          \
    }
ARGMAX(float, f32, -INFINITY)
ARGMAX(double, f64, -INFINITY)
ARGMAX(int32_t, i32, INT32_MIN)

/* (count, mean, M2), added up in double. An empty part changes nothing, be the other's mean infinite.
 * A term is delta (delta w), which overflows only where M2 itself does; a delta that is no number, of
 * means too far apart or infinite, leaves the mean to the two weighted ones, which stay in range.
 * source  Chan, Golub, LeVeque 1983, "Algorithms for computing the sample variance" */
#define MOMENTS(T, suffix)                                                                         \
    static void moments_##suffix(void *out_, const void *a_, const void *b_, int64_t n_states)     \
    {                                                                                              \
        T *out = out_;                                                                             \
        const T *as = a_, *bs = b_;                                                                \
        for (int64_t i = 0; i < 3 * n_states; i += 3) {                                            \
            const double na = (double)as[i], nb = (double)bs[i], n = na + nb;                      \
            if (na == 0 || nb == 0) {                                                              \
                memmove(out + i, na == 0 ? bs + i : as + i, 3 * sizeof(T));                        \
                continue;                                                                          \
            }                                                                                      \
            const double a = (double)as[i + 1], b = (double)bs[i + 1], delta = b - a;              \
            const double m2 = (double)as[i + 2] + (double)bs[i + 2], share = nb / n;               \
            out[i + 2] = (T)(m2 + delta * (delta * (na * share)));                                 \
            out[i + 1] = (T)(isfinite(delta) ? a + delta * share : a * (na / n) + b * share);      \
            out[i] = (T)n;                                                                         \
        }                                                                                          \
    }                                                                                              \
    static void no_moments_##suffix(void *into, int64_t n_states)                                  \
    {                                                                                              \
        memset(into, 0, 3 * (size_t)n_states * sizeof(T));                                         \
    }
MOMENTS(float, f32)
MOMENTS(double, f64)

static const weft_combiner combiners[WEFT_COMBINES][WEFT_DTYPES] = {
    [WEFT_SUM] = {sum_f32, sum_f64, sum_i32, sum_bf16, sum_f16, sum_i64, sum_u8},
    [WEFT_MAX] = {max_f32, max_f64, max_i32, max_bf16, max_f16, max_i64, max_u8},
    [WEFT_MIN] = {min_f32, min_f64, min_i32, min_bf16, min_f16, min_i64, min_u8},
    [WEFT_LSE] = {lse_f32, lse_f64, NULL},
    [WEFT_ARGMAX] = {argmax_f32, argmax_f64, argmax_i32},
    [WEFT_MOMENTS] = {moments_f32, moments_f64, NULL},
};
static const weft_identity identities[WEFT_COMBINES][WEFT_DTYPES] = {
    [WEFT_SUM] = {zero_f32, zero_f64, zero_i32, zero_half, zero_half, zero_i64, zero_u8},
    [WEFT_MAX] = {low_f32, low_f64, low_i32, low_bf16, low_f16, low_i64, zero_u8},
    [WEFT_MIN] = {high_f32, high_f64, high_i32, high_bf16, high_f16, high_i64, high_u8},
    [WEFT_LSE] = {no_lse_f32, no_lse_f64, NULL},
    [WEFT_ARGMAX] = {no_argmax_f32, no_argmax_f64, no_argmax_i32},
    [WEFT_MOMENTS] = {no_moments_f32, no_moments_f64, NULL},
};

weft_combiner weft_combiner_of(weft_combine combine, weft_dtype dtype)
{
    const weft_combine_rule *rule = weft_combine_outside(combine);
    if ((unsigned)dtype >= WEFT_DTYPES) return NULL;
    if (rule != NULL) return rule->combine[dtype];
    return (unsigned)combine < WEFT_COMBINES ? combiners[combine][dtype] : NULL;
}

static weft_identity identity_of(weft_combine combine, weft_dtype dtype)
{
    const weft_combine_rule *rule = weft_combine_outside(combine);
    if ((unsigned)dtype >= WEFT_DTYPES) return NULL;
    if (rule != NULL) return rule->identity[dtype];
    return (unsigned)combine < WEFT_COMBINES ? identities[combine][dtype] : NULL;
}

weft_combining weft_combining_of(weft_combine combine, weft_dtype dtype)
{
    if (weft_combiner_of(combine, dtype) == NULL) return (weft_combining){0};
    return (weft_combining){.combine = (int)combine,
                            .dtype = (int)dtype,
                            .width = weft_combine_width(combine),
                            .element = (int64_t)weft_dtype_bytes(dtype),
                            .host = weft_combiner_of(combine, dtype),
                            .identity = identity_of(combine, dtype)};
}

weft_status weft_combine_check(weft_combine combine, weft_dtype dtype, weft_error *error)
{
    if (weft_combiner_of(combine, dtype)) return WEFT_OK;
    if (combine == WEFT_NOT_PARTIAL)
        return weft_fail(
            error, WEFT_USAGE,
            "there is nothing to combine: WEFT_NOT_PARTIAL says that a value is whole; "
            "pass how parts combine, such as WEFT_SUM");
    return weft_fail(error, WEFT_USAGE,
                     "partial results of kind %s are not defined for %s; use a float dtype",
                     weft_combine_name(combine), weft_dtype_name(dtype));
}

uint64_t weft_combine_digest(weft_combine combine)
{
    const weft_combine_rule *rule = weft_combine_outside(combine);
    if (rule == NULL) return 0;
    const int32_t facts[] = {rule->width, rule->is_sum};
    return weft_digest(weft_digest(0, rule->name, strlen(rule->name)), facts, sizeof facts);
}

void weft_combines_print(char *text, size_t bytes)
{
    size_t used = 0;
    snprintf(text, bytes, "none");
    for (int k = WEFT_COMBINES; weft_combine_is_known((weft_combine)k) && used < bytes; k++)
        used += (size_t)snprintf(text + used, bytes - used, "%s%s", used ? ", " : "",
                                 weft_combine_name((weft_combine)k));
}

void weft_combine_into(weft_combine combine, weft_dtype dtype, void *into, const void *with,
                       int64_t count)
{
    const weft_combiner rule = weft_combiner_of(combine, dtype);
    if (rule != NULL && into != NULL && with != NULL && count > 0)
        rule(into, into, with, count / weft_combine_width(combine));
}

void weft_combine_identity(weft_combine combine, weft_dtype dtype, void *into, int64_t count)
{
    const weft_identity rule = identity_of(combine, dtype);
    if (rule != NULL && into != NULL && count > 0) rule(into, count / weft_combine_width(combine));
}
