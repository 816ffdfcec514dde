/* linear.h: what kernels of small matrices are told. */
#ifndef WEFT_CUDA_LINEAR_H
#define WEFT_CUDA_LINEAR_H

#include <stdint.h>

/* [batch] of matrices a [n, n], and of b and x [n, columns], which is what comes out; row-major. work: a's, to be eliminated in. */
typedef struct cuda_squares {
    const void *a, *b;
    void *x, *work;
    int64_t batch, n, columns;
    int is_upper;
} cuda_squares;

#endif
