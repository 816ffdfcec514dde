/* prices: by how much a run is shorter where some of its exchanges take no time: one walk through the plan for each group of them.
 *
 * The time that ranks wait for an exchange is not its price. Without it others may be waited for in its place: those behind it on its queue, or
 * late ranks, which its group would still meet. And one that nobody waits for may hold up another. So each group is left out, and the
 * run is walked through again. Layers say the same again and again: a group is what one op of one call of the program
 * exchanges for one reason, in one phase, over the same axes.
 */
#include "prices.h"

#include "walk.h"

#include <stdlib.h>
#include <string.h>

typedef struct pricing {
    timeline t;
    uint32_t *group;           /* [n_steps] of a step, from 1; 0: it exchanges nothing */
    weft_priced_exchange *all; /* [n] by group */
    uint32_t n;
    uint32_t first; /* of the groups that are left out: run i leaves out first + i */
} pricing;

/* ---- groups -------------------------------------------------------------------------------------------- */

static bool are_equal(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool is_one_call(const weft_node *a, const weft_node *b)
{
    return a->op == b->op && a->origin.line == b->origin.line &&
           are_equal(a->origin.file, b->origin.file) &&
           are_equal(a->origin.builder, b->origin.builder);
}

static bool are_alike(const weft_plan *plan, const weft_step *a, const weft_step *b)
{
    return a->convert.kind == b->convert.kind && a->convert.axes == b->convert.axes &&
           a->phase == b->phase && are_equal(a->reason, b->reason) &&
           is_one_call(&plan->graph->nodes[a->node], &plan->graph->nodes[b->node]);
}

static uint32_t group_of(pricing *p, uint32_t s)
{
    const weft_plan *plan = p->t.plan;
    for (uint32_t g = 0; g < p->n; g++)
        if (are_alike(plan, &plan->steps[p->all[g].first], &plan->steps[s])) return g + 1;
    p->all[p->n] = (weft_priced_exchange){.first = (int)s};
    return ++p->n;
}

static void find_groups(pricing *p, const notes *noted)
{
    for (uint32_t s = 0; s < p->t.plan->n_steps; s++) {
        if (weft_axes_of(&p->t.plan->steps[s]) == 0) continue;
        p->group[s] = group_of(p, s);
        weft_priced_exchange *price = &p->all[p->group[s] - 1];
        price->n_steps++;
        price->times += noted->sums[s].times;
        price->seconds += noted->sums[s].total;
    }
}

/* ---- walks without them ---------------------------------------------------------------------------------- */

static void tempo_without(runs *r, uint32_t s, double *seconds)
{
    const pricing *p = r->context;
    const double *usual = p->t.usual + (size_t)p->t.steps[s].kind * (size_t)p->t.classes.n;
    const uint32_t out = p->group[s] - p->first; /* of the runs, if it is of any */
    for (int k = 0; k < r->n; k++)
        seconds[k] = usual[k / r->n_runs];
    for (uint32_t k = out; p->group[s] && out < (uint32_t)r->n_runs && k < (uint32_t)r->n;
         k += (uint32_t)r->n_runs)
        seconds[k] = 0;
}

static weft_status walk_without(pricing *p, double seconds, weft_arena *arena)
{
    runs r;
    if (p->n == 0) return WEFT_OK;
    WEFT_TRY(weft_runs_open(&r, &p->t, weft_runs_at_once(&p->t, (int)p->n), NULL, arena));
    r.tempo = tempo_without;
    r.context = p;
    for (p->first = 1; p->first <= p->n; p->first += (uint32_t)r.n_runs) {
        weft_walk(&r);
        for (uint32_t i = 0; i < (uint32_t)r.n_runs && p->first + i <= p->n; i++)
            p->all[p->first + i - 1].price = seconds - weft_walk_seconds(&r, (int)i);
    }
    return WEFT_OK;
}

static int dearest_first(const void *a, const void *b)
{
    const weft_priced_exchange *x = a, *y = b;
    if (x->price != y->price) return x->price < y->price ? 1 : -1;
    return x->first < y->first ? -1 : 1;
}

static weft_status find_prices(pricing *p, weft_arena *arena)
{
    runs r;
    notes noted;
    const size_t n = p->t.plan->n_steps + 1;
    p->group = weft_arena_take(arena, n * sizeof *p->group);
    p->all = weft_arena_take(arena, n * sizeof *p->all);
    if (!p->group || !p->all) return weft_fail_memory(p->t.error, n * sizeof *p->all);
    WEFT_TRY(weft_notes_open(&p->t, arena, &noted));
    WEFT_TRY(weft_runs_open(&r, &p->t, 1, &noted, arena));
    weft_walk(&r);
    find_groups(p, &noted);
    WEFT_TRY(walk_without(p, weft_walk_seconds(&r, 0), arena));
    qsort(p->all, p->n, sizeof *p->all, dearest_first);
    return WEFT_OK;
}

weft_status weft_timeline_prices(const weft_plan *plan, const weft_machine_model *model,
                                 const weft_predict_options *options, weft_priced_exchange *prices,
                                 int room, int *n, weft_error *error)
{
    pricing p = {.t = {.plan = plan, .error = error}};
    weft_arena *arena = weft_arena_create();
    *n = 0;
    if (!arena) return weft_fail_memory(error, sizeof p);
    weft_status status = weft_walk_open(&p.t, model, options, arena);
    if (status == WEFT_OK) status = find_prices(&p, arena);
    if (status == WEFT_OK) *n = (int)p.n;
    for (int i = 0; i < *n && i < room; i++)
        prices[i] = p.all[i];
    weft_arena_destroy(&arena);
    return status;
}
