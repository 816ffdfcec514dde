/* matrix.h: one matrix product by single-threaded BLAS, for matrices given by strides. */
#ifndef WEFT_MATRIX_H
#define WEFT_MATRIX_H

#include "cpu/kernels.h"

/* Element [i, j] is data[i * row + j * column]; strides in elements. */
typedef struct weft_matrix {
    void *data;
    int64_t row, column;
} weft_matrix;

typedef struct weft_product {
    weft_dtype dtype; /* of c, and what is computed in: f32 or f64 */
    /* bf16 or f16: a and b are of that, and c of f32, in weft_gemm alone; else they are of dtype */
    weft_dtype reads;
    bool rounds_a,
        rounds_b;    /* weft_gemm alone: it is stored as f32, and read as bf16, which `reads` is */
    int64_t m, n, k; /* all at least 1, all within an int */
    double alpha, beta;
    weft_matrix a, b, c; /* [m, k], [k, n], [m, n]; each with a unit stride (weft_matrix_fits) */
    /* weft_gemm alone, of a product of f32: its data not NULL: what c would be goes there, as bf16, and c is memory for it in
     * between. It has c's unit stride */
    weft_matrix narrow;
    weft_stream *stream; /* whose lane does it, for pauses; NULL: there are none */
    int lane;
    /* weft_gemm alone, in a body of weft_parallel_whole: lanes take rows of the product, or columns where n is larger than
     * m, so many for an item; each calls it with all of the product. 0: all of it is this call's */
    int64_t unit;
} weft_product;

/* Can BLAS walk it? */
bool weft_matrix_fits(int64_t rows, int64_t columns, int64_t row, int64_t column);
/* c = alpha a b + beta c; with beta 0, c is not read. */
void weft_multiply(const weft_product *product);

#endif
