/* best: of the checkpoints in a directory the one of the lowest loss of held-out data.
 *
 * Each manifest says its own loss, and no other file does. So an interrupted save cannot leave a best that is not there.
 */
#include "stored.h"

#include <stdlib.h>
#include <string.h>

/* Whether a step says a loss of `held_out`; of any, where that is NULL. */
static weft_stored *open_scored(const char *directory, int64_t step, const char *held_out)
{
    char path[WEFT_PATH_BYTES];
    weft_stored *stored = NULL;
    if (weft_step_is_damaged(directory, step) ||
        weft_step_path(path, directory, step, NULL) != WEFT_OK ||
        weft_stored_open_step(path, &stored, NULL) != WEFT_OK)
        return NULL;
    const weft_manifest *m = stored->manifest;
    if (!m->state.has_loss || (held_out != NULL && strcmp(m->held_out, held_out) != 0))
        weft_stored_close(&stored);
    return stored;
}

/* The newest first: an older one takes its place when its loss is as low. */
static bool find_best(const char *directory, const int64_t *steps, int n, const char *held_out,
                      weft_checkpoint_state *best)
{
    weft_stored *newest = NULL;
    for (int i = n - 1; i >= 0; i--) {
        weft_stored *stored = open_scored(directory, steps[i], held_out);
        if (stored == NULL) continue;
        const weft_checkpoint_state *state = &stored->manifest->state;
        if (!best->has_loss || state->loss <= best->loss) *best = *state;
        if (held_out != NULL) {
            weft_stored_close(&stored);
            continue;
        }
        newest = stored; /* what its loss is of is what all others' have to be of */
        held_out = stored->manifest->held_out;
    }
    weft_stored_close(&newest);
    return best->has_loss;
}

bool weft_stored_best(const char *directory, const char *held_out, weft_checkpoint_state *best)
{
    int64_t *steps;
    int n;
    if (best == NULL) return false;
    *best = (weft_checkpoint_state){0};
    if (directory == NULL || weft_steps_list(directory, &steps, &n, NULL) != WEFT_OK) return false;
    const bool is_there = find_best(directory, steps, n, held_out, best);
    free(steps);
    return is_there;
}
