/* bounds.h (private): numbers of a data set that are ids: none of them is another's, or beyond the last. */
#ifndef WEFT_IO_BOUNDS_H
#define WEFT_IO_BOUNDS_H

#include "chain.h"

typedef struct weft_bound {
    int64_t n;       /* ids are 0 to n - 1; 0: the numbers are none */
    int64_t ignored; /* a number outside that may be there too; 0: none */
    bool is_kept;    /* by all numbers that were looked at */
} weft_bound;

/* Where numbers of a data set come from. */
typedef struct weft_bound_source {
    const weft_chain *chain;
    int field;
    int64_t count; /* of the numbers of all samples */
    int64_t known; /* of these, from the first on: they have been looked at */
} weft_bound_source;

/* weft_bound_check - of numbers of one sample that were read. Local. returns WEFT_USAGE with
 * the first number that is no id, and where it stands. */
weft_status weft_bound_check(const weft_bound *bound, const weft_bound_source *from, int64_t sample,
                             const weft_want *want, weft_error *error);
/* weft_bound_scan - of all samples, where they can be gone through at once: of as many bytes as are hashed when a file is opened. Local. */
weft_status weft_bound_scan(const weft_bound *bound, const weft_bound_source *from,
                            weft_error *error);
/* weft_bound_highest - the largest number of all samples. Local. returns WEFT_USAGE where they cannot be gone through. */
weft_status weft_bound_highest(const weft_bound_source *from, int64_t *highest, weft_error *error);

#endif
