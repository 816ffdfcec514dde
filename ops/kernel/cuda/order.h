/* order.h: what kernels that order rows are told. */
#ifndef WEFT_CUDA_ORDER_H
#define WEFT_CUDA_ORDER_H

#include <stdint.h>

enum { ORDER_TILE = 1024 }; /* elements that a block orders; a power of two */

/* The first `count` of n elements of each row in their order; element k of row r is inner k + r % inner of block r / inner. Rows of more
 * than one tile are runs that are ordered, [row, n] of keys and places, and merged in pairs from one pair of arrays into the other. Of
 * a run no more than `count` elements are kept. */
typedef struct cuda_ordering {
    const void *x;
    int32_t *to;
    void *keys[2];
    int32_t *places[2];
    int64_t n, count, inner, n_rows, n_runs;
    int64_t run,
        kept; /* merging: elements that a run stands for, and the most of them that are there */
    int descending, from, is_last; /* from: the arrays that are read; is_last: into `to` */
} cuda_ordering;

#endif
