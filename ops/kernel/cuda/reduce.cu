/* reduce: a block for each element of the result, whose threads reduce the row (rows.h); and states made into values. */
#include "rows.h"

#include "nest.h"

#define REDUCTION(kind, suffix, T, width)                                                          \
    KERNEL(reduce_##kind##_##suffix, cuda_reduction)                                               \
    {                                                                                              \
        T *out = (T *)GLOBAL(work.out);                                                            \
        const T *in = (const T *)GLOBAL(work.in);                                                  \
        for (int64_t o = BLOCK; o < work.n_out; o += BLOCKS) {                                     \
            const offsets at = offsets_of(&work.outer, o);                                         \
            row_##kind##_##suffix a = row_begin_##kind##_##suffix();                               \
            for (int64_t k = IN_BLOCK; k < work.n_inner; k += BLOCK_THREADS) {                     \
                const offsets in_row = offsets_of(&work.inner, k);                                 \
                a = row_enter_##kind##_##suffix(a, in[at.at[1] + in_row.at[1]],                    \
                                                work.first_index + in_row.at[2]);                  \
            }                                                                                      \
            const numbers_##suffix all = row_meet_##kind##_##suffix(a);                            \
            for (int w = 0; IN_BLOCK == 0 && w < (width); w++)                                     \
                out[at.at[0] * (width) + w] = all.number[w];                                       \
        }                                                                                          \
    }
#define REDUCE(kind, suffix, T, S, identity, expression) REDUCTION(kind, suffix, T, 1)
#define REDUCE_STATES                                    REDUCTION
#include "reduce_list.inc"

/* y and, where there are two, z, of states of `width` numbers. */
#define FINISH(name, T, R, width, finish_0, finish_1)                                              \
    KERNEL(name, cuda_finishing)                                                                   \
    {                                                                                              \
        R *y = (R *)GLOBAL(work.out[0]), *z = (R *)GLOBAL(work.out[1]);                            \
        const T *states = (const T *)GLOBAL(work.state);                                           \
        for (int64_t i = THREAD; i < work.n; i += THREADS) {                                       \
            const offsets at = offsets_of(&work.nest, i);                                          \
            y[at.at[1]] = finish_0(states + at.at[0] * (width), work.number);                      \
            if (z != NULL) z[at.at[2]] = finish_1(states + at.at[0] * (width), work.number);       \
        }                                                                                          \
    }
FINISH(finish_of_lse_f32, float, float, 2, finish_maximum_f32, finish_log_sum_f32)
FINISH(finish_of_lse_f64, double, double, 2, finish_maximum_f64, finish_log_sum_f64)
FINISH(finish_of_argmax_f32, float, int32_t, 2, finish_argmax_f32, finish_argmax_f32)
FINISH(finish_of_argmax_f64, double, int32_t, 2, finish_argmax_f64, finish_argmax_f64)
FINISH(finish_of_argmax_i32, int32_t, int32_t, 2, finish_argmax_i32, finish_argmax_i32)
FINISH(finish_of_moments_f32, float, float, 3, finish_mean_f32, finish_scale_f32)
FINISH(finish_of_moments_f64, double, double, 3, finish_mean_f64, finish_scale_f64)
