/* trials: arenas that passes compare. See trials.h. */
#include "trials.h"

enum { MOST_KEPT = 4 }; /* that nobody uses: the next pass begins with the last of this one */

/* ---- those that are known ------------------------------------------------------------------------ */

static bool is_same(const weft_trial *trial, const weft_memory *memory)
{
    const weft_packing *p = &trial->packing;
    if (p->n != memory->n_packed) return false;
    for (uint32_t b = 0; b < p->n; b++) {
        const weft_buffer *x = p->all[b], *y = memory->buffers[b];
        if (x->bytes != y->bytes || x->first != y->first || x->last != y->last) return false;
    }
    return true;
}

/* It goes to the front: those that nobody has asked for lately are at the end. */
static weft_trial *find(weft_plan *plan, const weft_memory *memory)
{
    weft_trial **link = &plan->build.trials, *found;
    while (*link != NULL && !is_same(*link, memory))
        link = &(*link)->next;
    if ((found = *link) == NULL) return NULL;
    *link = found->next;
    found->next = plan->build.trials;
    plan->build.trials = found;
    return found;
}

static void drop_beyond(weft_plan *plan, int n_kept)
{
    for (weft_trial **link = &plan->build.trials, *trial; (trial = *link) != NULL;) {
        if (trial->n_users > 0 || n_kept-- > 0) {
            link = &trial->next;
            continue;
        }
        *link = trial->next;
        weft_arena *arena = trial->arena; /* it lies there itself */
        weft_arena_destroy(&arena);
    }
}

static weft_status begin(weft_trial *trial, uint32_t n_steps, const weft_memory *memory,
                         weft_error *error)
{
    const uint32_t n = memory->n_packed;
    weft_buffer *buffers = weft_arena_take(trial->arena, (n + 1) * sizeof *buffers);
    weft_buffer **all = weft_arena_take(trial->arena, (n + 1) * sizeof *all);
    if (!buffers || !all) return weft_fail_memory(error, n * sizeof *buffers);
    for (uint32_t b = 0; b < n; b++) {
        buffers[b] = *memory->buffers[b];
        all[b] = &buffers[b];
    }
    return weft_pack_begin(all, n, n_steps + 1, trial->arena, &trial->packing, error);
}

static weft_status create(weft_plan *plan, uint32_t n_steps, const weft_memory *memory,
                          weft_trial **made, weft_error *error)
{
    weft_arena *arena = weft_arena_create();
    weft_trial *trial = arena ? weft_arena_take(arena, sizeof *trial) : NULL;
    weft_status status = trial ? WEFT_OK : weft_fail_memory(error, sizeof *trial);
    if (trial) trial->arena = arena;
    if (trial) status = begin(trial, n_steps, memory, error);
    if (status != WEFT_OK) {
        weft_arena_destroy(&arena);
        return status;
    }
    drop_beyond(plan, MOST_KEPT - 1);
    trial->next = plan->build.trials;
    *made = plan->build.trials = trial;
    return WEFT_OK;
}

static weft_status find_or_create(weft_plan *plan, uint32_t n_steps, const weft_memory *memory,
                                  weft_trial **trial, weft_error *error)
{
    *trial = find(plan, memory);
    return *trial ? WEFT_OK : create(plan, n_steps, memory, trial, error);
}

weft_status weft_trial_open(weft_plan *plan, weft_step *steps, uint32_t n_steps, weft_trial **trial,
                            weft_error *error)
{
    weft_memory memory;
    *trial = NULL;
    weft_arena *arena = weft_arena_create();
    if (!arena) return weft_fail_memory(error, sizeof memory);
    weft_status status = weft_plan_buffers(plan, steps, n_steps, arena, &memory, error);
    if (status == WEFT_OK) status = find_or_create(plan, n_steps, &memory, trial, error);
    weft_arena_destroy(&arena);
    if (*trial) (*trial)->n_users++;
    return status;
}

void weft_trial_close(weft_trial **trial)
{
    if (*trial) (*trial)->n_users--;
    *trial = NULL;
}

void weft_trials_end(weft_plan *plan)
{
    for (weft_trial *trial = plan->build.trials; trial != NULL; trial = trial->next)
        trial->n_users = 0;
    drop_beyond(plan, 0);
}

/* ---- what is asked of them ----------------------------------------------------------------------- */

/* No arena has fewer bytes. */
static int64_t least_of(const weft_trial *trial)
{
    return trial->packing.has_more ? trial->packing.floor : trial->packing.end;
}

static int64_t allowed_by(int64_t before, weft_allowance allowance)
{
    const int64_t more = allowance.more + (allowance.divisor > 0 ? before / allowance.divisor : 0);
    const int64_t most = before < INT64_MAX - more ? before + more : INT64_MAX;
    return most > allowance.least ? most : allowance.least;
}

/* Where `after` may still come to what `before` allows at least, that is looked for first; else, whether `before` is better. */
weft_status weft_trial_fits(weft_trial *after, weft_trial *before, weft_allowance allowance,
                            bool *fits, weft_error *error)
{
    for (;;) {
        *fits = after->packing.end <= allowed_by(least_of(before), allowance);
        if (*fits || least_of(after) > allowed_by(before->packing.end, allowance)) return WEFT_OK;
        const bool may_fit = least_of(after) <= allowed_by(least_of(before), allowance);
        weft_trial *next = may_fit ? after : before, *other = may_fit ? before : after;
        if (!next->packing.has_more) next = other;
        WEFT_TRY(weft_pack_more(&next->packing, error));
    }
}

weft_status weft_trial_bytes(weft_trial *trial, int64_t *bytes, weft_error *error)
{
    while (trial->packing.has_more)
        WEFT_TRY(weft_pack_more(&trial->packing, error));
    *bytes = trial->packing.end;
    return WEFT_OK;
}

weft_status weft_trial_settle(weft_plan *plan, weft_memory *memory, weft_error *error)
{
    weft_trial *trial;
    WEFT_TRY(find_or_create(plan, plan->n_steps, memory, &trial, error));
    WEFT_TRY(weft_trial_bytes(trial, &memory->arena_bytes, error));
    for (uint32_t b = 0; b < memory->n_packed; b++)
        memory->buffers[b]->offset = trial->packing.all[b]->offset;
    return WEFT_OK;
}
