/* gemv.h: a vector times a matrix, which is read once, as it lies; see gemv.c.
 *
 * Every result is the same sum in the same order whatever part of them a call computes, if it begins with a multiple of
 * WEFT_GEMV_UNIT.
 */
#ifndef WEFT_GEMV_H
#define WEFT_GEMV_H

#include "cpu/kernels.h"

/* What results are cut in multiples of. */
enum { WEFT_GEMV_UNIT = 32 };

/* y [n] = or += x [k] w [k, n]; strides in elements. */
typedef struct weft_vector_product {
    weft_dtype reads;        /* of x and w: f32, f64, bf16 or f16; y is of what that computes in */
    bool rounds_x, rounds_w; /* it is stored as f32, and read as bf16, which `reads` is */
    int64_t n, k;            /* at least 1 */
    const char *x, *w;
    int64_t x_step, along_k, along_n; /* of w, one is 1 where it is more than one element long */
    char *y;
    int64_t y_step;
    bool adds; /* to what y holds */
} weft_vector_product;

/* Results [begin, end). */
void weft_gemv(const weft_vector_product *product, int64_t begin, int64_t end);

#endif
