/* sequence.h (private): which steps of a plan have to come after which, whatever else changes their order.
 *
 * None goes past where a scan's body begins or ends. A reader of memory comes after its writer. A writer comes after
 * the writer before it, and after all readers of the old value.
 */
#ifndef WEFT_PLAN_SEQUENCE_H
#define WEFT_PLAN_SEQUENCE_H

#include "plan.h"

/* One of a list of steps. */
typedef struct weft_edge {
    uint32_t step, next; /* next: edge + 1; 0: the last */
} weft_edge;

/* A step may be in a list several times, and is counted as often. */
typedef struct weft_sequence {
    weft_edge *edges;
    /* [n_steps] the first edge to those that come before it, to those that come after it, + 1; how many come before it */
    uint32_t *needs, *serves, *n_needs;
    /* [n_placed], of those whose memory it is: the first edge to those who read what is written there last, + 1; how many
     * steps read what is ever there */
    uint32_t *reads, *n_readers;
    uint32_t *writer; /* [n_placed] the last step that writes it + 1 */
} weft_sequence;

/* Whether an entry of `seen` is met for the first time since the stamp was made. */
static inline bool weft_is_first(uint32_t *seen, uint32_t stamp)
{
    const bool is_new = *seen != stamp;
    *seen = stamp;
    return is_new;
}

/* weft_find_sequence - of the steps as they stand; in the plan's arena. Local; pure. */
weft_status weft_find_sequence(const weft_plan *plan, weft_sequence *sequence, weft_error *error);

#endif
