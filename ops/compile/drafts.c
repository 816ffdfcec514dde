/* drafts: the whole graph is placed several times, each with other beliefs about the future, and the prices are compared.
 *
 * Where values go and which sums stay partial is decided from front to end, by what is believed of what comes later. No
 * belief is right for all graphs; what a whole plan costs can be known. So each is tried, and the plan says what came out.
 */
#include "drafts.h"

#include <math.h>

static const struct {
    const char *name;
    weft_outlook outlook;
} outlooks[WEFT_DRAFTS] = {
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
static weft_status make_draft(weft_plan *plan, weft_draft_place place, void *placing, int which,
                              weft_error *error)
{
    weft_planned_draft *draft = &plan->drafts[which];
    weft_arena *own = plan->arena;
    plan->arena = weft_arena_create();
    if (!plan->arena) {
        plan->arena = own;
        return weft_fail_memory(error, sizeof *draft);
    }
    *draft = (weft_planned_draft){.name = outlooks[which].name};
    const weft_status status = place(placing, outlooks[which].outlook, draft);
    if (status == WEFT_OK) draft->peak_bytes = peak_of(plan);
    weft_arena_destroy(&plan->arena);
    plan->arena = own;
    plan->n_placed = plan->n_steps = 0;
    draft->total = draft->exchange + draft->work;
    return status;
}

/* A hundredth more is none: a scalar that lives a step longer must not cost a better plan. */
static bool is_no_more(double now, double first)
{
    return now <= 1.01 * first;
}

static bool is_allowed(const weft_planned_draft *draft, const weft_planned_draft *first)
{
    return draft->wire_bytes <= first->wire_bytes &&
           is_no_more(draft->link_bytes, first->link_bytes) &&
           is_no_more((double)draft->peak_bytes, (double)first->peak_bytes);
}

/* Prices that differ by rounding alone are equal; then the fewer messages. */
static bool is_better(const weft_planned_draft *draft, const weft_planned_draft *than)
{
    if (fabs(draft->total - than->total) > 1e-9 * than->total) return draft->total < than->total;
    return draft->n_exchanges < than->n_exchanges;
}

/* The cheapest of those that take no more than the first, in each measure. Where nothing has to be moved by names,
 * nothing can be better; where all that is believed of the future may be, half of it is not tried. */
weft_status weft_compare_drafts(weft_plan *plan, weft_draft_place place, void *placing,
                                weft_outlook *taken, weft_error *error)
{
    weft_planned_draft *drafts = plan->drafts;
    int best = 0;
    for (int i = 0; i < WEFT_DRAFTS; i++) {
        if (i == 1 && drafts[0].n_exchanges == 0) break;
        if (i == 3 && drafts[1].is_allowed) break;
        WEFT_TRY(make_draft(plan, place, placing, i, error));
        drafts[i].is_allowed = is_allowed(&drafts[i], &drafts[0]);
        if (drafts[i].is_allowed && is_better(&drafts[i], &drafts[best])) best = i;
        plan->n_drafts = i + 1;
    }
    drafts[best].is_taken = true;
    *taken = outlooks[best].outlook;
    return WEFT_OK;
}
