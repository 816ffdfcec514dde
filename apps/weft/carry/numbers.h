/* numbers.h: numbers as other programs store them, and what they become here: the least dtype of ours that has all of them,
 * each exactly. */
#ifndef WEFT_APPS_NUMBERS_H
#define WEFT_APPS_NUMBERS_H

#include <stdint.h>

#include "weft/dtype.h"

typedef struct number_type {
    const char *name; /* in safetensors: "BF16" */
    const char *said; /* by us: "bf16"          */
    int bytes;
    weft_dtype dtype; /* what it becomes; WEFT_DTYPES: no number of ours, it can only be left */
    /* One after the other into numbers of `dtype`; returns the index of the first that is none, `count` when all are.
     * NULL: they are its numbers already. */
    int64_t (*convert)(void *to, const void *from, int64_t count);
} number_type;

/* number_type_find - NULL: there is none of that name. Local. */
const number_type *number_type_find(const char *name);

#endif
