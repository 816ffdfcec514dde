/* destroy: the end of a plan, and of what its passes left; and plans that differ in their last passes alone. */
#include <stdlib.h>
#include <string.h>

#include "trials.h"

static bool is_last(const weft_plan *plan)
{
    return plan->n_sharing == NULL || --*plan->n_sharing == 0;
}

void weft_plan_destroy(weft_plan **plan)
{
    weft_plan *p = *plan;
    if (!p) return;
    weft_trials_end(p);
    free(p->placed);
    free(p->steps);
    free(p->skips);
    free(p->decisions);
    if (is_last(p)) {
        weft_graph_like_destroy(&p->graph);
        weft_layout_destroy(&p->layout);
        weft_arena_destroy(&p->arena);
    }
    free(p);
    *plan = NULL;
}

/* A list of its own. NULL where there is none, and where there is no memory. */
static void *copy(const void *list, size_t bytes, bool *is_there)
{
    void *made = list ? malloc(bytes) : NULL;
    if (made) memcpy(made, list, bytes);
    *is_there = *is_there && (made != NULL || list == NULL);
    return made;
}

static bool share(weft_plan *plan)
{
    if (!plan->n_sharing) {
        plan->n_sharing = weft_arena_take(plan->arena, sizeof *plan->n_sharing);
        if (plan->n_sharing) *plan->n_sharing = 1;
    }
    return plan->n_sharing != NULL;
}

weft_plan *weft_plan_fork(weft_plan *plan)
{
    const weft_building *build = &plan->build;
    weft_plan *fork = share(plan) ? malloc(sizeof *fork) : NULL;
    bool is_there = true;
    if (!fork) return NULL;
    *fork = *plan;
    ++*fork->n_sharing;
    fork->build.trials = NULL;
    fork->placed = copy(plan->placed, build->cap_placed * sizeof *plan->placed, &is_there);
    fork->steps = copy(plan->steps, build->cap_steps * sizeof *plan->steps, &is_there);
    fork->skips = copy(plan->skips, build->cap_skips * sizeof *plan->skips, &is_there);
    fork->decisions =
        copy(plan->decisions, build->cap_decisions * sizeof *plan->decisions, &is_there);
    if (!is_there) weft_plan_destroy(&fork);
    return fork;
}
