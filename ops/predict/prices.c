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
    double **seconds;          /* [classes.n] of [n_steps]: as they are with all exchanges */
    weft_priced_exchange *all; /* [n] by group */
    uint32_t n;
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

static void find_groups(pricing *p)
{
    for (uint32_t s = 0; s < p->t.plan->n_steps; s++) {
        if (weft_axes_of(&p->t.plan->steps[s]) == 0) continue;
        p->group[s] = group_of(p, s);
        weft_priced_exchange *price = &p->all[p->group[s] - 1];
        price->n_steps++;
        price->times += p->t.sums[s].times;
        price->seconds += p->t.sums[s].total;
    }
}

/* ---- walks without them ---------------------------------------------------------------------------------- */

static void leave_out(pricing *p, uint32_t group)
{
    for (int c = 0; c < p->t.classes.n; c++)
        for (uint32_t s = 0; s < p->t.plan->n_steps; s++)
            p->t.clocks[c].seconds[s] = p->group[s] == group ? 0 : p->seconds[c][s];
}

static weft_status walk_without(pricing *p, double seconds)
{
    for (uint32_t g = 0; g < p->n; g++) {
        leave_out(p, g + 1);
        WEFT_TRY(weft_walk(&p->t));
        p->all[g].price = seconds - weft_walk_seconds(&p->t);
    }
    return WEFT_OK;
}

static int dearest_first(const void *a, const void *b)
{
    const weft_priced_exchange *x = a, *y = b;
    if (x->price != y->price) return x->price < y->price ? 1 : -1;
    return x->first < y->first ? -1 : 1;
}

static weft_status open(pricing *p, weft_arena *arena)
{
    const size_t n = p->t.plan->n_steps + 1, n_classes = (size_t)p->t.classes.n;
    p->group = weft_arena_take(arena, n * sizeof *p->group);
    p->all = weft_arena_take(arena, n * sizeof *p->all);
    p->seconds = weft_arena_take(arena, n_classes * sizeof *p->seconds);
    if (!p->group || !p->all || !p->seconds)
        return weft_fail_memory(p->t.error, n * sizeof *p->all);
    for (size_t c = 0; c < n_classes; c++) {
        p->seconds[c] = weft_arena_copy(arena, p->t.clocks[c].seconds, n * sizeof(double));
        if (!p->seconds[c]) return weft_fail_memory(p->t.error, n * sizeof(double));
    }
    return WEFT_OK;
}

static weft_status find_prices(pricing *p, weft_arena *arena, const weft_predict_options *options)
{
    weft_predict_options once = *options;
    once.draws = 0;
    WEFT_TRY(weft_walk_open(&p->t, arena, &once));
    WEFT_TRY(open(p, arena));
    WEFT_TRY(weft_walk(&p->t));
    find_groups(p);
    WEFT_TRY(walk_without(p, weft_walk_seconds(&p->t)));
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
    weft_find_classes(plan, options->slow_by > 0 ? options->slow_rank : -1, &p.t.classes);
    weft_status status =
        weft_clock_open(plan, model, options->host_ranks, p.t.classes.n, arena, &p.t.clock, error);
    if (status == WEFT_OK) status = find_prices(&p, arena, options);
    if (status == WEFT_OK) *n = (int)p.n;
    for (int i = 0; i < *n && i < room; i++)
        prices[i] = p.all[i];
    weft_arena_destroy(&arena);
    return status;
}
