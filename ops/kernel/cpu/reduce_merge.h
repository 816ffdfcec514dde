/* reduce_merge.h (private): one state after another: part of reduce_state.c and reduce_columns.c, whose
 * loops have it inline. */
#ifndef WEFT_REDUCE_MERGE_H
#define WEFT_REDUCE_MERGE_H

#include <math.h>

#include "cpu/reduce_state.h"
#include "weft/extend/math.h"

enum { C1 = WEFT_COLUMNS, C2 = 2 * WEFT_COLUMNS }; /* components 1 and 2 */

/* b after a, NaN first of all */
#define LARGER(a, b)  ((b) > (a) || (b) != (b) ? (b) : (a))
#define SMALLER(a, b) ((b) < (a) || (b) != (b) ? (b) : (a))

static inline void merge_sum(double *state, const double *other, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        state[i] += other[i];
}

static inline void merge_max(double *state, const double *other, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        state[i] = LARGER(state[i], other[i]);
}

static inline void merge_min(double *state, const double *other, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        state[i] = SMALLER(state[i], other[i]);
}

static inline void merge_prod(double *state, const double *other, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        state[i] *= other[i];
}

static inline void merge_lse(double *state, const double *other, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const double a = state[i], b = other[i], m = LARGER(a, b);
        const double scaled_a = a == m ? state[C1 + i] : state[C1 + i] * exp(a - m);
        const double scaled_b = b == m ? other[C1 + i] : other[C1 + i] * exp(b - m);
        state[i] = m;
        state[C1 + i] = scaled_a + scaled_b;
    }
}

static inline void merge_argmax(double *state, const double *other, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const double a = state[i], b = other[i];
        const bool none = state[C1 + i]<0, better = b> a || (b != b && a == a);
        if (other[C1 + i] < 0 || !(none || better)) continue; /* ties: the earlier one stays */
        state[i] = b;
        state[C1 + i] = other[C1 + i];
    }
}

/* The mean of a part of mean a and one of mean b, which has `share` of all elements. A difference
 * that is no number (means too far apart, or infinite) leaves it to the two weighted ones. */
WEFT_INLINE double joint_mean(double a, double b, double share)
{
    const double delta = b - a;
    return delta - delta == 0 ? a + delta * share : a * (1.0 - share) + b * share;
}

/* An empty part changes nothing, be the other's mean infinite. The square is never taken of delta
 * alone: delta (delta w) overflows only where M2 itself does. */
static inline void merge_moments(double *state, const double *other, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const double na = state[i], nb = other[i], count = na + nb;
        const double a = state[C1 + i], b = other[C1 + i], delta = b - a;
        if (nb == 0) continue;
        state[i] = count;
        state[C1 + i] = na == 0 ? b : joint_mean(a, b, nb / count);
        state[C2 + i] += other[C2 + i] + (na == 0 ? 0 : delta * (delta * (na * nb / count)));
    }
}

#endif
