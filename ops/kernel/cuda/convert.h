/* convert.h: numbers for libraries that compute in bf16, and what the kernels of convert.cu are told. */
#ifndef WEFT_CUDA_CONVERT_H
#define WEFT_CUDA_CONVERT_H

#include <stdint.h>

/* n numbers in another dtype. */
typedef struct cuda_conversion {
    void *to;
    const void *from;
    int64_t n;
} cuda_conversion;

#endif
