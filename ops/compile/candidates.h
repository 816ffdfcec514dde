/* candidates.h: which heuristic of placement (outlook) makes the cheapest plan. */
#ifndef WEFT_CANDIDATES_H
#define WEFT_CANDIDATES_H

#include "lookahead.h"

/* Place all of the graph, and add up in `candidate` what it costs: its exchanges and its work. */
typedef weft_status (*weft_candidate_place)(void *placing, weft_outlook outlook,
                                            weft_planned_candidate *candidate);

/* weft_compare_candidates - the cheapest of those that take no more bytes than the first, by names, in each measure. What was
 * compared stays in plan->candidates; of the candidates themselves nothing does. Local; pure.
 *
 * placing   handed to `place`
 * taken     the outlook of the best */
weft_status weft_compare_candidates(weft_plan *plan, weft_candidate_place place, void *placing,
                                    weft_outlook *taken, weft_error *error);

#endif
