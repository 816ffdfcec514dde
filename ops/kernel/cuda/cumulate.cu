/* cumulate: sums, products and maxima along a dim: a thread goes along a line of it, or a block of one, as the host does, so the numbers
 * are the host's. */
#include "mesh/cuda/kernel_source.h"

#include "nest.h"

#define CUMULATE(name, T, SUM, SAME, FIRST, OP, BOTH)                                              \
    DEVICE void name##_within(const cuda_cumulating *work, int64_t i)                              \
    {                                                                                              \
        const int64_t l = i / work->n_blocks, begin = i % work->n_blocks * work->block;            \
        const int64_t step = work->reverse ? -work->inner : work->inner;                           \
        const int64_t end =                                                                        \
            begin + work->block < work->length ? begin + work->block : work->length;               \
        const int64_t first = work->reverse ? (work->length - 1) * work->inner : 0;                \
        const int64_t line = l / work->inner * work->length * work->inner + l % work->inner;       \
        const T *from = (const T *)GLOBAL(work->x) + line + first + begin * step;                  \
        T *into = (T *)GLOBAL(work->y) + line + first + begin * step;                              \
        SUM sum = FIRST;                                                                           \
        for (int64_t left = end - begin; left > 0; left--, from += step, into += step) {           \
            const SUM next = (SUM)*from;                                                           \
            if (work->exclusive) *into = (T)sum;                                                   \
            sum = OP(sum, next);                                                                   \
            if (!work->exclusive) *into = (T)sum;                                                  \
        }                                                                                          \
        if (work->totals) ((T *)GLOBAL(work->totals))[i] = (T)sum;                                 \
    }                                                                                              \
    DEVICE void name##_between(const cuda_cumulating *work, int64_t line)                          \
    {                                                                                              \
        T *totals = (T *)GLOBAL(work->totals) + line * work->n_blocks;                             \
        SUM sum = FIRST;                                                                           \
        for (int64_t b = 0; b < work->n_blocks; b++) {                                             \
            const SUM next = (SUM)totals[b];                                                       \
            totals[b] = (T)sum;                                                                    \
            sum = OP(sum, next);                                                                   \
        }                                                                                          \
    }                                                                                              \
    DEVICE void name##_on_top(const cuda_cumulating *work, int64_t i)                              \
    {                                                                                              \
        const int64_t at = i / work->inner % work->length;                                         \
        const int64_t b = (work->reverse ? work->length - 1 - at : at) / work->block;              \
        const int64_t line = i / work->inner / work->length * work->inner + i % work->inner;       \
        T *y = (T *)GLOBAL(work->y) + i;                                                           \
        const T before = ((const T *)GLOBAL(work->totals))[line * work->n_blocks + b];             \
        if (b > 0) *y = (T)BOTH((SAME)before, (SAME)*y);                                           \
    }                                                                                              \
    KERNEL(name, cuda_cumulating)                                                                  \
    {                                                                                              \
        const int64_t n = work.phase == CUDA_WITHIN    ? work.n_lines * work.n_blocks              \
                          : work.phase == CUDA_BETWEEN ? work.n_lines                              \
                                                       : work.n_lines * work.length;               \
        for (int64_t i = THREAD; i < n; i += THREADS) {                                            \
            if (work.phase == CUDA_WITHIN) name##_within(&work, i);                                \
            if (work.phase == CUDA_BETWEEN) name##_between(&work, i);                              \
            if (work.phase == CUDA_ON_TOP) name##_on_top(&work, i);                                \
        }                                                                                          \
    }
#include "ops/kernel/cumulate_list.inc"
