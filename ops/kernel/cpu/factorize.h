/* factorize.h: one square matrix in place, row-major, by blocks: what is outside a block on the diagonal is products by
 * single-threaded BLAS. The numbers of one matrix do not depend on any other. */
#ifndef WEFT_FACTORIZE_H
#define WEFT_FACTORIZE_H

#include "cpu/kernels.h"

/* a [n, n], of which the lower triangle is read, becomes l, zeros above it; false: it is not positive definite, and a is of any
 * content. */
typedef bool (*weft_factorize_positive)(int64_t n, void *a);
/* a [n, n] becomes l u, l without its diagonal of ones, of the rows in another order: row i and swaps[i] >= i [n] were swapped, one
 * pair after the other. false: a pivot is 0, or no number. */
typedef bool (*weft_factorize_any)(int64_t n, void *a, int32_t *swaps);
/* x [n, m], whose rows are `leading` elements apart, becomes the y of which t y = x, t [n, n] the triangle; has_ones: on its diagonal,
 * which is not read. */
typedef struct weft_triangle_of {
    const void *data;
    int64_t n;
    bool is_upper, has_ones;
} weft_triangle_of;
typedef void (*weft_substitute)(const weft_triangle_of *t, int64_t m, int64_t leading, void *x);

/* [WEFT_DTYPES]; NULL: not of that dtype. */
extern const weft_factorize_positive weft_factorize_positives[WEFT_DTYPES];
extern const weft_factorize_any weft_factorize_anys[WEFT_DTYPES];
extern const weft_substitute weft_substitutes[WEFT_DTYPES];

#endif
