/* reference_element.h: what an element op means, from one expression. */
#ifndef WEFT_REFERENCE_ELEMENT_H
#define WEFT_REFERENCE_ELEMENT_H

#include "reference.h"

/* Operands are broadcast by name: an operand's element does not depend on coordinates that it lacks. */
#define ELEMENT_1(op, expression)                                                                  \
    void reference_##op(const reference_call *call)                                                \
    {                                                                                              \
        REFERENCE_EACH(p, &call->out[0])                                                           \
        {                                                                                          \
            const long double x = element_get(&call->in[0], &p);                                   \
            const double a = call->with.a, b = call->with.b;                                       \
            (void)a, (void)b;                                                                      \
            element_put(&call->out[0], &p, (expression));                                          \
        }                                                                                          \
    }
#define ELEMENT_2(op, expression)                                                                  \
    void reference_##op(const reference_call *call)                                                \
    {                                                                                              \
        REFERENCE_EACH(p, &call->out[0])                                                           \
        {                                                                                          \
            const long double x = element_get(&call->in[0], &p);                                   \
            const long double y = element_get(&call->in[1], &p);                                   \
            const weft_dtype dtype = call->in[0].dtype;                                            \
            const double a = call->with.a;                                                         \
            (void)dtype, (void)a;                                                                  \
            element_put(&call->out[0], &p, (expression));                                          \
        }                                                                                          \
    }

#endif
