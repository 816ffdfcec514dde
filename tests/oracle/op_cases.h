/* op_cases.h: every op and every builder of <weft/ops.h> as small graphs with dims that no axis divides, each with what it
 * must give: what the oracle walks.
 */
#ifndef WEFT_OP_CASES_H
#define WEFT_OP_CASES_H

#include "op.h"
#include "oracle.h"
#include "reference.h"

enum {
    OP_F32 = 1 << WEFT_F32,
    OP_F64 = 1 << WEFT_F64,
    OP_I32 = 1 << WEFT_I32,
    OP_INT = OP_I32 | 1 << WEFT_I64 | 1 << WEFT_U8,
    OP_BF16 = 1 << WEFT_BF16,
    OP_HALF = OP_BF16 | 1 << WEFT_F16,
    OP_WIDE = OP_F32 | OP_F64, /* cases of numbers or states that 16 bits do not have */
    OP_FLOAT = OP_WIDE | OP_HALF
};

/* One op in one shape. build returns its result for operands of `dtype`. */
typedef struct op_case {
    const char *name;
    weft_value (*build)(weft_oracle_build *build, weft_dtype dtype);
    int dtypes;          /* OP_ bits it is tried in            */
    int derivatives;     /* 0: none; 1: gradient; 2: gradient of the gradient as well */
    reference_with with; /* what the call says beside its operands */
    bool alone;          /* against the reference only: placements would show nothing new */
    bool each;           /* the reference binds each element by itself, not all by the largest */
    double f32, f64; /* bounds of the reference where the usual ones are too narrow; 0: the usual */
    const char *why_none; /* of the nameless entry that ends a list, when it is the only one */
} op_case;

/* All cases of one op of the table, or of one builder that is a composition. */
typedef struct op_group {
    const char *name;
    const weft_op *op; /* NULL: a composition */
    reference reference;
    /* until one without a name; that has why_none where the op has no values of its own */
    const op_case *cases;
} op_group;

extern const op_group op_groups[];
extern const int n_op_groups;

/* Every case whose name begins with `begin`, in the order of the table. Returns how many there are. */
typedef void (*op_visit)(const op_group *group, const op_case *what, void *argument);
int op_cases_each(const char *begin, op_visit visit, void *argument);

/* The arguments of a test that walks cases: [--all] [--say] [NAME]. False: one of them is wrong, and it was said. */
bool op_cases_options(int argc, char **argv, weft_oracle *oracle, const char **begin);

/* All dims of the cases under the same names in other memory; the memory of the names before is overwritten. */
void op_cases_fresh_names(void);

#endif
