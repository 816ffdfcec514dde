/* regions.h (private): the parts of a plan that are done many times: bodies of scans that unroll has left.
 *
 * A region is the steps between a BEGIN and its END. Every step names its scan (weft_step.scan); BEGIN and END are of
 * the scan that they stand around. A GUARD within may leave the trip. All three are *fences*: no pass moves a step
 * past one, or joins it with one beyond. The steps between two fences are a *part*: among them a pass does as in a
 * plan without regions.
 */
#ifndef WEFT_PLAN_REGIONS_H
#define WEFT_PLAN_REGIONS_H

#include "plan.h"

typedef struct weft_regions {
    const weft_graph *graph;
    uint32_t *part;        /* [n_steps] the number of its part; that of a fence is its own */
    uint32_t *begin, *end; /* [n_scans] the fences of a scan */
    /* [n_scans] behind which what a trip leaves is made: its guard, or else its begin */
    uint32_t *guard;
} weft_regions;

/* weft_find_regions - of the steps as they stand; in `arena`. Local; pure. */
weft_status weft_find_regions(const weft_plan *plan, weft_arena *arena, weft_regions *regions,
                              weft_error *error);

/* How often a run does what is of a scan: its trips, and those of the scans around it. 0: once. */
double weft_trips_of(const weft_graph *graph, uint32_t scan);

/* How often a run does a step. A scan begins once in each trip of those around it. */
double weft_times_of(const weft_plan *plan, const weft_step *step);

static inline bool weft_is_fence(const weft_step *step)
{
    return step->kind == WEFT_STEP_BEGIN || step->kind == WEFT_STEP_GUARD ||
           step->kind == WEFT_STEP_END;
}

/* Whether operand i of a node only says which carried value is meant: it is not read there as ops read. */
bool weft_names_carry(const weft_node *node, int i);

/* From which step to which a tensor's memory is its own. All zero: nobody uses it. */
typedef struct weft_life {
    bool is_used;
    uint32_t scan; /* the innermost that holds all who use it */
    uint32_t first, last;
} weft_life;

/* weft_live - step `s`, which is of `scan`, uses it. Who uses it from within a scan that does not hold all of its users does so
 * in every trip: so it lives from that scan's begin to its end. */
void weft_live(const weft_regions *regions, weft_life *life, uint32_t scan, uint32_t s);
/* The same where nobody who uses it is in a scan. */
static inline void weft_live_outside(weft_life *life, uint32_t s)
{
    if (!life->is_used || s < life->first) life->first = s;
    if (!life->is_used || s > life->last) life->last = s;
    life->is_used = true;
}

/* Whether a step puts a new value into memory that keeps it: a variable's, or that of what its scan carries. Until order, all
 * who stand behind it and read that memory still mean the old value. */
bool weft_is_store(const weft_plan *plan, const weft_step *step);

#endif
