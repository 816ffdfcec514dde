/* advise.h: the one change that would help most, in a line: of a plan for a machine, and at the end of a run with one. */
#ifndef WEFT_APPS_ADVISE_H
#define WEFT_APPS_ADVISE_H

#include <stdbool.h>
#include <stddef.h>

#include "weft/research/advise.h"

/* What there is to advise. */
typedef struct app_advice {
    weft_advice plans;
    int64_t memory; /* that a rank has; 0: any number */
    /* a rank that is slower than the others: which, by what, and how long a step would take were it not; slow_by 0: none is */
    int slow_rank;
    double slow_by, even_seconds;
    double seconds; /* of a step with that rank */
} app_advice;

/* app_advice_text - the change with the largest gain, of 2 % or more, into text [room]; of what does not fit into memory always one.
 * false: there is none. Local; pure. */
bool app_advice_text(const app_advice *advice, char *text, size_t room);

#endif
