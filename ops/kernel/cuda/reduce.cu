/* reduce: a block for each element of the result. Its threads go through the row side by side, then pairs of them meet, halving
 * their number: so the length of the row alone decides in which order it is added up. */
#include "mesh/cuda/kernel_source.h"

#include "nest.h"

#include "collectives/combine_states.h"

#define REDUCE(kind, suffix, T, S, identity, expression)                                           \
    KERNEL(reduce_##kind##_##suffix, cuda_reduction)                                               \
    {                                                                                              \
        SHARED S met[KERNEL_THREADS];                                                              \
        T *out = (T *)GLOBAL(work.out);                                                            \
        const T *in = (const T *)GLOBAL(work.in);                                                  \
        for (int64_t o = BLOCK; o < work.n_out; o += BLOCKS) {                                     \
            const offsets at = offsets_of(&work.outer, o);                                         \
            S a = (S)(identity);                                                                   \
            for (int64_t k = IN_BLOCK; k < work.n_inner; k += BLOCK_THREADS) {                     \
                const S x = (S)in[at.at[1] + offsets_of(&work.inner, k).at[1]];                    \
                a = (S)(expression);                                                               \
            }                                                                                      \
            met[IN_BLOCK] = a;                                                                     \
            for (int half = BLOCK_THREADS / 2; half > 0; half /= 2) {                              \
                SYNC();                                                                            \
                if (IN_BLOCK >= half) continue;                                                    \
                const S x = met[IN_BLOCK + half];                                                  \
                a = met[IN_BLOCK];                                                                 \
                met[IN_BLOCK] = (S)(expression);                                                   \
            }                                                                                      \
            if (IN_BLOCK == 0) out[at.at[0]] = (T)met[0];                                          \
            SYNC();                                                                                \
        }                                                                                          \
    }

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

#define REDUCE_STATES(kind, suffix, T, width)                                                      \
    KERNEL(reduce_##kind##_##suffix, cuda_reduction)                                               \
    {                                                                                              \
        SHARED state met[KERNEL_THREADS];                                                          \
        T *out = (T *)GLOBAL(work.out);                                                            \
        const T *in = (const T *)GLOBAL(work.in);                                                  \
        for (int64_t o = BLOCK; o < work.n_out; o += BLOCKS) {                                     \
            const offsets at = offsets_of(&work.outer, o);                                         \
            state a;                                                                               \
            weft_##kind##_empty_f64(a.number);                                                     \
            for (int64_t k = IN_BLOCK; k < work.n_inner; k += BLOCK_THREADS) {                     \
                const offsets in_row = offsets_of(&work.inner, k);                                 \
                const state x =                                                                    \
                    kind##_of((double)in[at.at[1] + in_row.at[1]], work.first_index + in_row.at[2]); \
                weft_##kind##_state_f64(a.number, a.number, x.number);                             \
            }                                                                                      \
            met[IN_BLOCK] = a;                                                                     \
            for (int half = BLOCK_THREADS / 2; half > 0; half /= 2) {                              \
                SYNC();                                                                            \
                if (IN_BLOCK >= half) continue;                                                    \
                weft_##kind##_state_f64(met[IN_BLOCK].number, met[IN_BLOCK].number,                \
                                        met[IN_BLOCK + half].number);                              \
            }                                                                                      \
            if (IN_BLOCK == 0) {                                                                   \
                T *to = out + at.at[0] * (width);                                                  \
                STORE_##kind##_##suffix(to, met[0]);                                               \
            }                                                                                      \
            SYNC();                                                                                \
        }                                                                                          \
    }
#include "reduce_list.inc"

/* ---- states become values --------------------------------------------------------------------- */

#define FINISH(name, R, expression_0, expression_1)                                                \
    KERNEL(name, cuda_finishing)                                                                      \
    {                                                                                              \
        R *y = (R *)GLOBAL(work.out[0]), *z = (R *)GLOBAL(work.out[1]);                            \
        const void *states = GLOBAL(work.state);                                                   \
        for (int64_t i = THREAD; i < work.n; i += THREADS) {                                       \
            const offsets at = offsets_of(&work.nest, i);                                          \
            const int64_t s = at.at[0];                                                            \
            y[at.at[1]] = (R)(expression_0);                                                       \
            if (z != NULL) z[at.at[2]] = (R)(expression_1);                                        \
        }                                                                                          \
    }
#define OF(T, width, n) ((double)((const T *)states)[(width)*s + (n)])
FINISH(finish_lse_f32, float, OF(float, 2, 0) + log(OF(float, 2, 1)), 0)
FINISH(finish_lse_f64, double, OF(double, 2, 0) + log(OF(double, 2, 1)), 0)
FINISH(finish_argmax_f32, int32_t, weft_argmax_index_f32((const float *)states + 2 * s), 0)
FINISH(finish_argmax_f64, int32_t, weft_argmax_index_f64((const double *)states + 2 * s), 0)
FINISH(finish_argmax_i32, int32_t, weft_argmax_index_i32((const int32_t *)states + 2 * s), 0)
FINISH(finish_moments_f32, float, OF(float, 3, 1),
       1.0 / sqrt(OF(float, 3, 2) / OF(float, 3, 0) + work.number))
FINISH(finish_moments_f64, double, OF(double, 3, 1),
       1.0 / sqrt(OF(double, 3, 2) / OF(double, 3, 0) + work.number))
