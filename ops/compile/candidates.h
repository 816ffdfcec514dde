/* candidates.h: which heuristic of placement (outlook) makes the cheapest plan. */
#ifndef WEFT_CANDIDATES_H
#define WEFT_CANDIDATES_H

#include "lookahead.h"

/* Place all of the graph, and add up in `candidate` what it costs: its exchanges and its work. */
typedef weft_status (*weft_candidate_place)(void *placing, weft_planned_candidate *candidate);

/* What is believed of the future in an outlook, from which placing begins, as a fingerprint: where it is that of an earlier candidate
 * so is the plan, and nothing is placed. Place comes right behind it. */
typedef weft_status (*weft_draft_look)(void *placing, weft_outlook outlook, uint64_t *beliefs);

/* weft_compare_candidates - the cheapest of those that take no more bytes than the first, by names, in each measure. What was
 * compared stays in plan->candidates; of the candidates themselves nothing does. Local; pure.
 *
 * placing   handed to `look` and `place`
 * taken     the outlook of the best */
weft_status weft_compare_candidates(weft_plan *plan, weft_draft_look look,
                                    weft_candidate_place place, void *placing, weft_outlook *taken,
                                    weft_error *error);

#endif
