/* merge.h: what ranks have written down of their steps, put together as tracks for Perfetto. */
#ifndef WEFT_APPS_MERGE_H
#define WEFT_APPS_MERGE_H

#include "../../perfetto.h"
#include "weft/research/trace.h"

typedef struct merge merge; /* opaque */

typedef struct merge_counts {
    int n_ranks;
    int64_t n_runs;      /* of one rank, the one with most */
    int64_t n_wrong;     /* events that ended before they began: left out */
    int64_t n_dropped;   /* events for which ranks had no room */
    int64_t clock_error; /* ns, the largest */
    int n_unended;       /* ranks whose job did not end the trace */
} merge_counts;

/* merge_create - tracks go to `out`, which is borrowed. NULL: out of memory. */
merge *merge_create(perfetto *out);
void merge_destroy(merge **m);
/* merge_add - a rank's process, with its queue of computation and its counters. `traced` is borrowed until merge_destroy.
 * WEFT_CORRUPT where it is not of the same trace as those before. */
weft_status merge_add(merge *m, const weft_traced *traced, weft_error *error);
/* merge_finish - the exchanges of all ranks, when these are there: what they exchanged with each other is joined. */
weft_status merge_finish(merge *m, merge_counts *counts, weft_error *error);

#endif
