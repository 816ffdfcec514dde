/* cases_element.h: builders of cases that many element ops have. */
#ifndef WEFT_CASES_ELEMENT_H
#define WEFT_CASES_ELEMENT_H

#include "cases.h"

/* Two operands of the same dims, in another order, or fewer. */
#define TWO(op, make_x, make_y)                                                                    \
    static weft_value op##_same(build_t *b, weft_dtype t)                                          \
    {                                                                                              \
        weft_value x = make_x(b, t, WEFT_DIMS(A, C)), y = make_y(b, t, WEFT_DIMS(C, A));           \
        return weft_##op(x, y);                                                                    \
    }                                                                                              \
    static weft_value op##_broadcast(build_t *b, weft_dtype t)                                     \
    {                                                                                              \
        weft_value x = make_x(b, t, WEFT_DIMS(A)), y = make_y(b, t, WEFT_DIMS(B, A));              \
        return weft_##op(x, y);                                                                    \
    }

#define ONE_OPERAND(op, make)                                                                      \
    static weft_value op##_x(build_t *b, weft_dtype t)                                             \
    {                                                                                              \
        weft_value x = make(b, t, WEFT_DIMS(A, C));                                                \
        return weft_##op(x);                                                                       \
    }

/* Past the range in which the others stay: where a formula changes its branch, or has no number left. */
#define WIDE(op, low, high)                                                                        \
    static weft_value op##_wide(build_t *b, weft_dtype t)                                          \
    {                                                                                              \
        weft_value x = weft_oracle_input(b, t, WEFT_DIMS(ROWS, MERGED), low, high);                \
        return weft_##op(x);                                                                       \
    }

/* What is no number, and what is infinite. */
#define WITH(op, limit, instead)                                                                   \
    static weft_value op##_special(build_t *b, weft_dtype t)                                       \
    {                                                                                              \
        return weft_##op(case_with(b, t, WEFT_DIMS(A, C), limit, instead));                        \
    }

/* Few different numbers: many are equal. */
#define TIES(op)                                                                                   \
    static weft_value op##_ties(build_t *b, weft_dtype t)                                          \
    {                                                                                              \
        weft_value x = weft_oracle_input(b, WEFT_I32, WEFT_DIMS(A, C), -1, 2);                     \
        x = weft_oracle_made(b, weft_cast(x, t));                                                  \
        weft_value y = weft_oracle_input(b, WEFT_I32, WEFT_DIMS(B, A), -1, 2);                     \
        y = weft_oracle_made(b, weft_cast(y, t));                                                  \
        return weft_##op(x, y);                                                                    \
    }

#endif
