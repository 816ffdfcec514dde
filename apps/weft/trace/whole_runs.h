/* whole_runs.h: the events of a traced program's runs that began and ended while they were traced.
 *
 *     whole_runs runs = {.program = number};
 *     for (each event e, in order)
 *         if (whole_runs_has(&runs, e)) ... a step of run number runs.n - 1 ...
 */
#ifndef WEFT_APPS_WHOLE_RUNS_H
#define WEFT_APPS_WHOLE_RUNS_H

#include "weft/research/trace.h"

typedef struct whole_runs {
    int program; /* its number in the trace */
    int64_t n;   /* runs so far */
    double ns;   /* that they took, all together */
    bool is_in;  /* the last run that began is whole */
} whole_runs;

/* whole_runs_has - whether the next event is of a step in such a run. A step that was under way at the end has no end, and is none. */
static inline bool whole_runs_has(whole_runs *runs, const weft_traced_event *e)
{
    const bool is_over = e->end >= e->begin;
    if (e->program != runs->program) return false;
    if (e->kind != WEFT_TRACED_RUN) return runs->is_in && is_over;
    runs->is_in = is_over;
    if (is_over) runs->n++, runs->ns += (double)(e->end - e->begin);
    return false;
}

#endif
