/* hoist: a step that frees more memory than it allocates moves up to where its operands are ready.
 *
 * A program is built phase by phase, so what ends a value may stand far behind all that it needs: an update rule ends
 * a gradient, and needs only that nobody reads the variable's old value any more. There the gradient is still in the
 * cache, and its memory is free again for the next one. Small missing operands come along (a rate that all rules
 * read), if all together allocate no more than they free.
 *
 * A step that waits for an exchange stays in place, and so does the exchange. There ranks wait for each other, which
 * costs least where they have most to do meanwhile (schedule), and received data are not in the cache.
 *
 * Steps are never joined or parted here, and among those that do not move none gets later. So the work of fuse_horizontal
 * and bucket stays: a step of many parts comes when the last of its operands is ready. The arena does not grow: where it
 * would, since its gaps lie otherwise, it is tried again with less room. All is decided by rank 0's boxes, which are
 * the largest, so that the order of exchanges is one on all ranks.
 */
#include "passes.h"
#include "regions.h"
#include "sequence.h"
#include "trials.h"

#include <stdlib.h>

enum {
    MOST_ALONG = 16, /* steps that come along with one that moves           */
    LITTLE = 16,     /* of its bytes, the part that these may have to do with */
    MOST_TRIES = 5
};

typedef struct hoisting {
    weft_plan *plan;
    weft_error *error;
    weft_sequence sequence; /* n_needs and n_readers count those that are not placed yet */
    /* [n_steps] */
    int64_t *scratch; /* bytes                                                     */
    bool *is_done, *is_waiting;
    bool *meets;                  /* it exchanges something, or waits for who does */
    uint32_t *order, n_order;     /* the new order         */
    uint32_t *waiting, n_waiting; /* whom to look at again */
    /* [n_placed], of those whose memory it is */
    uint32_t *seen;  /* the stamp of the step that was looked at last                   */
    bool *is_output; /* it is read after the run                                        */
    uint32_t stamp;
    int64_t alive, most; /* bytes of temporaries behind the last step, and the most so far */
    int64_t room;        /* the most there may be                                          */
} hoisting;

/* ---- bytes --------------------------------------------------------------------------------------- */

/* Bytes that begin to live at a step: of results that are read, or kept. */
static int64_t made_by(hoisting *h, uint32_t s)
{
    const weft_step *step = &h->plan->steps[s];
    int64_t bytes = 0;
    h->stamp++;
    for (int o = 0; o < step->n_out; o++) {
        const uint32_t owner = weft_placed_owner(h->plan, step->out[o]);
        if (h->plan->placed[owner].home != WEFT_TEMPORARY ||
            !weft_is_first(&h->seen[owner], h->stamp))
            continue;
        if (h->sequence.n_readers[owner] || h->is_output[owner])
            bytes += weft_placed_room(h->plan, owner, 0);
    }
    return bytes;
}

/* Bytes of operands that `change` readers more have; those with no reader left live no more. */
static int64_t count_readers(hoisting *h, uint32_t s, int change)
{
    const weft_step *step = &h->plan->steps[s];
    int64_t bytes = 0;
    h->stamp++;
    for (int i = 0; i < step->n_in; i++) {
        const uint32_t owner = weft_placed_owner(h->plan, step->in[i]);
        if (!weft_is_first(&h->seen[owner], h->stamp)) continue;
        const uint32_t before = h->sequence.n_readers[owner];
        h->sequence.n_readers[owner] = (uint32_t)((int64_t)before + change);
        if (h->plan->placed[owner].home != WEFT_TEMPORARY || h->is_output[owner]) continue;
        if (!before || !h->sequence.n_readers[owner]) bytes += weft_placed_room(h->plan, owner, 0);
    }
    return bytes;
}

/* ---- the new order ------------------------------------------------------------------------------- */

/* Results of loops and of all_reduces may lie where operands end. */
static bool is_in_place(const weft_step *step)
{
    return step->kind == WEFT_STEP_LOOP ||
           (step->kind == WEFT_STEP_CONVERT && step->convert.kind == WEFT_ALL_REDUCE);
}

static void place(hoisting *h, uint32_t s)
{
    const int64_t made = made_by(h, s), ended = count_readers(h, s, -1);
    int64_t beside = is_in_place(&h->plan->steps[s]) ? made - ended : made;
    beside = (beside > 0 ? beside : 0) + h->scratch[s];
    if (h->alive + beside > h->most) h->most = h->alive + beside;
    h->alive += made - ended;
    h->is_done[s] = true;
    h->order[h->n_order++] = s;
    for (uint32_t e = h->sequence.serves[s]; e; e = h->sequence.edges[e - 1].next)
        h->sequence.n_needs[h->sequence.edges[e - 1].step]--;
}

/* All that was placed since `n_order` is not. */
static void take_back(hoisting *h, uint32_t n_order)
{
    while (h->n_order > n_order) {
        const uint32_t s = h->order[--h->n_order];
        h->is_done[s] = false;
        h->alive += count_readers(h, s, 1) - made_by(h, s);
        for (uint32_t e = h->sequence.serves[s]; e; e = h->sequence.edges[e - 1].next)
            h->sequence.n_needs[h->sequence.edges[e - 1].step]++;
    }
}

/* Step s, and before it what it still needs; false: that is too much: the order would be longer than `end`. */
static bool place_with_needs(hoisting *h, uint32_t s, uint32_t end)
{
    if (h->n_order + h->sequence.n_needs[s] >= end) return false;
    for (uint32_t e = h->sequence.needs[s]; e && h->sequence.n_needs[s];
         e = h->sequence.edges[e - 1].next) {
        const uint32_t need = h->sequence.edges[e - 1].step;
        if (!h->is_done[need] && !place_with_needs(h, need, end - 1)) return false;
    }
    place(h, s);
    return true;
}

/* Bytes of what it reads, which are there, and which nobody else will read any more. */
static int64_t ended_by(const hoisting *h, uint32_t s)
{
    const weft_plan *plan = h->plan;
    const weft_step *step = &plan->steps[s];
    int64_t bytes = 0;
    for (int i = 0; i < step->n_in; i++) {
        const uint32_t owner = weft_placed_owner(plan, step->in[i]);
        if (plan->placed[owner].home == WEFT_TEMPORARY && h->sequence.n_readers[owner] == 1 &&
            !h->is_output[owner] && h->is_done[h->sequence.writer[owner] - 1])
            bytes += weft_placed_room(h->plan, owner, 0);
    }
    return bytes;
}

/* Do those that came along, and stand between `begin` and the last, make little? */
static bool make_little(hoisting *h, uint32_t begin, int64_t bytes)
{
    int64_t made = 0;
    for (uint32_t i = begin; i + 1 < h->n_order; i++)
        made += made_by(h, h->order[i]);
    return made <= bytes / LITTLE;
}

/* Step s stands here, if no more lives behind it than before, and there is room meanwhile. One that needs too much is looked at no
 * further: it may have thousands of operands, and is met with each of them. */
static void try_here(hoisting *h, uint32_t s)
{
    if (h->is_done[s] || h->sequence.n_needs[s] > MOST_ALONG) return;
    const uint32_t begin = h->n_order;
    const int64_t alive = h->alive, most = h->most, ended = ended_by(h, s);
    if (!ended) return;
    h->most = 0;
    if (!place_with_needs(h, s, begin + 1 + MOST_ALONG) || !make_little(h, begin, ended) ||
        h->alive > alive || h->most > h->room)
        take_back(h, begin);
    if (h->n_order == begin || most > h->most) h->most = most;
}

/* ---- whom to look at again ----------------------------------------------------------------------- */

static void look_again(hoisting *h, uint32_t s)
{
    if (h->is_done[s] || h->is_waiting[s] || h->meets[s]) return;
    h->is_waiting[s] = true;
    h->waiting[h->n_waiting++] = s;
}

/* Those who come after a step, and those who are left alone with one of its operands. */
static void look_behind(hoisting *h, uint32_t s)
{
    const weft_step *step = &h->plan->steps[s];
    if (weft_is_fence(step)) return; /* all come after it */
    for (uint32_t e = h->sequence.serves[s]; e; e = h->sequence.edges[e - 1].next)
        look_again(h, h->sequence.edges[e - 1].step);
    for (int i = 0; i < step->n_in; i++) {
        const uint32_t owner = weft_placed_owner(h->plan, step->in[i]);
        if (h->sequence.n_readers[owner] != 1) continue;
        for (uint32_t e = h->sequence.reads[owner]; e; e = h->sequence.edges[e - 1].next)
            look_again(h, h->sequence.edges[e - 1].step);
    }
}

static bool comes_before(const hoisting *h, uint32_t a, uint32_t b)
{
    return h->sequence.n_needs[a] != h->sequence.n_needs[b]
               ? h->sequence.n_needs[a] < h->sequence.n_needs[b]
               : a < b;
}

/* Those that need nothing more come before those whose needs would part what has just been made from who ends it. */
static uint32_t first_waiting(hoisting *h)
{
    uint32_t at = 0;
    for (uint32_t i = 1; i < h->n_waiting; i++)
        if (comes_before(h, h->waiting[i], h->waiting[at])) at = i;
    const uint32_t s = h->waiting[at];
    h->waiting[at] = h->waiting[--h->n_waiting];
    h->is_waiting[s] = false;
    return s;
}

/* Whoever may stand right behind the step that was placed last. */
static void follow(hoisting *h)
{
    uint32_t looked = h->n_order - 1;
    do {
        while (looked < h->n_order)
            look_behind(h, h->order[looked++]);
        if (h->n_waiting > 0) try_here(h, first_waiting(h));
    } while (h->n_waiting > 0 || looked < h->n_order);
}

static void order_steps(hoisting *h, bool follows)
{
    take_back(h, 0);
    h->alive = h->most = 0;
    for (uint32_t s = 0; s < h->plan->n_steps; s++) {
        if (h->is_done[s]) continue;
        place(h, s);
        if (follows) follow(h);
    }
}

/* ---- the pass ------------------------------------------------------------------------------------ */

static weft_status take_lists(hoisting *h)
{
    const weft_plan *plan = h->plan;
    const size_t n_steps = plan->n_steps + 1, n_placed = plan->n_placed + 1;
    h->order = weft_arena_take(plan->arena, n_steps * sizeof *h->order);
    h->waiting = weft_arena_take(plan->arena, n_steps * sizeof *h->waiting);
    h->seen = weft_arena_take(plan->arena, n_placed * sizeof *h->seen);
    h->is_output = weft_arena_take(plan->arena, n_placed * sizeof *h->is_output);
    h->is_done = weft_arena_take(plan->arena, n_steps * sizeof *h->is_done);
    h->is_waiting = weft_arena_take(plan->arena, n_steps * sizeof *h->is_waiting);
    h->meets = weft_arena_take(plan->arena, n_steps * sizeof *h->meets);
    h->scratch = weft_arena_take(plan->arena, n_steps * sizeof *h->scratch);
    if (!h->order || !h->waiting || !h->seen || !h->is_output || !h->is_done || !h->is_waiting ||
        !h->meets || !h->scratch)
        return weft_fail_memory(h->error, n_steps * sizeof *h->scratch);
    return weft_find_sequence(plan, &h->sequence, h->error);
}

static weft_status look_at_steps(hoisting *h)
{
    const weft_plan *plan = h->plan;
    for (uint32_t s = 0; s < plan->n_steps; s++)
        WEFT_TRY(
            weft_keep_scratch(plan->build.moves, plan, &plan->steps[s], &h->scratch[s], h->error));
    for (uint32_t id = 1; id < plan->n_placed; id++)
        if (plan->placed[id].is_output) h->is_output[weft_placed_owner(plan, id)] = true;
    for (uint32_t s = 0; s < plan->n_steps; s++) {
        weft_exchange exchange;
        const bool is_exchange = weft_step_exchange(plan, &plan->steps[s], 0, &exchange);
        h->meets[s] |= is_exchange;
        for (uint32_t e = h->sequence.serves[s]; e; e = h->sequence.edges[e - 1].next)
            h->meets[h->sequence.edges[e - 1].step] |= is_exchange;
    }
    return WEFT_OK;
}

static bool has_moved(const hoisting *h)
{
    for (uint32_t i = 0; i < h->n_order; i++)
        if (h->order[i] != i) return true;
    return false;
}

/* Whether the new order fits; if not, there is less room from now on. No arena is smaller than what is alive at once, so in the
 * first try that is enough. */
static weft_status try_order(hoisting *h, weft_step *ordered, weft_trial *before, int i, bool *fits)
{
    weft_trial *after;
    int64_t had, has;
    const weft_allowance allowance = {.least = i == 0 ? h->room : 0};
    WEFT_TRY(weft_trial_open(h->plan, ordered, h->n_order, &after, h->error));
    WEFT_TRY(weft_trial_fits(after, before, allowance, fits, h->error));
    if (!*fits) {
        WEFT_TRY(weft_trial_bytes(before, &had, h->error));
        WEFT_TRY(weft_trial_bytes(after, &has, h->error));
        const int64_t least = had >> (MOST_TRIES - i); /* at last a half */
        h->room -= has - had > least ? has - had : least;
    }
    weft_trial_close(&after);
    return WEFT_OK;
}

/* Try until the arena is no larger than it was; false: it always is, or nothing moves. */
static weft_status find_order(hoisting *h, weft_step *ordered, bool *is_found)
{
    weft_trial *before = NULL;
    *is_found = false;
    order_steps(h, false);
    h->room = h->most;
    for (int i = 0; i < MOST_TRIES && !*is_found; i++) {
        order_steps(h, true);
        if (!has_moved(h)) break;
        for (uint32_t s = 0; s < h->n_order; s++)
            ordered[s] = h->plan->steps[h->order[s]];
        if (before == NULL)
            WEFT_TRY(weft_trial_open(h->plan, h->plan->steps, h->n_order, &before, h->error));
        WEFT_TRY(try_order(h, ordered, before, i, is_found));
    }
    weft_trial_close(&before);
    return WEFT_OK;
}

weft_status weft_pass_hoist(weft_plan *plan, weft_error *error)
{
    hoisting h = {.plan = plan, .error = error};
    bool is_found = false;
    weft_step *ordered = malloc((plan->n_steps + 1) * sizeof *ordered);
    weft_status status =
        ordered ? take_lists(&h) : weft_fail_memory(error, plan->n_steps * sizeof *ordered);
    if (status == WEFT_OK) status = look_at_steps(&h);
    if (status == WEFT_OK) status = find_order(&h, ordered, &is_found);
    if (!is_found) {
        free(ordered);
        return status;
    }
    free(plan->steps);
    plan->steps = ordered;
    plan->build.cap_steps = plan->n_steps + 1;
    return WEFT_OK;
}
