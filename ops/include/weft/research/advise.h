/* advise.h: what one change would bring: choices that differ from the current one in one thing, planned and predicted.
 *
 *     WEFT_TRY(weft_advise(build, &my_model, &options, &current, &advice, error));      (weft/research/search.h has these)
 *     if (advice.n > 0) printf("%s: %.1f ms less\n", advice.best[0].options, 1e3 * (advice.seconds - advice.best[0].seconds));
 *
 * Nothing is a rule here: each neighbour is a plan. Neighbours of a choice are
 *
 * - the mesh with two axes in another order, which are then other links;
 * - a prime factor of an axis moved to another one; an axis of size 1 goes, with its rules;
 * - a rule of the layout taken away, added, or given to another axis; all rules of an axis in place of another's dims;
 * - the stage of sharded storage one higher or lower;
 * - a knob at its next value, up or down: a flag turned over, twice as many micro-batches, half as many parts of a batch.
 *
 * All functions are Local: nothing runs, and no ranks are needed.
 */
#ifndef WEFT_RESEARCH_ADVISE_H
#define WEFT_RESEARCH_ADVISE_H

#include "weft/research/search.h"

WEFT_BEGIN

enum { WEFT_ADVICE_OPTIONS = 800, WEFT_MAX_ADVISED = 5 };

/* A neighbour that was planned. */
typedef struct weft_advised {
    weft_choice choice;
    char options
        [WEFT_ADVICE_OPTIONS]; /* those that differ from the current ones, as a command line has them: "--zero 1" */
    double seconds;                       /* that a step is predicted to take */
    double work_seconds, exposed_seconds; /* of rank 0, as weft_prediction has them */
    int64_t bytes; /* that a rank needs (weft_usage.total_bytes of the fullest rank) */
} weft_advised;

typedef struct weft_advice {
    double seconds; /* of the current choice */
    double work_seconds, exposed_seconds;
    int64_t bytes;
    bool fits; /* into options.memory */
    /* [n] where the current one fits: neighbours that do too and are quicker, the quickest first. Where it does not: what fits, after
     * as few changes as were found, or n 0 */
    int n;
    weft_advised best[WEFT_MAX_ADVISED];
    int n_neighbours, n_planned; /* looked at; planned as a whole, others with few layers */
    weft_advised smallest;       /* of those planned the one that needs least; mesh "": none was */
} weft_advice;

/* weft_advise - the neighbours of a choice, ranked.
 *
 * options  as in weft_search_best: machine, host_ranks, memory (0: all fits), knobs, store_dim, layers, layers_knob, hints, threads;
 *          seconds, after which no more neighbours are looked at. The others are not looked at
 * from     the current choice
 * advice   out; its choices borrow options->knobs
 * returns  as weft_search_plan does of the current choice; a neighbour that cannot be planned is left out
 * cost     20 to 100 plans, of few layers each where options.layers says how many there are, and a few whole ones */
WEFT_API WEFT_MUST_CHECK weft_status weft_advise(weft_search_builder build, void *context,
                                                 const weft_search_options *options,
                                                 const weft_choice *from, weft_advice *advice,
                                                 weft_error *error);

WEFT_END

#endif
