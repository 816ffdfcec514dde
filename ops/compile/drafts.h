/* drafts.h: which outlook makes the cheapest plan. */
#ifndef WEFT_DRAFTS_H
#define WEFT_DRAFTS_H

#include "ahead.h"

/* Place all of the graph, and add up in `draft` what it costs: its exchanges and its work. */
typedef weft_status (*weft_draft_place)(void *placing, weft_outlook outlook,
                                        weft_planned_draft *draft);

/* weft_compare_drafts - the cheapest of those that take no more bytes than the first, by names, in each measure. What was
 * compared stays in plan->drafts; of the drafts themselves nothing does. Local; pure.
 *
 * placing   handed to `place`
 * taken     the outlook of the best */
weft_status weft_compare_drafts(weft_plan *plan, weft_draft_place place, void *placing,
                                weft_outlook *taken, weft_error *error);

#endif
