/* population.h: between two rounds of a population the worst quarter goes on from the best one.
 *
 * A member that does so takes the other's checkpoint and settings, and changes these a little. Choices depend on the results and the
 * seed alone, so a search that was killed makes the same again. Members move into folders that are there whole or not at all, before any
 * member goes on.
 */
#ifndef WEFT_APPS_TUNE_POPULATION_H
#define WEFT_APPS_TUNE_POPULATION_H

#include "search.h"

/* population_turn - after a round: what each member is trained by in the next one. Local.
 *
 * trials   [*n] all members, in any order
 * n        becomes 0 where none of them came to anything
 * returns  WEFT_IO where a checkpoint cannot be taken */
weft_status population_turn(search *s, int round, int *trials, int *n, weft_error *error);
/* population_open - what members are trained by in the first round. Local. */
weft_status population_open(search *s, weft_error *error);

#endif
