/* candidates: the whole graph is placed several times, each time by another heuristic, and the cheapest placement is taken.
 *
 * Placement goes through the graph from front to end. A heuristic (an *outlook*) guesses what later ops will need. No
 * heuristic is right for all graphs, but the cost of a whole plan can be computed. So each is tried, and the plan keeps
 * the costs of all.
 */
#include "candidates.h"

#include <math.h>

static const struct {
    const char *name;
    weft_outlook outlook;
} outlooks[WEFT_CANDIDATES] = {
    {"names", {0}},
    {"readers and sums", {.readers = true, .sums = true}},
    {"what is held", {.readers = true, .sums = true, .held = true}},
    {"sums", {.sums = true}},
    {"readers", {.readers = true}},
};

/* The most bytes of rank 0's temporaries that are alive at once, were every step run by itself. */
static int64_t peak_of(weft_plan *plan)
{
    int64_t alive = 0, peak = 0;
    for (uint32_t s = plan->n_steps; s-- > 0;) { /* from the last: what is met first is used last */
        const weft_step *step = &plan->steps[s];
        for (int i = 0; i < step->n_in + step->n_out; i++) {
            const uint32_t id = i < step->n_in ? step->in[i] : step->out[i - step->n_in];
            weft_placed *placed = &plan->placed[id];
            if (placed->home != WEFT_TEMPORARY || placed->last_step) continue;
            placed->last_step = 1;
            alive += weft_placed_bytes(plan, id, 0);
        }
        if (alive > peak) peak = alive;
        for (int o = 0; o < step->n_out; o++)
            if (plan->placed[step->out[o]].home == WEFT_TEMPORARY)
                alive -= weft_placed_bytes(plan, step->out[o], 0);
    }
    return peak;
}

/* Everything as if it were for good, in memory that is given back. */
static weft_status make_draft(weft_plan *plan, weft_candidate_place place, void *placing, int which,
                              weft_error *error)
{
    weft_planned_candidate *candidate = &plan->candidates[which];
    weft_arena *own = plan->arena;
    plan->arena = weft_arena_create();
    if (!plan->arena) {
        plan->arena = own;
        return weft_fail_memory(error, sizeof *candidate);
    }
    *candidate = (weft_planned_candidate){.name = outlooks[which].name};
    const weft_status status = place(placing, candidate);
    if (status == WEFT_OK) candidate->peak_bytes = peak_of(plan);
    weft_arena_destroy(&plan->arena);
    plan->arena = own;
    plan->n_placed = plan->n_steps = 0;
    candidate->total = candidate->exchange + candidate->work;
    return status;
}

/* A hundredth more is none: a scalar that lives a step longer must not cost a better plan. */
static bool is_no_more(double now, double first)
{
    return now <= 1.01 * first;
}

static bool is_allowed(const weft_planned_candidate *candidate, const weft_planned_candidate *first)
{
    return candidate->wire_bytes <= first->wire_bytes &&
           is_no_more(candidate->link_bytes, first->link_bytes) &&
           is_no_more((double)candidate->peak_bytes, (double)first->peak_bytes);
}

/* Prices that differ by rounding alone are equal; then the fewer messages. */
static bool is_better(const weft_planned_candidate *candidate, const weft_planned_candidate *than)
{
    if (fabs(candidate->total - than->total) > 1e-9 * than->total)
        return candidate->total < than->total;
    return candidate->n_exchanges < than->n_exchanges;
}

/* The first with these beliefs. */
static int find_same(const uint64_t *beliefs, int which)
{
    int at = 0;
    while (beliefs[at] != beliefs[which])
        at++;
    return at;
}

/* The cheapest of those that take no more than the first, in each measure. Where nothing has to be moved by names,
 * nothing can be better; where all that is believed of the future may be, half of it is not tried. */
weft_status weft_compare_candidates(weft_plan *plan, weft_draft_look look,
                                    weft_candidate_place place, void *placing, weft_outlook *taken,
                                    weft_error *error)
{
    weft_planned_candidate *candidates = plan->candidates;
    uint64_t beliefs[WEFT_CANDIDATES];
    int best = 0;
    for (int i = 0; i < WEFT_CANDIDATES; i++) {
        if (i == 1 && candidates[0].n_exchanges == 0) break;
        if (i == 3 && candidates[1].is_allowed) break;
        WEFT_TRY(look(placing, outlooks[i].outlook, &beliefs[i]));
        const int same = find_same(beliefs, i);
        if (same == i)
            WEFT_TRY(make_draft(plan, place, placing, i, error));
        else
            candidates[i] = candidates[same], candidates[i].name = outlooks[i].name;
        candidates[i].is_allowed = is_allowed(&candidates[i], &candidates[0]);
        if (candidates[i].is_allowed && is_better(&candidates[i], &candidates[best])) best = i;
        plan->n_candidates = i + 1;
    }
    candidates[best].is_taken = true;
    *taken = outlooks[best].outlook;
    return WEFT_OK;
}
