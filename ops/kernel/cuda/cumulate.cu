/* cumulate: sums, products and maxima along a dim: a thread goes along a line of it, as the host does, so the numbers are the host's. */
#include "mesh/cuda/kernel_source.h"

#include "nest.h"

#define CUMULATE(name, T, SUM, FIRST, OP)                                                          \
    KERNEL(name, cuda_cumulating)                                                                  \
    {                                                                                              \
        const T *x = (const T *)GLOBAL(work.x);                                                    \
        T *y = (T *)GLOBAL(work.y);                                                                \
        const int64_t step = work.reverse ? -work.inner : work.inner;                              \
        const int64_t begin = work.reverse ? (work.length - 1) * work.inner : 0;                   \
        for (int64_t i = THREAD; i < work.n_lines; i += THREADS) {                                 \
            const int64_t line = i / work.inner * work.length * work.inner + i % work.inner;       \
            const T *from = x + line + begin;                                                      \
            T *into = y + line + begin;                                                            \
            SUM sum = FIRST;                                                                       \
            for (int64_t left = work.length; left > 0; left--, from += step, into += step) {       \
                const SUM next = (SUM)*from;                                                       \
                if (work.exclusive) *into = (T)sum;                                                \
                sum = OP(sum, next);                                                               \
                if (!work.exclusive) *into = (T)sum;                                               \
            }                                                                                      \
        }                                                                                          \
    }
#define ADDED(a, b) ((a) + (b))
#define TIMES(a, b) ((a) * (b))
/* A NaN stays the largest. */
#define LARGER(a, b) ((b) > (a) || (b) != (b) ? (b) : (a))
CUMULATE(cumsum_f32, float, double, 0, ADDED)
CUMULATE(cumsum_f64, double, double, 0, ADDED)
CUMULATE(cumsum_i32, int32_t, uint32_t, 0, ADDED)
CUMULATE(cumsum_i64, int64_t, uint64_t, 0, ADDED)
CUMULATE(cumprod_f32, float, double, 1, TIMES)
CUMULATE(cumprod_f64, double, double, 1, TIMES)
CUMULATE(cumprod_i32, int32_t, uint32_t, 1, TIMES)
CUMULATE(cumprod_i64, int64_t, uint64_t, 1, TIMES)
CUMULATE(cummax_f32, float, float, -INFINITY, LARGER)
CUMULATE(cummax_f64, double, double, -INFINITY, LARGER)
CUMULATE(cummax_i32, int32_t, int32_t, INT32_MIN, LARGER)
CUMULATE(cummax_i64, int64_t, int64_t, INT64_MIN, LARGER)
