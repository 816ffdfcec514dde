/* sites.h (private): ops that are alike are decided once.
 *
 * The trips of an unrolled scan, and the layers of a model, are the same ops on tensors of the same types. The factors of an op
 * depend on its site alone. The chosen way depends on that and on the specs of operands and results. So both are kept, for all
 * candidates of a plan. A policy, or a plan that is explained, has each decided anew.
 */
#ifndef WEFT_COMPILE_SITES_H
#define WEFT_COMPILE_SITES_H

#include "choose.h"

typedef struct weft_sites weft_sites;

/* What nodes of one op, of equal attributes, whose operands and results have the same types, have in common. */
typedef struct weft_alike {
    const weft_site *site; /* of the first of them */
    const weft_factors *factors;
} weft_alike;

/* How one of them is cut. */
typedef struct weft_decided {
    const weft_choice *choice;
    /* Place's: where operands have to be [n_in] and results come to be [n_out]; NULL: not known yet */
    const weft_spec *in, *out;
    const weft_box *boxes; /* [n_out] rank 0's of results */
    const char *reason;    /* why results are partial; NULL: not known yet, or they are not */
} weft_decided;

/* weft_sites_create - in memory of its own. Local. */
weft_status weft_sites_create(weft_plan *plan, weft_sites **sites, weft_error *error);
void weft_sites_destroy(weft_sites **sites);

/* weft_alike_of - what a node of the plan's graph has in common with others; NULL: no memory. Local. */
const weft_alike *weft_alike_of(weft_sites *sites, uint32_t node);

/* weft_decide - weft_choose for a node, of which `in` has the holdings; its site and factors are filled in. What is decided
 * lives as long as `sites`; place writes the specs and the reason into it. Local. */
weft_status weft_decide(weft_sites *sites, weft_choice_in *in, weft_decided **decided,
                        weft_error *error);

/* Memory that lives as long. */
weft_arena *weft_sites_arena(weft_sites *sites);

#endif
