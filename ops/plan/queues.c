/* queues: on which queue each step is, and for which steps of others it waits.
 *
 * Computation is one queue, and the exchanges over each set of axes are one. A queue does its steps in the order of
 * the list, one after the other; queues know of each other by waits alone. Before a step begins, the list and the
 * arena require two things to be over: all computation before an exchange, and every exchange that is finished by
 * then. Waits that others imply are left out: a queue knows what its steps have waited for, and with each of those
 * what that one's queue knew.
 *
 * That assumes queues in order, as streams are: of each queue the latest step that has to be over stands for all before it, here
 * and in what a queue knows. A device whose queue may begin a step before the one ahead of it is over would have to be told
 * every wait; nothing in the list of waits would say so.
 */
#include "plan.h"

#include <stdlib.h>
#include <string.h>

typedef struct queueing {
    weft_plan *plan;
    uint32_t n; /* queues */
    /* [n_steps][n] after a step: of each queue 1 + the last step that is known to be over; 0: none */
    uint32_t *known;
    uint32_t *knows; /* [n][n] the same, of each queue by now */
    uint32_t *over;  /* [n] what has to be over by now */
    uint32_t *ends,
        *next_end; /* [n_steps] the first exchange that is finished before a step, the next such; + 1 */
} queueing;

static uint32_t axes_of(const weft_step *step)
{
    return step->kind == WEFT_STEP_CONVERT ? step->convert.axes : 0;
}

static uint32_t find_queue(weft_plan *plan, uint32_t axes)
{
    uint32_t q = 0;
    while (q < plan->n_queues && plan->queues[q] != axes)
        q++;
    if (q == plan->n_queues) plan->queues[plan->n_queues++] = axes;
    return q;
}

static void find_queues(weft_plan *plan)
{
    (void)find_queue(plan, 0);
    for (uint32_t s = 0; s < plan->n_steps; s++)
        plan->timings[s].queue = find_queue(plan, axes_of(&plan->steps[s]));
}

static void find_ends(queueing *g)
{
    for (uint32_t s = g->plan->n_steps; s-- > 0;) {
        const uint32_t after = weft_step_end(&g->plan->steps[s], s) + 1;
        if (g->plan->timings[s].queue == 0 || after >= g->plan->n_steps) continue;
        g->next_end[s] = g->ends[after];
        g->ends[after] = s + 1;
    }
}

/* The latest step that has to be over and is not known to be; 0: there is none. */
static uint32_t latest_unknown(const queueing *g, uint32_t queue)
{
    uint32_t latest = 0;
    for (uint32_t q = 0; q < g->n; q++)
        if (q != queue && g->over[q] > g->knows[queue * g->n + q] && g->over[q] > latest)
            latest = g->over[q];
    return latest;
}

static void learn(uint32_t *knows, const uint32_t *from, uint32_t n)
{
    for (uint32_t q = 0; q < n; q++)
        if (from[q] > knows[q]) knows[q] = from[q];
}

/* The latest first: what it knew need not be waited for. */
static weft_status find_waits(queueing *g, uint32_t s, weft_error *error)
{
    weft_timing *timing = &g->plan->timings[s];
    uint32_t *knows = g->knows + (size_t)timing->queue * g->n, found[1 << WEFT_MAX_AXES], step;
    while ((step = latest_unknown(g, timing->queue))) {
        found[timing->n_waits++] = step - 1;
        learn(knows, g->known + (size_t)(step - 1) * g->n, g->n);
    }
    knows[timing->queue] = s + 1;
    memcpy(g->known + (size_t)s * g->n, knows, g->n * sizeof *knows);
    if (!timing->n_waits) return WEFT_OK;
    const size_t bytes = timing->n_waits * sizeof *found;
    uint32_t *waits = weft_arena_take(g->plan->arena, bytes);
    if (!waits) return weft_fail_memory(error, bytes);
    memcpy(waits, found, bytes);
    timing->waits = waits;
    return WEFT_OK;
}

static weft_status go_through(queueing *g, weft_error *error)
{
    find_ends(g);
    for (uint32_t s = 0; s < g->plan->n_steps; s++) {
        for (uint32_t e = g->ends[s]; e; e = g->next_end[e - 1]) {
            uint32_t *over = &g->over[g->plan->timings[e - 1].queue];
            if (e > *over) *over = e;
        }
        WEFT_TRY(find_waits(g, s, error));
        if (g->plan->timings[s].queue == 0) g->over[0] = s + 1;
    }
    return WEFT_OK;
}

weft_status weft_find_queues(weft_plan *plan, weft_error *error)
{
    const size_t n_steps = plan->n_steps + 1, bytes = n_steps * sizeof *plan->timings;
    plan->timings = weft_arena_take(plan->arena, bytes);
    if (!plan->timings) return weft_fail_memory(error, bytes);
    find_queues(plan);
    const size_t n = plan->n_queues, n_numbers = n_steps * (n + 2) + n * n + n;
    uint32_t *numbers = calloc(n_numbers, sizeof *numbers);
    if (!numbers) return weft_fail_memory(error, n_numbers * sizeof *numbers);
    queueing g = {plan, (uint32_t)n, numbers};
    g.knows = g.known + n_steps * n;
    g.over = g.knows + n * n;
    g.ends = g.over + n;
    g.next_end = g.ends + n_steps;
    const weft_status status = go_through(&g, error);
    free(numbers);
    return status;
}
