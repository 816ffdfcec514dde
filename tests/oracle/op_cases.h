/* op_cases.h: every op of <weft/ops.h> as small graphs with dims that no axis divides: what the
 * oracle walks. */
#ifndef WEFT_OP_CASES_H
#define WEFT_OP_CASES_H

#include "oracle.h"

enum {
    OP_F32 = 1 << WEFT_F32,
    OP_F64 = 1 << WEFT_F64,
    OP_I32 = 1 << WEFT_I32,
    OP_FLOAT = OP_F32 | OP_F64
};

/* One op in one shape. build returns its result for operands of `dtype`. */
typedef struct op_case {
    const char *name;
    weft_value (*build)(weft_oracle_build *build, weft_dtype dtype);
    int dtypes;      /* OP_ bits it is tried in            */
    int derivatives; /* 0: none; 1: gradient; 2: gradient of the gradient as well */
} op_case;

extern const op_case op_cases[];
extern const int n_op_cases;

#endif
