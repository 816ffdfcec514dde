/* attention.h: what attention and its gradient say alike of their sites. */
#ifndef WEFT_OP_ATTENTION_H
#define WEFT_OP_ATTENTION_H

#include "op.h"

/* Whether bias and mask have a name for the memory rows. */
bool weft_attention_has_column(const weft_attention_attributes *attributes);
/* What is kept of the rows of q for the gradient, [feature:2, rows]: the maximum of a row's scores, the sum of exp(score - maximum). */
weft_shape weft_attention_kept(const weft_shape *q, const weft_attention_attributes *attributes);
/* A factor for every dim of q but feature. Operands are q, k, v, then bias and mask, and in the gradient dout; results
 * are of q's dims, or dq, dk, dv, dbias. Query and memory may be one name: k and v have no direction of query. */
void weft_attention_factors(const weft_site *site, weft_factors *factors);
/* The site as if k and v had the blocks of q; without blocks, the site. */
weft_site weft_attention_alike(const weft_site *site);
/* The same written out, with a matrix of query x memory. */
void weft_attention_expand(weft_vjp *vjp);
/* How attention or its gradient is done where the rows of k and v are split, and those of q may be (attention_variants.c). */
int weft_attention_variants(const weft_site *site, const weft_spec *in, uint32_t placed,
                            const weft_mesh *mesh, weft_variant *variants);
/* weft_attention_work of blocks of rows: as much as an element of `blocks` has on average. */
double weft_attention_blocks_work(const weft_site *site);
/* Elements of q times the memory rows that one query row sees, on average: what flops are multiples of. */
double weft_attention_work(const weft_site *site);

#endif
