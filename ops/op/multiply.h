/* multiply.h: products along a dim, written as multiplications of two: what gradients of prod and cumprod go through. */
#ifndef WEFT_MULTIPLY_H
#define WEFT_MULTIPLY_H

#include "op.h"

/* weft_multiplied - x without dim: the product along it. */
weft_value weft_multiplied(weft_value x, weft_dim dim);
/* weft_multiplied_before - x's dims: for each element the product of those before it along dim, or behind it (reverse); 1 where
 * there are none. */
weft_value weft_multiplied_before(weft_value x, weft_dim dim, bool reverse);

#endif
