/* combine_states.h: states of several numbers, combined: one function for a state, for the host and every device.
 *
 * `out` is a or b, or neither. argmax keeps its index as a number in double, as the bits of an int32 in float, so that
 * indices past 2^24 stay exact.
 */
#ifndef WEFT_COMBINE_STATES_H
#define WEFT_COMBINE_STATES_H

#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "weft/extend/half.h"

/* What combine_list.inc calls kinds and dtypes, as numbers. */
enum {
    COMBINE_sum = 1,
    COMBINE_max,
    COMBINE_min,
    COMBINE_lse,
    COMBINE_argmax,
    COMBINE_moments,
    COMBINE_prod,
    COMBINE_KINDS
}; /* a weft_combine */
enum {
    COMBINE_f32,
    COMBINE_f64,
    COMBINE_i32,
    COMBINE_bf16,
    COMBINE_f16,
    COMBINE_i64,
    COMBINE_u8,
    COMBINE_DTYPES
}; /* a weft_dtype */

/* (max, sum of exp(x - max)): the smaller maximum's sum is scaled down. Two empty states stay empty. */
#define WEFT_LSE(T, suffix, exponential)                                                           \
    WEFT_HOST_DEVICE void weft_lse_state_##suffix(T *out, const T *a, const T *b)                  \
    {                                                                                              \
        const T top = a[0] > b[0] || a[0] != a[0] ? a[0] : b[0];                                   \
        const T of_a = a[0] == top ? 1 : exponential(a[0] - top);                                  \
        const T of_b = b[0] == top ? 1 : exponential(b[0] - top);                                  \
        const T sum = a[1] * of_a + b[1] * of_b;                                                   \
        out[0] = top;                                                                              \
        out[1] = sum;                                                                              \
    }                                                                                              \
    WEFT_HOST_DEVICE void weft_lse_empty_##suffix(T *into)                                         \
    {                                                                                              \
        into[0] = -INFINITY;                                                                       \
        into[1] = 0;                                                                               \
    }
WEFT_LSE(float, f32, expf)
WEFT_LSE(double, f64, exp)

WEFT_HOST_DEVICE int32_t weft_argmax_index_f32(const float *state)
{
    int32_t index;
    memcpy(&index, state + 1, sizeof index);
    return index;
}
WEFT_HOST_DEVICE void weft_argmax_put_f32(float *state, int32_t index)
{
    memcpy(state + 1, &index, sizeof index);
}
WEFT_HOST_DEVICE int32_t weft_argmax_index_f64(const double *state)
{
    return (int32_t)state[1];
}
WEFT_HOST_DEVICE void weft_argmax_put_f64(double *state, int32_t index)
{
    state[1] = index;
}
WEFT_HOST_DEVICE int32_t weft_argmax_index_i32(const int32_t *state)
{
    return state[1];
}
WEFT_HOST_DEVICE void weft_argmax_put_i32(int32_t *state, int32_t index)
{
    state[1] = index;
}

/* The larger value, a NaN above all; of equal ones the lower index; an empty state (index -1) loses. */
#define WEFT_ARGMAX_STATE(T, suffix, lowest)                                                       \
    WEFT_HOST_DEVICE bool weft_argmax_takes_##suffix(const T *a, const T *b)                       \
    {                                                                                              \
        const int32_t at = weft_argmax_index_##suffix(a), other = weft_argmax_index_##suffix(b);   \
        if (other < 0 || at < 0) return other >= 0;                                                \
        const bool a_is_nan = a[0] != a[0], b_is_nan = b[0] != b[0];                               \
        if (a_is_nan != b_is_nan) return b_is_nan;                                                 \
        return b[0] > a[0] || ((a_is_nan || b[0] == a[0]) && other < at);                          \
    }                                                                                              \
    WEFT_HOST_DEVICE void weft_argmax_state_##suffix(T *out, const T *a, const T *b)               \
    {                                                                                              \
        const T *taken = weft_argmax_takes_##suffix(a, b) ? b : a;                                 \
        const T value = taken[0], index = taken[1];                                                \
        out[0] = value;                                                                            \
        out[1] = index;                                                                            \
    }                                                                                              \
    WEFT_HOST_DEVICE void weft_argmax_empty_##suffix(T *into)                                      \
    {                                                                                              \
        into[0] = lowest;                                                                          \
        weft_argmax_put_##suffix(into, -1);                                                        \
    }
WEFT_ARGMAX_STATE(float, f32, -INFINITY)
WEFT_ARGMAX_STATE(double, f64, -INFINITY)
WEFT_ARGMAX_STATE(int32_t, i32, INT32_MIN)

/* (count, mean, M2), added up in double. An empty part changes nothing, be the other's mean infinite.
 * A term is delta (delta w), which overflows only where M2 itself does; a delta that is no number, of
 * means too far apart or infinite, leaves the mean to the two weighted ones, which stay in range.
 * source  Chan, Golub, LeVeque 1983, "Algorithms for computing the sample variance" */
#define WEFT_MOMENTS_STATE(T, suffix)                                                              \
    WEFT_HOST_DEVICE void weft_moments_state_##suffix(T *out, const T *as, const T *bs)            \
    {                                                                                              \
        const double na = (double)as[0], nb = (double)bs[0], n = na + nb;                          \
        if (na == 0 || nb == 0) {                                                                  \
            const T *kept = na == 0 ? bs : as;                                                     \
            const T n_kept = kept[0], mean = kept[1], more = kept[2];                              \
            out[0] = n_kept, out[1] = mean, out[2] = more;                                         \
            return;                                                                                \
        }                                                                                          \
        const double a = (double)as[1], b = (double)bs[1], delta = b - a;                          \
        const double m2 = (double)as[2] + (double)bs[2], share = nb / n;                           \
        out[2] = (T)(m2 + delta * (delta * (na * share)));                                         \
        out[1] = (T)(isfinite(delta) ? a + delta * share : a * (na / n) + b * share);              \
        out[0] = (T)n;                                                                             \
    }                                                                                              \
    WEFT_HOST_DEVICE void weft_moments_empty_##suffix(T *into)                                     \
    {                                                                                              \
        into[0] = into[1] = into[2] = 0;                                                           \
    }
WEFT_MOMENTS_STATE(float, f32)
WEFT_MOMENTS_STATE(double, f64)

#endif
