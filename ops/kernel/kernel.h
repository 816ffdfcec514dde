/* kernel.h: what a kernel sees is weft/extend/kernel.h; one that finishes the state of a row (weft_finish) takes part in
 * loops (loop.h) as well. Weft's own kernels, with their contracts, are in cpu/kernels.h. */
#ifndef WEFT_KERNEL_H
#define WEFT_KERNEL_H

#include "weft/extend/kernel.h"

/* ---- states finished ------------------------------------------------------------------------- */

/* n states become values: y[0][i], and y[1][i] where the op has two results, of state i; contiguous. */
typedef void (*weft_finish)(int64_t n, void *const *y, const void *state, double number);
/* lse: the maximum, and log(sum). argmax: the index, as i32. moments: the mean, and 1 / sqrt(M2 / count + number). By the dtype of
 * the state; NULL: there is none. */
extern const weft_finish weft_lse_finishes[WEFT_DTYPES], weft_argmax_finishes[WEFT_DTYPES],
    weft_moments_finishes[WEFT_DTYPES];

#endif
