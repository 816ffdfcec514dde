/* steps.h: runs of a served program, on all ranks: which requests share the next one, and what comes of it. */
#ifndef WEFT_APPS_STEPS_H
#define WEFT_APPS_STEPS_H

#include "../../serve/host.h"
#include "../../serve/told.h"
#include "served.h"

typedef struct steps {
    opened *o; /* borrowed, as the following */
    served_facts *facts;
    serve_host *host;
    weft_program *
        runs; /* what is run: o->program, or after a run that failed one that shares its variables */
    serve_told ranks;
    served_request **taken; /* [n_taken, at most a step's rows] in the step; of the root */
    int64_t n_taken, n_rows;
} steps;

/* steps_open - Collective over the job, as all here; agrees on failure. Own it: steps_close, also on failure. */
weft_status steps_open(steps *s, opened *o, served_facts *facts, serve_host *host,
                       weft_error *error);
/* steps_serve - until a signal asks to end, and all that was asked has been answered. */
weft_status steps_serve(steps *s, weft_error *error);
/* steps_close - what still waits ends with the sentence. Local. */
void steps_close(steps *s, const char *sentence);

#endif
