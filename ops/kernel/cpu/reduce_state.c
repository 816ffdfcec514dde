/* reduce_state.c: the mathematics of sum, max, min, prod, lse, argmax and moments; see reduce_state.h.
 *
 * States are doubles, whatever the elements: float runs are summed in float by SIMD, at most
 * WEFT_BLOCK at a time, and runs are added in double. NaN wins a max, a min and an argmax, so that it
 * is seen. source  Chan, Golub, LeVeque 1983 (merging moments); Milakov, Gimelshein 2018 (online
 * softmax)
 */
#include "cpu/reduce_state.h"

#include "cpu/reduce_merge.h"

#include <string.h>

/* ---- a contiguous run into column 0, for element type T -------------------------------------- */

/* Each part of a run: from element `at` on, so many. */
#define EACH_PART(run, at, count)                                                                  \
    for (int64_t at = 0, count; at < (run)->n && (count = part_at(run, at), true);                 \
         at += (run)->part)

static int64_t part_at(const weft_span *run, int64_t at)
{
    return run->n - at < run->part ? run->n - at : run->part;
}

/* Memory is asked for four lines; what is there already costs next to nothing. */
#define ASK(from)                                                                                  \
    for (int line = 0; line < 4; line++)                                                           \
    __builtin_prefetch((const char *)(from) + 64 * line)
/* Into the second-level cache: what is at hand stays in the first. */
#define ASK_EARLY(from)                                                                            \
    for (int line = 0; line < 4; line++)                                                           \
    __builtin_prefetch((const char *)(from) + 64 * line, 0, 2)

/* Sums of floats: four accumulators of 64 bytes, added up in halves. So n alone decides the order, whatever the width of
 * the processor's vectors. add(a, x): the accumulator a with the vector, or the number, x. `before`: done before the vectors
 * from element i on, four of them, are read; `rest`: before those that are left. */
#define SUM_RUN(T, suffix, x, n, add, before, rest)                                                \
    enum { WIDTH = 64 / sizeof(T) };                                                               \
    vector_##suffix a0 = {0}, a1 = {0}, a2 = {0}, a3 = {0};                                        \
    const vector_##suffix *v = (const vector_##suffix *)(const void *)(x);                         \
    int64_t i = 0;                                                                                 \
    for (; i + 4 * WIDTH <= (n); i += 4 * WIDTH, v += 4) {                                         \
        before;                                                                                    \
        a0 = add(a0, v[0]), a1 = add(a1, v[1]);                                                    \
        a2 = add(a2, v[2]), a3 = add(a3, v[3]);                                                    \
    }                                                                                              \
    rest;                                                                                          \
    for (; i + WIDTH <= (n); i += WIDTH, v++)                                                      \
        a0 = add(a0, v[0]);                                                                        \
    union {                                                                                        \
        vector_##suffix all;                                                                       \
        half_##suffix half[2];                                                                     \
    } u = {(a0 + a1) + (a2 + a3)};                                                                 \
    union {                                                                                        \
        half_##suffix all;                                                                         \
        quarter_##suffix half[2];                                                                  \
    } w = {u.half[0] + u.half[1]};                                                                 \
    const quarter_##suffix q = w.half[0] + w.half[1];                                              \
    T sum = 0;                                                                                     \
    for (int k = 0; k < WIDTH / 4; k++)                                                            \
        sum += q[k];                                                                               \
    for (; i < (n); i++)                                                                           \
        sum = add(sum, (x)[i]);
#define ADD(a, x)        ((a) + (x))
#define ADD_SQUARE(a, x) ((a) + ((x)-mean) * ((x)-mean))

#define FLOAT_SUM(T, suffix)                                                                       \
    typedef T __attribute__((vector_size(64), aligned(sizeof(T)), may_alias)) vector_##suffix;     \
    typedef T __attribute__((vector_size(32))) half_##suffix;                                      \
    typedef T __attribute__((vector_size(16))) quarter_##suffix;                                   \
    WEFT_TARGET_CLONES static T sum_##suffix(const T *x, int64_t n, const T *next)                 \
    {                                                                                              \
        SUM_RUN(T, suffix, x, n, ADD, if (next != x) ASK(next + i), (void)0)                       \
        return sum;                                                                                \
    }                                                                                              \
    static void row_sum_##suffix(double *state, const weft_span *run)                              \
    {                                                                                              \
        const T *x = run->x;                                                                       \
        EACH_PART(run, at, n)                                                                      \
        state[0] += (double)sum_##suffix(x + at, n, x + at + run->ahead);                          \
    }
FLOAT_SUM(float, f32)
FLOAT_SUM(double, f64)

WEFT_TARGET_CLONES static int64_t sum_i32(const int32_t *x, int64_t n)
{
    int64_t sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i];
    return sum;
}

static void row_sum_i32(double *state, const weft_span *run)
{
    EACH_PART(run, at, n)
    state[0] += (double)sum_i32((const int32_t *)run->x + at, n);
}

/* Products of floats in double, four at a time. Integers, which wrap around, are not for doubles (reduce_whole.c). */
#define FLOAT_PROD(T, suffix)                                                                      \
    WEFT_TARGET_CLONES static double prod_##suffix(const T *x, int64_t n)                          \
    {                                                                                              \
        double p[4] = {1, 1, 1, 1};                                                                \
        for (; n >= 4; n -= 4, x += 4)                                                             \
            for (int k = 0; k < 4; k++)                                                            \
                p[k] *= (double)x[k];                                                              \
        for (int k = 0; k < n; k++)                                                                \
            p[k] *= (double)x[k];                                                                  \
        return p[0] * p[1] * (p[2] * p[3]);                                                        \
    }                                                                                              \
    static void row_prod_##suffix(double *state, const weft_span *run)                             \
    {                                                                                              \
        EACH_PART(run, at, n)                                                                      \
        state[0] *= prod_##suffix((const T *)run->x + at, n);                                      \
    }
FLOAT_PROD(float, f32)
FLOAT_PROD(double, f64)

#define ROWS(T, suffix, LOW, HIGH)                                                                 \
    WEFT_TARGET_CLONES static T max_##suffix(const T *x, int64_t n)                                \
    {                                                                                              \
        T best = LOW;                                                                              \
        int nan = 0;                                                                               \
        WEFT_SIMD(reduction(max : best) reduction(| : nan)) for (int64_t i = 0; i < n; i++)        \
        {                                                                                          \
            best = x[i] > best ? x[i] : best;                                                      \
            nan |= x[i] != x[i];                                                                   \
        }                                                                                          \
        return nan ? NAN_##suffix : best;                                                          \
    }                                                                                              \
    WEFT_TARGET_CLONES static T min_##suffix(const T *x, int64_t n)                                \
    {                                                                                              \
        T best = HIGH;                                                                             \
        int nan = 0;                                                                               \
        WEFT_SIMD(reduction(min : best) reduction(| : nan)) for (int64_t i = 0; i < n; i++)        \
        {                                                                                          \
            best = x[i] < best ? x[i] : best;                                                      \
            nan |= x[i] != x[i];                                                                   \
        }                                                                                          \
        return nan ? NAN_##suffix : best;                                                          \
    }                                                                                              \
    static void row_max_##suffix(double *state, const weft_span *run)                              \
    {                                                                                              \
        EACH_PART(run, at, n)                                                                      \
        merge_max(state, &(double){(double)max_##suffix((const T *)run->x + at, n)}, 1);           \
    }                                                                                              \
    static void row_min_##suffix(double *state, const weft_span *run)                              \
    {                                                                                              \
        EACH_PART(run, at, n)                                                                      \
        merge_min(state, &(double){(double)min_##suffix((const T *)run->x + at, n)}, 1);           \
    }                                                                                              \
    static void row_argmax_##suffix(double *state, const weft_span *run)                           \
    {                                                                                              \
        EACH_PART(run, at, n)                                                                      \
        {                                                                                          \
            const T *x = (const T *)run->x + at, best = max_##suffix(x, n);                        \
            int64_t i = 0;                                                                         \
            while (i < n - 1 && x[i] != best && (best == best || x[i] == x[i]))                    \
                i++;                                                                               \
            double other[C1 + 1]; /* only these two are read */                                    \
            other[0] = (double)best, other[C1] = (double)(run->index + at + i);                    \
            merge_argmax(state, other, 1);                                                         \
        }                                                                                          \
    }

#define NAN_f32 NAN
#define NAN_f64 (double)NAN
#define NAN_i32 best /* an integer is never NaN */

ROWS(float, f32, -INFINITY, INFINITY)
ROWS(double, f64, (double)-INFINITY, (double)INFINITY)
ROWS(int32_t, i32, INT32_MIN, INT32_MAX)

#define LEAST_f32 0x1p-126
#define LEAST_f64 0x1p-1022
/* lse leaves exp(x - shift), where shift is the maximum so far: nothing overflows, and what is in the state is scaled only
 * where the maximum grows. Where there is an infinite maximum (leave_odd) it is the part's own maximum, and the part is
 * merged; of nothing but -inf 0 is left, so that it stays 0 if others are not. A NaN shows in the sum of exponentials.
 *
 * exp((x - maximum) - log_sum) = exp(x - shift) exp((shift - maximum) - log_sum), a factor that is no number below the least normal one;
 * where shift and maximum are inf, they are the same. */
#define EXP_RUN(name, T, of)                                                                       \
    WEFT_TARGET_CLONES static void name(const T *x, int64_t n, T m, T *y)                          \
    {                                                                                              \
        WEFT_SIMD() for (int64_t i = 0; i < n; i++) y[i] = of(x[i] - m);                           \
    }
/* The largest, where none is NaN; else any of them, or -inf. Quarters side by side, since one comparison with the best waits
 * for the one before it; the best alone is looked for in a vector at the end. */
#define MAX_RUN(T, suffix)                                                                         \
    WEFT_TARGET_CLONES static T max_of_numbers_##suffix(const T *x, int64_t n)                     \
    {                                                                                              \
        const int64_t q = n / 4;                                                                   \
        T best = (T)-INFINITY;                                                                     \
        WEFT_SIMD(reduction(max : best)) for (int64_t i = 0; i < q; i++)                           \
        {                                                                                          \
            const T a = LARGEST(x[i], x[q + i]), b = LARGEST(x[2 * q + i], x[3 * q + i]);          \
            const T c = LARGEST(a, b);                                                             \
            best = c > best ? c : best;                                                            \
        }                                                                                          \
        for (int64_t i = 4 * q; i < n; i++)                                                        \
            best = x[i] > best ? x[i] : best;                                                      \
        return best;                                                                               \
    }
#define LARGEST(a, b) ((a) > (b) ? (a) : (b))

/* y[i] = exp(x[i] - m), and their sum; a tile's are added up while they are in registers. A line that is written is read
 * first, if it is not x's: it is asked for as well. */
#define EXP_SUM_RUN(T, suffix)                                                                     \
    WEFT_INLINE T exp_sum_##suffix(const T *x, int64_t n, T m, T *y, const T *next)                \
    {                                                                                              \
        SUM_RUN(T, suffix, y, n, ADD, if (next != x) ASK(next + i);                                \
                if (y != x) ASK(y + i + WEFT_BLOCK);                                               \
                WEFT_SIMD() for (int k = 0; k < 4 * WIDTH; k++) y[i + k] =                         \
                    weft_exp_low_##suffix(x[i + k] - m),                                           \
                WEFT_SIMD() for (int64_t k = i; k < n; k++) y[k] =                                 \
                    weft_exp_low_##suffix(x[k] - m))                                               \
        return sum;                                                                                \
    }                                                                                              \
    WEFT_TARGET_CLONES static void exp_sums_##suffix(const weft_span *run, const double *shift,    \
                                                     T *y, double *sum)                            \
    {                                                                                              \
        const T *x = run->x;                                                                       \
        EACH_PART(run, at, n)                                                                      \
        *sum++ = (double)exp_sum_##suffix(x + at, n, (T)*shift++, y + at, x + at + run->ahead);    \
    }
#define FLOAT_ROWS(T, suffix)                                                                      \
    EXP_RUN(exp_less_##suffix, T, weft_exp_##suffix)                                               \
    MAX_RUN(T, suffix)                                                                             \
    EXP_SUM_RUN(T, suffix)                                                                         \
    static double count_infinite_##suffix(const T *x, int64_t n)                                   \
    {                                                                                              \
        double count = 0;                                                                          \
        for (int64_t i = 0; i < n; i++)                                                            \
            count += x[i] == (T)INFINITY;                                                          \
        return count;                                                                              \
    }                                                                                              \
    /* A part by itself, where a maximum is infinite or NaN. */                                    \
    static double leave_odd_lse_##suffix(double *state, const T *x, int64_t n, T *y)               \
    {                                                                                              \
        const T m = max_##suffix(x, n);                                                            \
        if (m == (T)-INFINITY) {                                                                   \
            memset(y, 0, (size_t)n * sizeof(T));                                                   \
            return (double)m;                                                                      \
        }                                                                                          \
        const double n_infinite = count_infinite_##suffix(x, n); /* y may be x */                  \
        exp_less_##suffix(x, n, m, y);                                                             \
        const double sum = (double)sum_##suffix(y, n, y);                                          \
        double other[C1 + 1];                                                                      \
        other[0] = (double)m;                                                                      \
        other[C1] = m == (T)INFINITY ? n_infinite : sum;                                           \
        merge_lse(state, other, 1);                                                                \
        return (double)m;                                                                          \
    }                                                                                              \
    /* A part of which `sum` is left; that of a NaN is NaN, and so is all of its row. */           \
    static void add_lse_##suffix(double *state, double sum, double *shift)                         \
    {                                                                                              \
        const double before = state[0];                                                            \
        const bool grows = before != *shift && state[C1] != 0;                                     \
        if (sum != sum || before != before) *shift = (double)NAN;                                  \
        state[C1] = (grows ? state[C1] * exp(before - *shift) : state[C1]) + sum;                  \
        state[0] = *shift;                                                                         \
    }                                                                                              \
    static void leave_alone_lse_##suffix(double *state, const T *x, int64_t n, T *y,               \
                                         double *shift)                                            \
    {                                                                                              \
        const double m = (double)max_of_numbers_##suffix(x, n);                                    \
        double sum;                                                                                \
        *shift = LARGER(state[0], m);                                                              \
        if (*shift - *shift == 0) {                                                                \
            exp_sums_##suffix(&(weft_span){.x = x, .n = n, .part = n}, shift, y, &sum);            \
            add_lse_##suffix(state, sum, shift);                                                   \
        } else {                                                                                   \
            *shift = leave_odd_lse_##suffix(state, x, n, y);                                       \
        }                                                                                          \
    }                                                                                              \
    static void leave_lse_##suffix(double *state, const weft_span *run, void *left, double *shift) \
    {                                                                                              \
        const T *x = run->x;                                                                       \
        T *y = left;                                                                               \
        double most = state[0], sum[WEFT_PARTS];                                                   \
        int p = 0, n_odd = 0;                                                                      \
        EACH_PART(run, at, n)                                                                      \
        {                                                                                          \
            const double m = (double)max_of_numbers_##suffix(x + at, n);                           \
            most = shift[p++] = LARGER(most, m);                                                   \
            n_odd += !(most - most == 0);                                                          \
        }                                                                                          \
        if (n_odd == 0) {                                                                          \
            exp_sums_##suffix(run, shift, y, sum);                                                 \
            for (int k = 0; k < p; k++)                                                            \
                add_lse_##suffix(state, sum[k], &shift[k]);                                        \
            return;                                                                                \
        }                                                                                          \
        p = 0;                                                                                     \
        EACH_PART(run, at, n)                                                                      \
        leave_alone_lse_##suffix(state, x + at, n, y + at, &shift[p++]);                           \
    }                                                                                              \
    static void row_lse_##suffix(double *state, const weft_span *run)                              \
    {                                                                                              \
        const T *x = run->x;                                                                       \
        T left[WEFT_BLOCK];                                                                        \
        double shift;                                                                              \
        EACH_PART(run, at, n)                                                                      \
        leave_lse_##suffix(state,                                                                  \
                           &(weft_span){.x = x + at, .n = n, .part = n, .ahead = run->ahead},      \
                           left, &shift);                                                          \
    }                                                                                              \
    static double factor_lse_##suffix(double shift, const void *maximum, const void *log_sum)      \
    {                                                                                              \
        const double most = (double)*(const T *)maximum;                                           \
        const double apart = shift == most ? 0 : shift - most;                                     \
        const double exact = exp(apart - (double)*(const T *)log_sum);                             \
        return exact < LEAST_##suffix ? 0 : exact;                                                 \
    }                                                                                              \
    WEFT_TARGET_CLONES static void resume_lse_##suffix(int64_t n, void *y, const void *left,       \
                                                       double factor)                              \
    {                                                                                              \
        const T by = (T)factor, *x = left;                                                         \
        T *to = y;                                                                                 \
        for (int64_t i = 0; i < n; i++)                                                            \
            to[i] = x[i] * by;                                                                     \
    }                                                                                              \
    WEFT_TARGET_CLONES static T sum_square_##suffix(const T *x, int64_t n, T mean, const T *next)  \
    {                                                                                              \
        SUM_RUN(T, suffix, x, n, ADD_SQUARE, if (next != x) ASK_EARLY(next + i), (void)0)          \
        return sum;                                                                                \
    }                                                                                              \
    /* Of elements whose sum overflows. */                                                         \
    static double careful_mean_##suffix(const T *x, int64_t n)                                     \
    {                                                                                              \
        double mean = 0;                                                                           \
        for (int64_t i = 0; i < n; i++)                                                            \
            mean += (double)x[i] / (double)n;                                                      \
        return mean;                                                                               \
    }                                                                                              \
    static void row_moments_##suffix(double *state, const weft_span *run)                          \
    {                                                                                              \
        const T *x = run->x;                                                                       \
        double mean[WEFT_PARTS], square[WEFT_PARTS], other[C2 + 1];                                \
        int p = 0;                                                                                 \
        EACH_PART(run, at, n)                                                                      \
        {                                                                                          \
            const double sum = (double)sum_##suffix(x + at, n, x + at);                            \
            mean[p++] = sum - sum == 0 ? sum / (double)n : careful_mean_##suffix(x + at, n);       \
        }                                                                                          \
        p = 0;                                                                                     \
        EACH_PART(run, at, n)                                                                      \
        { /* about the rounded mean; what rounding lost is taken out again */                      \
            const double lost = mean[p] - (double)(T)mean[p];                                      \
            const T sum = sum_square_##suffix(x + at, n, (T)mean[p], x + at + run->ahead);         \
            square[p++] = (double)sum - (double)n * lost * lost;                                   \
        }                                                                                          \
        p = 0;                                                                                     \
        EACH_PART(run, at, n)                                                                      \
        {                                                                                          \
            other[0] = (double)n, other[C1] = mean[p];                                             \
            other[C2] = square[p] < 0 ? 0 : square[p];                                             \
            merge_moments(state, other, 1);                                                        \
            p++;                                                                                   \
        }                                                                                          \
    }

FLOAT_ROWS(float, f32)
FLOAT_ROWS(double, f64)

#define ALL(name)                                                                                  \
    {                                                                                              \
        name##_f32, name##_f64, name##_i32                                                         \
    }
#define FLOATS(name)                                                                               \
    {                                                                                              \
        name##_f32, name##_f64, NULL                                                               \
    }

#define FLOATS_ASK .asks = {[WEFT_F32] = true, [WEFT_F64] = true}

const weft_reducer weft_reducers[WEFT_COMBINES] = {
    [WEFT_SUM] = {.merge = merge_sum, .row = ALL(row_sum), FLOATS_ASK},
    [WEFT_MAX] = {.identity = {(double)-INFINITY}, .merge = merge_max, .row = ALL(row_max)},
    [WEFT_MIN] = {.identity = {(double)INFINITY}, .merge = merge_min, .row = ALL(row_min)},
    [WEFT_LSE] = {.identity = {(double)-INFINITY, 0},
                  .merge = merge_lse,
                  .row = FLOATS(row_lse),
                  FLOATS_ASK,
                  .leave = FLOATS(leave_lse),
                  .factor = FLOATS(factor_lse),
                  .resume = FLOATS(resume_lse)},
    [WEFT_ARGMAX] = {.identity = {(double)-INFINITY, -1},
                     .merge = merge_argmax,
                     .row = ALL(row_argmax)},
    [WEFT_MOMENTS] = {.merge = merge_moments,
                      .row = FLOATS(row_moments),
                      FLOATS_ASK,
                      .asks_late = true},
    [WEFT_PROD] = {.identity = {1}, .merge = merge_prod, .row = FLOATS(row_prod)},
};
