/* rows.h: a row reduced by the threads of a block: each goes through elements of its own (begin, enter), then pairs of them meet,
 * halving their number, and all have the result. So the number of threads alone decides in which order it is added up.
 *
 *     row_sum_f32 a = row_begin_sum_f32();
 *     for (int64_t k = IN_BLOCK; k < n; k += BLOCK_THREADS) a = row_enter_sum_f32(a, x[k], k);
 *     const numbers_f32 sum = row_meet_sum_f32(a);        all threads of the block call it
 *
 * And states made into values. For reduce.cu and for loops (loop_source.h).
 */
#ifndef WEFT_CUDA_ROWS_H
#define WEFT_CUDA_ROWS_H

#include "mesh/cuda/kernel_source.h"

#include "collectives/combine_states.h"

/* A value, or the numbers of a state, as they are stored. */
typedef struct numbers_f32 {
    float number[3];
} numbers_f32;
typedef struct numbers_f64 {
    double number[3];
} numbers_f64;
typedef struct numbers_i32 {
    int32_t number[3];
} numbers_i32;
typedef struct numbers_i64 {
    int64_t number[3];
} numbers_i64;

/* While it is added up. */
typedef struct state {
    double number[3];
} state;

/* Of one element; and as it is stored. */
DEVICE state lse_of(double x, int64_t index)
{
    const state s = {{x, 1, 0}};
    (void)index;
    return s;
}
DEVICE state argmax_of(double x, int64_t index)
{
    const state s = {{x, (double)index, 0}};
    return s;
}
DEVICE state moments_of(double x, int64_t index)
{
    const state s = {{1, x, 0}};
    (void)index;
    return s;
}

#define STORE_PLAIN(T, to, s, width)                                                               \
    for (int w = 0; w < (width); w++)                                                              \
    (to)[w] = (T)(s).number[w]
#define STORE_lse_f32(to, s)     STORE_PLAIN(float, to, s, 2)
#define STORE_lse_f64(to, s)     STORE_PLAIN(double, to, s, 2)
#define STORE_moments_f32(to, s) STORE_PLAIN(float, to, s, 3)
#define STORE_moments_f64(to, s) STORE_PLAIN(double, to, s, 3)
#define STORE_argmax_f64(to, s)  STORE_PLAIN(double, to, s, 2)
#define STORE_argmax_f32(to, s)                                                                    \
    (to)[0] = (s).number[1] < 0 ? -INFINITY : (float)(s).number[0],                                \
    weft_argmax_put_f32(to, (int32_t)(s).number[1])
#define STORE_argmax_i32(to, s)                                                                    \
    (to)[0] = (s).number[1] < 0 ? INT32_MIN : (int32_t)(s).number[0],                              \
    weft_argmax_put_i32(to, (int32_t)(s).number[1])

#define REDUCE(kind, suffix, T, S, identity, expression)                                           \
    typedef S row_##kind##_##suffix;                                                               \
    DEVICE S row_begin_##kind##_##suffix(void)                                                     \
    {                                                                                              \
        return (S)(identity);                                                                      \
    }                                                                                              \
    DEVICE S row_enter_##kind##_##suffix(S a, T element, int64_t index)                            \
    {                                                                                              \
        const S x = (S)element;                                                                    \
        (void)index;                                                                               \
        return (S)(expression);                                                                    \
    }                                                                                              \
    DEVICE numbers_##suffix row_meet_##kind##_##suffix(S a)                                        \
    {                                                                                              \
        SHARED S met[KERNEL_THREADS];                                                              \
        met[IN_BLOCK] = a;                                                                         \
        for (int half = BLOCK_THREADS / 2; half > 0; half /= 2) {                                  \
            SYNC();                                                                                \
            if (IN_BLOCK >= half) continue;                                                        \
            const S x = met[IN_BLOCK + half];                                                      \
            a = met[IN_BLOCK];                                                                     \
            met[IN_BLOCK] = (S)(expression);                                                       \
        }                                                                                          \
        SYNC();                                                                                    \
        const numbers_##suffix all = {{(T)met[0]}};                                                \
        SYNC();                                                                                    \
        return all;                                                                                \
    }

#define REDUCE_STATES(kind, suffix, T, width)                                                      \
    typedef state row_##kind##_##suffix;                                                           \
    DEVICE state row_begin_##kind##_##suffix(void)                                                 \
    {                                                                                              \
        state a = {{0, 0, 0}};                                                                     \
        weft_##kind##_empty_f64(a.number);                                                         \
        return a;                                                                                  \
    }                                                                                              \
    DEVICE state row_enter_##kind##_##suffix(state a, T element, int64_t index)                    \
    {                                                                                              \
        const state x = kind##_of((double)element, index);                                         \
        weft_##kind##_state_f64(a.number, a.number, x.number);                                     \
        return a;                                                                                  \
    }                                                                                              \
    DEVICE numbers_##suffix row_meet_##kind##_##suffix(state a)                                    \
    {                                                                                              \
        SHARED state met[KERNEL_THREADS];                                                          \
        numbers_##suffix all = {{0}};                                                              \
        met[IN_BLOCK] = a;                                                                         \
        for (int half = BLOCK_THREADS / 2; half > 0; half /= 2) {                                  \
            SYNC();                                                                                \
            if (IN_BLOCK >= half) continue;                                                        \
            weft_##kind##_state_f64(met[IN_BLOCK].number, met[IN_BLOCK].number,                    \
                                    met[IN_BLOCK + half].number);                                  \
        }                                                                                          \
        SYNC();                                                                                    \
        STORE_##kind##_##suffix(all.number, met[0]);                                               \
        SYNC();                                                                                    \
        return all;                                                                                \
    }
#include "reduce_list.inc"
#undef REDUCE
#undef REDUCE_STATES

/* ---- states become values --------------------------------------------------------------------- */

#define FINISHES(T, suffix)                                                                        \
    DEVICE T finish_maximum_##suffix(const T *s, double number)                                    \
    {                                                                                              \
        (void)number;                                                                              \
        return s[0];                                                                               \
    }                                                                                              \
    DEVICE T finish_log_sum_##suffix(const T *s, double number)                                    \
    {                                                                                              \
        (void)number;                                                                              \
        return (T)log((double)s[1]);                                                               \
    }                                                                                              \
    DEVICE T finish_mean_##suffix(const T *s, double number)                                       \
    {                                                                                              \
        (void)number;                                                                              \
        return s[1];                                                                               \
    }                                                                                              \
    DEVICE T finish_scale_##suffix(const T *s, double number)                                      \
    {                                                                                              \
        return (T)(1.0 / sqrt((double)s[2] / (double)s[0] + number));                              \
    }
FINISHES(float, f32)
FINISHES(double, f64)

#define FINISH_ARGMAX(T, suffix)                                                                   \
    DEVICE int32_t finish_argmax_##suffix(const T *s, double number)                               \
    {                                                                                              \
        (void)number;                                                                              \
        return weft_argmax_index_##suffix(s);                                                      \
    }
FINISH_ARGMAX(float, f32)
FINISH_ARGMAX(double, f64)
FINISH_ARGMAX(int32_t, i32)

#endif
