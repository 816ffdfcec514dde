/* same.h: ops that return the value that they are given. `expand` puts that in their place, so no later pass meets
 * them; where the two can be told apart, the compiler makes a copy (ops/compile/expand.c). */
#ifndef WEFT_SAME_H
#define WEFT_SAME_H

#include "ir.h"

static inline weft_status weft_same_infer(weft_site *site, weft_error *error)
{
    (void)error;
    site->n_out = 1;
    site->out[0] = site->in[0];
    return WEFT_OK;
}

void weft_same_gradient(weft_vjp *vjp);
/* The one expansion of all of them, by which they are known. */
void weft_same_expand(weft_vjp *vjp);

#endif
