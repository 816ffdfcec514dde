/* stamp.h (private): when each step of a rank began and ended, written down while it runs.
 *
 * A rank that is traced does its steps by another function, weft_bound_step.run: it reads the clock, does what the step's own
 * function does, and reads the clock again. A rank that is not traced has its own functions, so it pays nothing.
 */
#ifndef WEFT_RUN_STAMP_H
#define WEFT_RUN_STAMP_H

#include "sync.h"
#include "weft/research/trace.h"

/* The counts of a ring, which may lie in a file: whoever reads it later finds as many events as there are. */
typedef struct weft_ring_counts {
    _Atomic int64_t n_events, n_dropped;
} weft_ring_counts;

/* Where a rank writes; the programs of a process write into the same, one after the other. */
typedef struct weft_ring {
    weft_ring_counts *counts;
    weft_traced_event *events; /* [room] */
    int64_t room;
} weft_ring;

typedef struct weft_tracer weft_tracer;
struct weft_rank;

/* weft_tracer_start - from the next run on, the rank's steps go into the ring, as those of program number `program`. Local, between
 * runs, as are the others. weft_tracer_stop - no longer; of a rank that is not traced, nothing. */
weft_status weft_tracer_start(struct weft_rank *rank, weft_ring *ring, uint16_t program,
                              weft_error *error);
void weft_tracer_stop(struct weft_rank *rank);
/* A run begins and ends; by the rank's thread, when it is traced. */
void weft_trace_run_begin(struct weft_rank *rank);
void weft_trace_run_end(struct weft_rank *rank);

#endif
