/* stop.h (private): where a rank asks, before a step, whether its run is to stop there. */
#ifndef WEFT_RUN_STOP_H
#define WEFT_RUN_STOP_H

#include "program.h"
#include "sync.h"

/* Steps that a rank has begun in this run; each on a cache line of its own. */
typedef struct weft_stop_count {
    _Alignas(64) _Atomic uint64_t steps;
} weft_stop_count;

struct weft_stop {
    _Alignas(64) _Atomic uint64_t at; /* the number of the step that none begins any more */
    weft_stop_count begun[];          /* [n_local] */
};

/* Whether somebody wants the run that is made to stop: set by a handler of a signal, which is the process's. */
extern _Atomic bool weft_stop_is_wanted;

/* Before a run that is_stoppable. Allocates the first time. */
weft_status weft_stop_begin(weft_program *program, weft_error *error);
/* Of a program that is_stoppable, by each of its ranks, before each step up to the first that writes a variable, and before that. */
bool weft_stops_before_step(const weft_rank *rank);
/* Whether its ranks did, in the run that is over. */
bool weft_has_stopped(const weft_program *program);

#endif
