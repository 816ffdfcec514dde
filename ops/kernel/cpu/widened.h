/* widened.h: calls some of whose operands and results are of bf16, done by kernels of f32: bit for bit what casts around them give.
 *
 *     weft_call wide;
 *     weft_widen_call(call, &wide);
 *     ...                              the work, of `wide`
 *     weft_narrow_results(call, &wide);
 *
 * call->scratch has as f32 meanwhile each operand and result of bf16. All lanes widen and round.
 */
#ifndef WEFT_WIDENED_H
#define WEFT_WIDENED_H

#include "cpu/kernels.h"

/* Of scratch; 0: nothing is of bf16. */
int64_t weft_widened_bytes(const weft_call *call);
void weft_widen_call(const weft_call *call, weft_call *wide);
void weft_narrow_results(const weft_call *call, const weft_call *wide);
/* n numbers widened, or rounded, by all lanes. */
void weft_widen(weft_stream *stream, int64_t n, const uint16_t *from, float *to);
void weft_narrow(weft_stream *stream, int64_t n, const float *from, uint16_t *to);

#endif
