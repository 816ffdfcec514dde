/* outside.h: ops from outside, for those who emit and register them. */
#ifndef WEFT_OUTSIDE_H
#define WEFT_OUTSIDE_H

#include "op.h"

/* The library's copy of an op that was registered by this address; NULL: none was. */
const weft_op *weft_op_outside(const weft_op *given);
/* The ops from outside, in the order in which they came. NULL past the end. */
const weft_op *weft_op_outside_at(int index);
/* weft_op_outside_add - one more; refused when one of its name is there. given: its address; op: what is copied. */
weft_status weft_op_outside_add(const weft_op *given, const weft_op *op, weft_error *error);

#endif
