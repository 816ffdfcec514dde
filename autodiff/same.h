/* same.h: ops that a way back stops at, and that are else the value that they are given: `expand` puts it in their place, so no
 * later pass meets them. */
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

static inline void weft_same_expand(weft_vjp *vjp)
{
    vjp->out[0] = vjp->in[0];
}

#endif
