/* reduce_columns.c: rows that enter many states side by side, a group of them at once; see reduce_state.h.
 *
 * A state is read and written once for a group. Before that, a largest element and its place are found in the elements' own
 * numbers, and the exponentials of lse are taken below a maximum that the group has in common. Infinite maxima and NaN enter
 * element by element. Groups begin at the first row, so a result's bits depend on that alone. To ask for the next group's rows
 * gained nothing, nor did a mean and squares of a group for moments.
 */
#include "cpu/reduce_merge.h"

#include <string.h>

enum { GROUP = 8, LONG_GROUP = 16 };

/* `step` of each element of the rows, four rows at a time: what it goes on with is loaded and stored once for four. */
#define BY_FOUR(rows, n, load, step, store)                                                        \
    {                                                                                              \
        int64_t r_ = 0;                                                                            \
        for (; r_ + 4 <= (rows); r_ += 4)                                                          \
            for (int64_t i = 0; i < (n); i++) {                                                    \
                load;                                                                              \
                step(r_) step(r_ + 1) step(r_ + 2) step(r_ + 3) store;                             \
            }                                                                                      \
        for (; r_ < (rows); r_++)                                                                  \
            for (int64_t i = 0; i < (n); i++) {                                                    \
                load;                                                                              \
                step(r_) store;                                                                    \
            }                                                                                      \
    }

/* ---- element by element ---------------------------------------------------------------------- */

#define LOAD_A  double a = state[i];
#define LOAD_B  LOAD_A double b = state[C1 + i];
#define LOAD_C  LOAD_B double c = state[C2 + i];
#define STORE_A state[i] = a;
#define STORE_B STORE_A state[C1 + i] = b;
#define STORE_C STORE_B state[C2 + i] = c;
#define ENTER(r, step)                                                                             \
    {                                                                                              \
        const double v = (double)x[(r)*stride + i];                                                \
        step;                                                                                      \
    }
#define EIGHT(step)                                                                                \
    ENTER(0, step)                                                                                 \
    ENTER(1, step)                                                                                 \
    ENTER(2, step) ENTER(3, step) ENTER(4, step) ENTER(5, step) ENTER(6, step) ENTER(7, step)
/* Rows in order: a column's sum is the same, however many enter at once. */
#define COLUMN(name, T, of, step)                                                                  \
    WEFT_TARGET_CLONES static void name(double *restrict state, const void *data, int64_t stride,  \
                                        int64_t rows, int64_t n, int64_t index)                    \
    {                                                                                              \
        const T *restrict x = data;                                                                \
        (void)index;                                                                               \
        for (; rows >= GROUP; rows -= GROUP, x += GROUP * stride) {                                \
            for (int64_t i = 0; i < n; i++) {                                                      \
                LOAD_##of EIGHT(step) STORE_##of                                                   \
            }                                                                                      \
        }                                                                                          \
        for (; rows > 0; rows--, x += stride)                                                      \
            for (int64_t i = 0; i < n; i++) {                                                      \
                LOAD_##of ENTER(0, step) STORE_##of                                                \
            }                                                                                      \
    }

/* ---- the largest and the smallest, and where ------------------------------------------------- */

/* Does one of both not equal itself? An integer always does. */
#define ODD_f32(a, b) __builtin_isunordered(a, b)
#define ODD_f64(a, b) __builtin_isunordered(a, b)
#define ODD_i32(a, b) 0
#define NAN_f32       (float)NAN
#define NAN_f64       (double)NAN
#define NAN_i32       0

/* Of two elements, the first where they are equal. */
#define BETTER(a, b, is_better) ((b)is_better(a) ? (b) : (a))
/* Exact in T: rows enter the best so far, eight at once, and that enters the state in the end. A NaN stays. */
#define EXTREME(name, T, suffix, is_better, JOIN)                                                  \
    WEFT_TARGET_CLONES static void name(double *restrict state, const void *data, int64_t stride,  \
                                        int64_t rows, int64_t n, int64_t index)                    \
    {                                                                                              \
        const T *restrict x = data;                                                                \
        T best[WEFT_COLUMNS];                                                                      \
        (void)index;                                                                               \
        if (rows == 0) return;                                                                     \
        memcpy(best, x, (size_t)n * sizeof *best);                                                 \
        for (; rows >= GROUP; rows -= GROUP, x += GROUP * stride) {                                \
            for (int64_t i = 0; i < n; i++) {                                                      \
                const T *at = x + i;                                                               \
                const T a = at[0], b = at[stride], c = at[2 * stride], d = at[3 * stride],         \
                        e = at[4 * stride], f = at[5 * stride], g = at[6 * stride],                \
                        h = at[7 * stride];                                                        \
                const int odd = ODD_##suffix(a, b) | ODD_##suffix(c, d) | ODD_##suffix(e, f) |     \
                                ODD_##suffix(g, h);                                                \
                const T ab = BETTER(a, b, is_better), cd = BETTER(c, d, is_better),                \
                        ef = BETTER(e, f, is_better), gh = BETTER(g, h, is_better),                \
                        ad = BETTER(ab, cd, is_better), eh = BETTER(ef, gh, is_better),            \
                        ah = BETTER(ad, eh, is_better);                                            \
                const T all = BETTER(best[i], ah, is_better);                                      \
                best[i] = odd ? NAN_##suffix : all;                                                \
            }                                                                                      \
        }                                                                                          \
        for (; rows > 0; rows--, x += stride)                                                      \
            for (int64_t i = 0; i < n; i++)                                                        \
                best[i] = JOIN(best[i], x[i]);                                                     \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const double v = (double)best[i], a = state[i];                                        \
            state[i] = JOIN(a, v);                                                                 \
        }                                                                                          \
    }

/* The first of the largest of a group, where NaN is the largest, and then the state. */
#define ARGMAX(T, suffix, W)                                                                       \
    WEFT_TARGET_CLONES static void column_argmax_##suffix(double *restrict state,                  \
                                                          const void *data, int64_t stride,        \
                                                          int64_t rows, int64_t n, int64_t index)  \
    {                                                                                              \
        const T *restrict x = data;                                                                \
        T best[WEFT_COLUMNS];                                                                      \
        W place[WEFT_COLUMNS];                                                                     \
        for (int64_t some; rows > 0; rows -= some, x += some * stride, index += some) {            \
            some = rows < LONG_GROUP ? rows : LONG_GROUP;                                          \
            for (int64_t i = 0; i < n; i++)                                                        \
                best[i] = x[i], place[i] = 0;                                                      \
            for (W r = 1; r < (W)some; r++)                                                        \
                for (int64_t i = 0; i < n; i++) {                                                  \
                    const T v = x[r * stride + i], b = best[i];                                    \
                    const int better = !(v <= b) & (b == b); /* larger, or the first NaN */        \
                    best[i] = better ? v : b;                                                      \
                    place[i] = better ? r : place[i];                                              \
                }                                                                                  \
            for (int64_t i = 0; i < n; i++) {                                                      \
                const double v = (double)best[i], a = state[i], b = state[C1 + i];                 \
                const int better = (v > a) | (b < 0) | ((v != v) & (a == a));                      \
                state[i] = better ? v : a;                                                         \
                state[C1 + i] = better ? (double)(index + place[i]) : b;                           \
            }                                                                                      \
        }                                                                                          \
    }

/* ---- lse ------------------------------------------------------------------------- */

#define MOST(r, T)                                                                                 \
    {                                                                                              \
        const T v = x[(r)*stride + i];                                                             \
        m = v > m ? v : m;                                                                         \
        is_nan |= v != v;                                                                          \
    }
#define MOST_f32(r) MOST(r, float)
#define MOST_f64(r) MOST(r, double)
#define EXP_f32(r)  all += weft_exp_low_f32(x[(r)*stride + i] - m);
#define EXP_f64(r)  all += weft_exp_low_f64(x[(r)*stride + i] - m);

/* The group's largest elements and those of the state, in `most`; whether all are finite numbers. */
#define GROUP_LSE(T, suffix)                                                                       \
    WEFT_TARGET_CLONES static bool group_most_##suffix(const double *state, const T *restrict x,   \
                                                       int64_t stride, int64_t rows, int64_t n,    \
                                                       T *restrict most)                           \
    {                                                                                              \
        int odd = 0, nan[WEFT_COLUMNS];                                                            \
        for (int64_t i = 0; i < n; i++)                                                            \
            most[i] = (T)state[i], nan[i] = 0;                                                     \
        BY_FOUR(rows, n, T m = most[i];                                                            \
                int is_nan = nan[i], MOST_##suffix, (most[i] = m, nan[i] = is_nan))                \
        for (int64_t i = 0; i < n; i++)                                                            \
            odd |= nan[i] | !(most[i] - most[i] == 0);                                             \
        return !odd;                                                                               \
    }                                                                                              \
    WEFT_TARGET_CLONES static void group_lse_##suffix(double *restrict state, const T *restrict x, \
                                                      int64_t stride, int64_t rows, int64_t n,     \
                                                      const T *restrict most)                      \
    {                                                                                              \
        T sum[WEFT_COLUMNS];                                                                       \
        for (int64_t i = 0; i < n; i++)                                                            \
            sum[i] = 0;                                                                            \
        BY_FOUR(rows, n, const T m = most[i]; T all = sum[i], EXP_##suffix, (sum[i] = all))        \
        WEFT_SIMD() for (int64_t i = 0; i < n; i++)                                                \
        {                                                                                          \
            const T grown = weft_exp_low_##suffix((T)state[i] - most[i]);                          \
            state[C1 + i] = state[C1 + i] * (double)grown + (double)sum[i];                        \
            state[i] = (double)most[i];                                                            \
        }                                                                                          \
    }                                                                                              \
    /* One exp per element: of minus the distance between the element and the running maximum. */  \
    COLUMN(each_lse_##suffix, T, B, const double d = v == a ? 0.0 : v - a;                         \
           const double e = (double)weft_exp_##suffix((T)-fabs(d)); a = v > a ? v : a;             \
           b = d > 0                    ? b * e + 1.0                                              \
               : v == -(double)INFINITY ? b                                                        \
                                        : b + e)                                                   \
    static void column_lse_##suffix(double *state, const void *data, int64_t stride, int64_t rows, \
                                    int64_t n, int64_t index)                                      \
    {                                                                                              \
        const T *x = data;                                                                         \
        T most[WEFT_COLUMNS];                                                                      \
        for (int64_t some; rows > 0; rows -= some, x += some * stride) {                           \
            some = rows < LONG_GROUP ? rows : LONG_GROUP;                                          \
            if (group_most_##suffix(state, x, stride, some, n, most))                              \
                group_lse_##suffix(state, x, stride, some, n, most);                               \
            else                                                                                   \
                each_lse_##suffix(state, x, stride, some, n, index);                               \
        }                                                                                          \
    }

/* ---- all of them ----------------------------------------------------------------------------- */

#define COLUMNS(T, suffix, W)                                                                      \
    COLUMN(column_sum_##suffix, T, A, a += v)                                                      \
    EXTREME(column_max_##suffix, T, suffix, >, LARGER)                                             \
    EXTREME(column_min_##suffix, T, suffix, <, SMALLER)                                            \
    ARGMAX(T, suffix, W)
#define FLOAT_COLUMNS(T, suffix)                                                                   \
    COLUMN(column_prod_##suffix, T, A, a *= v)                                                     \
    GROUP_LSE(T, suffix)                                                                           \
    COLUMN(column_moments_##suffix, T, C, const double count = a + 1.0; const double old = b;      \
           a = count; b = joint_mean(old, v, 1.0 / count); c += (v - old) * (v - b))

COLUMNS(float, f32, int32_t)
COLUMNS(double, f64, int64_t)
COLUMNS(int32_t, i32, int32_t)
FLOAT_COLUMNS(float, f32)
FLOAT_COLUMNS(double, f64)

#define ALL(name)                                                                                  \
    {                                                                                              \
        [WEFT_F32] = name##_f32, [WEFT_F64] = name##_f64, [WEFT_I32] = name##_i32                  \
    }
#define FLOATS(name)                                                                               \
    {                                                                                              \
        [WEFT_F32] = name##_f32, [WEFT_F64] = name##_f64                                           \
    }

const weft_column weft_columns[WEFT_COMBINES][WEFT_DTYPES] = {
    [WEFT_SUM] = ALL(column_sum),
    [WEFT_MAX] = ALL(column_max),
    [WEFT_MIN] = ALL(column_min),
    [WEFT_PROD] = FLOATS(column_prod),
    [WEFT_LSE] = FLOATS(column_lse),
    [WEFT_ARGMAX] = ALL(column_argmax),
    [WEFT_MOMENTS] = FLOATS(column_moments),
};
