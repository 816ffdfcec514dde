/* advise.h: the one change that would help most, in a line: of a plan for a machine, and at the end of a run with one. */
#ifndef WEFT_APPS_ADVISE_H
#define WEFT_APPS_ADVISE_H

#include "search.h"
#include "weft/research/advise.h"

/* What there is to advise. */
typedef struct app_advice {
    weft_advice plans;
    int64_t memory;     /* that a rank has; 0: any number */
    bool knows_seconds; /* there is a machine: else of memory alone is spoken */
    double seconds;     /* of a step as it is now */
    /* a rank that is slower than the others: which, by what, and how long a step would take were it not; slow_by 0: none is */
    int slow_rank;
    double slow_by, even_seconds;
} app_advice;

/* After a run the other processes wait while the root looks. */
enum { APP_ADVICE_SECONDS = 3 };

enum { APP_ADVICE_BYTES = 6000 };
/* app_advise - the line for a program that was compiled for a plan or a run, by its neighbours; "" where there is nothing to advise.
 * Without --machine it speaks of memory alone. Local: on the root alone.
 *
 * With --dry-run=all the other changes follow, a line each.
 *
 * within  seconds after which no more neighbours are looked at; 0: all are
 * text    out */
weft_status app_advise(const app_search *search, const weft_program *program, double within,
                       char text[APP_ADVICE_BYTES], weft_error *error);

/* app_advice_text - the change with the largest gain, of 2 % or more, into text [room]; of what does not fit into memory always one.
 * false: there is none. Local; pure. */
bool app_advice_text(const app_advice *advice, char *text, size_t room);
/* app_advice_others - the best changes, a line each, into text [room]; "" where none is quicker. Local; pure. */
void app_advice_others(const app_advice *advice, char *text, size_t room);

#endif
