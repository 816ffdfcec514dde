/* box.h: what the kernels of boxes are told (box.cu), by boxes.c. */
#ifndef WEFT_CUDA_BOX_H
#define WEFT_CUDA_BOX_H

#include <stdint.h>

enum { CUDA_BOX_LOOPS = 8 }; /* WEFT_BOX_LOOPS */

/* n things that lie in two boxes, as weft_box_copy says it, in things: elements or states. */
typedef struct cuda_box {
    void *to;
    const void *from;
    int64_t n, from_at, to_at, run;
    int n_loops;
    int64_t count[CUDA_BOX_LOOPS], from_stride[CUDA_BOX_LOOPS], to_stride[CUDA_BOX_LOOPS];
} cuda_box;

#endif
