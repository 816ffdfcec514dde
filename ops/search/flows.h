/* flows.h (private): what a graph says of the values between its kernels, whatever the layout: which of them have to be exchanged where
 * kernels are cut so or so, and what can go on meanwhile. flows.c has the argument.
 */
#ifndef WEFT_SEARCH_FLOWS_H
#define WEFT_SEARCH_FLOWS_H

#include "searching.h"

typedef struct search_flows search_flows;

/* weft_flows_find - of a plan on one rank; it lives in `arena`, and points into the plan. NULL: no memory. Local; pure. */
search_flows *weft_flows_find(const weft_plan *plan, weft_arena *arena);
/* A part of a step's work, and when it is done (WEFT_WORK_*). */
enum { WEFT_SEARCH_PARTS = 3 };
typedef struct search_part {
    uint8_t order;
    double part;
} search_part;
/* weft_flows_order - a step in parts, which add up to 1; of a kernel one of them is all. Local; pure. */
void weft_flows_order(const search_flows *flows, const weft_step *step,
                      search_part parts[WEFT_SEARCH_PARTS]);
/* weft_flows_tolls - the ways and tolls of a kernel's work, whose terms are known. Local; pure. */
void weft_flows_tolls(const search_flows *flows, const weft_step *step, weft_search_dims *dims,
                      weft_search_work *work);

#endif
