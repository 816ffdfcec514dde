/* trials.h (private): how large the arena would be if other steps were the plan's, found as exactly as is asked.
 *
 * A pass that moves steps asks whether the arena is no larger than it was. Packing costs more than all else here, and most often
 * a few orders of packing, or what is alive at once, say so already: so a trial is packed no further than that takes. The next
 * pass begins with the trial that this one has accepted, since equal buffers have the same trial.
 */
#ifndef WEFT_PLAN_TRIALS_H
#define WEFT_PLAN_TRIALS_H

#include "pack.h"
#include "plan.h"

typedef struct weft_trial {
    struct weft_trial *next; /* of plan->build.trials */
    int n_users;
    weft_arena *arena;
    weft_packing packing;
} weft_trial;

/* weft_trial_open - rank 0's arena if these were the plan's steps; nothing of it need be packed. Yours until weft_trial_close, and
 * known to the plan for a while longer, where somebody asks for the same. Local. */
weft_status weft_trial_open(weft_plan *plan, weft_step *steps, uint32_t n_steps, weft_trial **trial,
                            weft_error *error);
void weft_trial_close(weft_trial **trial);

/* The most that an arena may have, by one that was before: as much, a `divisor`-th of it more (0: nothing) and `more` bytes, and
 * whatever that is, `least`. */
typedef struct weft_allowance {
    int64_t divisor, more, least;
} weft_allowance;

/* weft_trial_fits - whether `after` has no more than `before` allows. Local. */
weft_status weft_trial_fits(weft_trial *after, weft_trial *before, weft_allowance allowance,
                            bool *fits, weft_error *error);
/* weft_trial_bytes - exactly. Local. */
weft_status weft_trial_bytes(weft_trial *trial, int64_t *bytes, weft_error *error);

/* weft_trial_settle - the places of the buffers of `memory`, of the plan's steps, and its bytes. Local. */
weft_status weft_trial_settle(weft_plan *plan, weft_memory *memory, weft_error *error);
/* weft_trials_end - no pass asks any more. */
void weft_trials_end(weft_plan *plan);

#endif
