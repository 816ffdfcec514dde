/* pick_product.h: rows times the matrices that their ids choose, as the kernels are told it. */
#ifndef WEFT_CUDA_PICK_PRODUCT_H
#define WEFT_CUDA_PICK_PRODUCT_H

#include <stdint.h>

enum {
    CHOSEN_TILE = 32, /* rows, and columns, of a result that a block works out together */
    CHOSEN_THREADS =
        256 /* of such a block: each has every CHOSEN_THREADS / CHOSEN_TILE-th row of a column */
};

/* x [n_rows / own, n_in] row by row; ids [n_rows], `own` of them for each row of x; y, or its gradient, [n_rows, n_out]. Matrices, or
 * what comes back to them, [n_chosen] of them from `first` on, whose elements lie in_step and out_step apart. */
typedef struct cuda_choosing {
    const void *x, *y;
    const void *w;
    void *out; /* y; of unpick_product the matrices */
    const int32_t *id;
    int64_t n_rows, own, n_in, n_out, first, n_chosen, in_step, out_step;
    int64_t *begin; /* [n_chosen + 1] where the rows of each matrix begin, in `row` */
    int32_t *row;   /* [n_rows] matrix by matrix, in their order */
} cuda_choosing;

#endif
