/* convert: numbers between f32 and bf16, for libraries that compute with the latter. */
#include "mesh/cuda/kernel_source.h"

#include "convert.h"
#include "weft/extend/half.h"

KERNEL(bf16_of_f32, cuda_conversion)
{
    uint16_t *to = (uint16_t *)GLOBAL(work.to);
    const float *from = (const float *)GLOBAL(work.from);
    for (int64_t i = THREAD; i < work.n; i += THREADS)
        to[i] = weft_bf16_of_f32(from[i]);
}

KERNEL(f32_of_bf16, cuda_conversion)
{
    float *to = (float *)GLOBAL(work.to);
    const uint16_t *from = (const uint16_t *)GLOBAL(work.from);
    for (int64_t i = THREAD; i < work.n; i += THREADS)
        to[i] = weft_f32_of_bf16(from[i]);
}
