/* cumulate.h: what cumsum and cumprod share. */
#ifndef WEFT_CUMULATE_H
#define WEFT_CUMULATE_H

#include "op.h"

extern const weft_attributes weft_attributes_cumulate;
weft_status weft_infer_cumulate(weft_site *site, weft_error *error);
/* By name, but not along the dim: there each element needs all before it. */
void weft_factors_cumulate(const weft_site *site, weft_factors *factors);
/* op along dim, by blocks where it is long; neutral: what changes nothing. */
weft_value weft_cumulate(weft_value x, weft_dim dim, bool exclusive, bool reverse,
                         const weft_op *op, const char *builder, double neutral);

#endif
