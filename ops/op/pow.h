/* pow.h: a^b and its derivatives by b, a^b (log a)^k, which have one gradient. */
#ifndef WEFT_POW_H
#define WEFT_POW_H

#include "op.h"

/* a^b (log a)^k, k from 0 on. */
weft_value weft_pow_log(weft_value a, weft_value b, int k);
/* Of weft_pow_log(in[0], in[1], k). */
void weft_pow_gradient(weft_vjp *vjp, int k);

#endif
