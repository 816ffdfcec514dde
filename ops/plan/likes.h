/* likes.h (private): tensors that lie alike, and steps that do the same to such tensors.
 *
 * The trips of an unrolled scan, and the layers of a model, differ in which tensors they read and write. On one rank, the calls of
 * steps that are alike differ in addresses alone; they have equal scratch and equal moves. So these are found once for all of them.
 * Ranks with equal sizes of each kind have the same places in their arenas.
 */
#ifndef WEFT_PLAN_LIKES_H
#define WEFT_PLAN_LIKES_H

#include "plan.h"

/* weft_find_likes - plan->likes, once steps and tensors are the last ones. Local. */
weft_status weft_find_likes(weft_plan *plan, weft_error *error);

/* weft_sizes_of - of one rank, into `arena`. moves: that rank's. Local. */
weft_status weft_sizes_of(const weft_plan *plan, int rank, weft_arena *arena,
                          weft_known_moves *moves, weft_sizes *sizes, weft_error *error);
/* False too where those of one are not known. */
bool weft_same_sizes(const weft_plan *plan, const weft_sizes *a, const weft_sizes *b);

#endif
