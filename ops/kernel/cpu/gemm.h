/* gemm.h: one matrix product by kernels of our own, for processors with AVX-512; see gemm.c.
 *
 * Every element of c is the same sum in the same order, whatever part of c a call computes: m and n may be cut anywhere,
 * for any number of lanes.
 */
#ifndef WEFT_GEMM_H
#define WEFT_GEMM_H

#include "cpu/matrix.h"

/* What m and n are best cut in multiples of. */
enum { WEFT_GEMM_ROWS = 8, WEFT_GEMM_COLUMNS = 48 };
/* What columns are shared out in: 1 or 2 vectors. Few panels would not be even. */
enum { WEFT_GEMM_UNIT = 16 };
/* Bytes that it uses of a lane's scratch. */
enum { WEFT_GEMM_SCRATCH = 1 << 20 };

/* Is there a kernel for this processor and dtype? The same answer for all the life of a process. */
bool weft_gemm_has(weft_dtype dtype);
/* Are products of bf16 done by the processor's own, which read denormals as 0? Else they are done in f32. */
bool weft_gemm_has_pairs(void);
/* As weft_multiply, with any strides of a and b; beta is 0 or 1; c has a unit stride.
 * scratch  [WEFT_GEMM_SCRATCH] bytes, aligned to 64 */
void weft_gemm(const weft_product *product, void *scratch);

#endif
