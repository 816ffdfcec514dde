/* attention.h: what attention and its gradient say alike of their sites. */
#ifndef WEFT_OP_ATTENTION_H
#define WEFT_OP_ATTENTION_H

#include "op.h"

/* Whether bias and mask have a name for the memory rows. */
bool weft_attention_has_column(const weft_attention_attributes *attributes);
/* A factor for every dim of q but feature. Operands are q, k, v, then bias and mask, and in the gradient dout; results
 * are of q's dims, or dq, dk, dv, dbias. Query and memory may be one name: k and v have no direction of query. */
void weft_attention_factors(const weft_site *site, weft_factors *factors);
/* Elements of q times the memory rows that one query row sees, on average: what flops are multiples of. */
double weft_attention_work(const weft_site *site);

#endif
