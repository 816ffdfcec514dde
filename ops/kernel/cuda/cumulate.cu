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
#include "ops/kernel/cumulate_list.inc"
