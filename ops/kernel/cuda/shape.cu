/* shape: elements moved one by one, by strides that may be negative. */
#include "mesh/cuda/kernel_source.h"

#include "nest.h"

#define MOVE(name, T)                                                                              \
    KERNEL(name, cuda_moving)                                                                      \
    {                                                                                              \
        T *to = (T *)GLOBAL(work.to);                                                              \
        const T *from = (const T *)GLOBAL(work.from);                                              \
        for (int64_t i = THREAD; i < work.n; i += THREADS) {                                       \
            const offsets at = offsets_of(&work.nest, i);                                          \
            to[at.at[0]] = from[at.at[1]];                                                         \
        }                                                                                          \
    }
MOVE(move_1, uint8_t)
MOVE(move_2, uint16_t)
MOVE(move_4, uint32_t)
MOVE(move_8, uint64_t)
