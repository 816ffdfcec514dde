/* window: convolutions and pooling, a thread for each element of the result, which goes through what it is made of in one order. */
#include "mesh/cuda/kernel_source.h"

#include "window.h"

#define CONV(name, T, S)                                                                           \
    KERNEL(name, cuda_windowed)                                                                    \
    {                                                                                              \
        T *y = (T *)GLOBAL(work.to);                                                               \
        const T *x = (const T *)GLOBAL(work.from), *w = (const T *)GLOBAL(work.by);                \
        const int last = work.inner.n_dims - 1;                                                    \
        const int64_t run = last >= 0 ? work.inner.count[last] : 1;                                \
        for (int64_t i = THREAD; i < work.n_outer; i += THREADS) {                                 \
            const windowed_place begin = windowed_move(&work.outer, i, windowed_first(&work));     \
            S sum = 0;                                                                             \
            for (int64_t k = 0; k < work.n_inner; k += run) {                                      \
                windowed_place p = windowed_move(&work.inner, k, begin);                           \
                for (int64_t l = 0; l < run; l++) {                                                \
                    int64_t from;                                                                  \
                    if (windowed_finds(&work, &p, &from))                                          \
                        sum += (S)x[from] * (S)w[p.at[WINDOWED_BY]];                               \
                    for (int t = WINDOWED_FROM; t < WINDOWED_PLACES && last >= 0; t++)             \
                        p.at[t] += work.inner.stride[t][last];                                     \
                }                                                                                  \
            }                                                                                      \
            y[begin.at[WINDOWED_TO]] = (T)sum;                                                     \
        }                                                                                          \
    }
CONV(conv_f32, float, float)
CONV(conv_f64, double, double)
CONV(conv_i32, int32_t, uint32_t)
CONV(conv_i64, int64_t, uint64_t)

/* The first of the largest, and its tap; a NaN is. */
#define MAX_POOL(name, T, LEAST, IS_MORE)                                                          \
    KERNEL(name, cuda_windowed)                                                                    \
    {                                                                                              \
        T *y = (T *)GLOBAL(work.to);                                                               \
        const T *x = (const T *)GLOBAL(work.from);                                                 \
        int32_t *taps = (int32_t *)GLOBAL(work.taps);                                              \
        for (int64_t i = THREAD; i < work.n_outer; i += THREADS) {                                 \
            const windowed_place begin = windowed_move(&work.outer, i, windowed_first(&work));     \
            T b = (T)(LEAST);                                                                      \
            int32_t which = -1;                                                                    \
            for (int64_t tap = 0; tap < work.n_inner; tap++) {                                     \
                const windowed_place p = windowed_move(&work.inner, tap, begin);                   \
                int64_t from;                                                                      \
                if (!windowed_finds(&work, &p, &from)) continue;                                   \
                const T a = x[from];                                                               \
                if (which < 0 || (IS_MORE)) b = a, which = (int32_t)tap;                           \
            }                                                                                      \
            y[begin.at[WINDOWED_TO]] = b;                                                          \
            taps[begin.at[WINDOWED_TO]] = which;                                                   \
        }                                                                                          \
    }
MAX_POOL(max_pool_f32, float, -INFINITY, (a > b || a != a) && b == b)
MAX_POOL(max_pool_f64, double, -INFINITY, (a > b || a != a) && b == b)
MAX_POOL(max_pool_i32, int32_t, INT32_MIN, a > b)
MAX_POOL(max_pool_i64, int64_t, INT64_MIN, a > b)

/* Each element is the sum of those that it was chosen for, tap by tap. */
#define UNPOOL(name, T, S)                                                                         \
    KERNEL(name, cuda_windowed)                                                                    \
    {                                                                                              \
        T *x = (T *)GLOBAL(work.to);                                                               \
        const T *y = (const T *)GLOBAL(work.from);                                                 \
        const int32_t *taps = (const int32_t *)GLOBAL(work.taps);                                  \
        for (int64_t i = THREAD; i < work.n_outer; i += THREADS) {                                 \
            const windowed_place begin = windowed_move(&work.outer, i, windowed_first(&work));     \
            S sum = 0;                                                                             \
            for (int64_t tap = 0; tap < work.n_inner; tap++) {                                     \
                const windowed_place p = windowed_move(&work.inner, tap, begin);                   \
                int64_t from;                                                                      \
                if (windowed_finds(&work, &p, &from) && taps[from] == tap) sum += (S)y[from];      \
            }                                                                                      \
            x[begin.at[WINDOWED_TO]] = (T)sum;                                                     \
        }                                                                                          \
    }
UNPOOL(unpool_f32, float, float)
UNPOOL(unpool_f64, double, double)
UNPOOL(unpool_i32, int32_t, uint32_t)
UNPOOL(unpool_i64, int64_t, uint64_t)

/* The element at the tap that is named; any dtype, by its bytes. */
#define POOL_PICK(name, T)                                                                         \
    KERNEL(name, cuda_windowed)                                                                    \
    {                                                                                              \
        T *y = (T *)GLOBAL(work.to);                                                               \
        const T *x = (const T *)GLOBAL(work.from);                                                 \
        const int32_t *taps = (const int32_t *)GLOBAL(work.taps);                                  \
        for (int64_t i = THREAD; i < work.n_outer; i += THREADS) {                                 \
            const windowed_place begin = windowed_move(&work.outer, i, windowed_first(&work));     \
            const int64_t to = begin.at[WINDOWED_TO], tap = taps[to];                              \
            int64_t from = 0;                                                                      \
            int is_there = tap >= 0 && tap < work.n_inner;                                         \
            if (is_there) {                                                                        \
                const windowed_place p = windowed_move(&work.inner, tap, begin);                   \
                is_there = windowed_finds(&work, &p, &from);                                       \
            }                                                                                      \
            y[to] = is_there ? x[from] : (T)0;                                                     \
        }                                                                                          \
    }
POOL_PICK(pool_pick_1, uint8_t)
POOL_PICK(pool_pick_2, uint16_t)
POOL_PICK(pool_pick_4, uint32_t)
POOL_PICK(pool_pick_8, uint64_t)
