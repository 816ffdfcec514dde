/* advise.h: what would help: of a plan for a machine, and at the end of a run with one. The one change that would help most is a line;
 * all of them are a list, for --json and for advice.json in the folder of a run.
 */
#ifndef WEFT_APPS_ADVISE_H
#define WEFT_APPS_ADVISE_H

#include <jansson.h>

#include "search.h"
#include "spent.h"
#include "weft/research/advise.h"

/* For a training's table: when it is told. */
#define APP_ADVICE_OPTION(group)                                                                   \
    {                                                                                              \
        "advice", OPTION_CHOICE, "long", "WHEN", group,                                            \
            "what would help: long: of a plan, and at the end of a run of 5 s or more with "       \
            "--machine; always: of a shorter run too; never",                                      \
            "long always never"                                                                    \
    }

/* What there is to advise. */
typedef struct app_advice {
    weft_advice plans;
    /* ranks of a host; bytes that these need together, and that the host has, 0: any number */
    int host_ranks;
    int64_t host_bytes, host_memory;
    bool knows_seconds; /* there is a machine: else of memory alone is spoken */
    double seconds;     /* of a step as it is now */
    /* a rank that is slower than the others: which, by what, and how long a step would take were it not; slow_by 0: none is */
    int slow_rank;
    double slow_by, even_seconds;
} app_advice;

/* After a run the other processes wait while the root looks. */
enum { APP_ADVICE_SECONDS = 3, APP_ADVICE_BYTES = 6000 };

/* app_advise - of a program that was compiled for a plan or a run, by its neighbours. Without --machine it is of memory alone.
 * Local: on the root alone.
 *
 * within  seconds after which no more neighbours are looked at; 0: all are
 * advice  out; own it: free */
weft_status app_advise(const app_search *search, const weft_program *program, double within,
                       app_advice **advice, weft_error *error);
/* app_advise_line - the same as a line; "" where there is nothing to advise. With --dry-run=all the other changes follow, a line
 * each. */
weft_status app_advise_line(const app_search *search, const weft_program *program, double within,
                            char text[APP_ADVICE_BYTES], weft_error *error);

/* app_advise_list - the same as a list, NULL by --advice never; of what app_plan_asked hands over. Local: on the root alone. */
typedef struct app_advising {
    const app_search *search; /* borrowed */
    const weft_program *program;
} app_advising;
weft_status app_advise_list(void *advising, json_t **list, weft_error *error);

/* app_advise_end - at the end of a run: the list into advice.json in the folder of --run, and the line. By --advice, of a run with
 * --machine; else there is neither. Local: on the root alone.
 *
 * step  that it ended at */
weft_status app_advise_end(const app_search *search, const weft_program *program,
                           const app_spent *spent, int64_t step, char text[APP_ADVICE_BYTES],
                           weft_error *error);

/* advise_text.c: the change with the largest gain, of 2 % or more, into text [room]; of what does not fit into memory always one.
 * false: there is none. Local; pure. */
bool app_advice_text(const app_advice *advice, char *text, size_t room);
/* The best changes, a line each, into text [room]; "" where none is quicker. Local; pure. */
void app_advice_others(const app_advice *advice, char *text, size_t room);
/* What is wrong with the memory, as a part of a sentence. Local; pure. */
void app_advice_memory(const app_advice *advice, char *text, size_t room);
/* What of a step's `now` goes with `then`; 0 where nothing does. Below the least it is not worth a word. Pure. */
double app_advice_gain(double now, double then);
extern const double app_advice_least;

/* advise_json.c: all that spares 2 % or more, the largest gain first, and what the run was spent on, NULL: no run. Own it. NULL where
 * memory is refused. Local; pure. */
json_t *app_advice_json(const app_search *search, const app_advice *advice, const app_spent *spent);

#endif
