/* search.h: the trials of a search, rung by rung: all are trained a little, the better part goes on, and so forth.
 *
 * Each result is a line of results.jsonl in the search's folder, written when it is known. A search that is started again takes
 * what is there, and goes on with the others.
 */
#ifndef WEFT_APPS_TUNE_SEARCH_H
#define WEFT_APPS_TUNE_SEARCH_H

#include "../../lock.h"
#include "trial.h"

enum { SEARCH_ABOUT = 16384 }; /* of the sentence that says which search it is, with its end */

typedef struct search {
    /* the caller's */
    launch launch;
    const char *by; /* the number that counts */
    bool is_highest, says;
    int n; /* trials, with those of the climb that have begun */
    /* what steps grow by from rung to rung; 0: all train to the end, in one rung */
    int eta, n_rungs;
    int n_climb; /* trainings to the end after the last rung, each a step from the best until then */
    int64_t steps;      /* of a whole training; 0: not known, as of one rung */
    bool is_population; /* rungs are its rounds, which all trials go through */
    uint64_t seed;
    int at_once;
    double max_seconds; /* 0: any */
    trial *trials;      /* [n], and room for n_climb more */
    /* its own */
    int results; /* file */
    app_lock lock;
    bool is_stopped; /* by a signal, or since the time is over */
    int64_t trained; /* steps, of all trials */
} search;

/* search_until - the step that trials of a rung go to; 0: to the end. Pure. */
int64_t search_until(const search *s, int rung);
/* search_at_rung - how many trials are at rung k, if all come to something. Pure. */
int search_at_rung(const search *s, int k);
/* search_open - the folder, and what it has of this search; `about` says which it is: another one's folder is refused with WEFT_USAGE. Local. */
weft_status search_open(search *s, const char *about, weft_error *error);
/* search_run - all that is not there yet. Local. returns WEFT_USAGE where no trial has come to anything */
weft_status search_run(search *s, weft_error *error);
/* search_order - trials, the best first: those that went furthest, then by result. order [n] */
void search_order(const search *s, int *order);
/* search_rank - trials [n], those that came to the best at rung k first, and those that came to nothing last. returns how many came
 * to something. */
int search_rank(const search *s, int k, int *trials, int n);
/* search_last - the last outcome of a trial; NULL: none. */
const outcome *search_last(const search *s, int t);
void search_close(search *s);

#endif
