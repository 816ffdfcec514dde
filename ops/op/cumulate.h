/* cumulate.h: what cumsum, cumprod and cummax share. */
#ifndef WEFT_CUMULATE_H
#define WEFT_CUMULATE_H

#include "op.h"

extern const weft_attributes weft_attributes_cumulate;
weft_status weft_infer_cumulate(weft_site *site, weft_error *error);
/* By name, but not along the dim: there each element needs all before it. */
void weft_factors_cumulate(const weft_site *site, weft_factors *factors);
/* One way to cumulate: the op, the same of what came before and a value, and what changes nothing, by dtype. */
typedef struct weft_cumulating {
    const weft_op *op;
    weft_value (*both)(weft_value before, weft_value x);
    double neutral[WEFT_DTYPES];
    /* the neutral value can be an element, which is then no neutral one: gradients go to it */
    bool ties;
} weft_cumulating;
/* Along dim, by blocks where it is long. */
weft_value weft_cumulate(weft_value x, weft_dim dim, bool exclusive, bool reverse,
                         const weft_cumulating *way);
/* One node of an op that cumulates, in one: a gradient's. */
weft_value weft_emit_cumulate(const weft_op *op, weft_value x, weft_dim dim, bool exclusive,
                              bool reverse);
/* What a node by blocks is made of: blocks, whatever is split, and what came before each. */
weft_value weft_cumulate_by_blocks(const weft_cumulating *way, weft_value x,
                                   const weft_cumulate_attributes *attributes);
/* weft_op.is_apart: by blocks, along a dim that is split. */
bool weft_cumulate_is_apart(const weft_site *site, const weft_spec *in, const weft_mesh *mesh);

#endif
