/* pool.h: what the three ops of max pooling share: windows over some dims of x, which stand at the same places in the result. */
#ifndef WEFT_POOL_H
#define WEFT_POOL_H

#include "op.h"

extern const weft_attributes weft_attributes_pool;

/* Which of the two shapes the windows' dims are named in. */
typedef enum weft_pool_side { WEFT_POOL_X, WEFT_POOL_Y } weft_pool_side;

/* The shape on the other side of the windows; a sentence where `from` has not their dims. */
weft_status weft_pool_shape(const weft_site *site, int operand, weft_pool_side from, weft_shape *to,
                            weft_error *error);
/* Operand 1 has the dims of y. */
weft_status weft_pool_check_taps(const weft_site *site, const weft_shape *y, weft_error *error);
/* A factor for each dim, by place; those of the operands in `seen` are seen through the windows. */
void weft_pool_factors(const weft_site *site, weft_pool_side of_seen, uint32_t seen,
                       weft_factors *factors);

/* y's elements put back to where they were the largest of x, added up; and of something like x those at the same places. */
weft_value weft_unpool(weft_value y, weft_value which, const weft_pool_attributes *attributes);
weft_value weft_pool_pick(weft_value x, weft_value which, const weft_pool_attributes *attributes);

#endif
