/* schedule: exchanges go on while the rank computes.
 *
 * An exchange starts at its place in the list, and is finished right before the first step that needs that it is over:
 * a reader of its results, or a writer of what it reads. This pass finds an order in which much lies between the two. The
 * list is gone through once, on a clock that knows what steps cost and when exchanges of each group will be over, one
 * after the other. It goes in prices (policy.h), or in seconds where the plan is for a machine:
 *
 * - an exchange starts as soon as its operands are there; but where that takes memory (weights that are gathered for the
 *   next layer) only so early that nobody waits for it;
 * - a step that waits for an operand under way lets later steps go first, as long as it would have to wait anyway.
 *
 * So the order of exchanges stays one on all ranks (all is decided by rank 0's boxes), and nothing is decided when it
 * runs. An exchange under way keeps its memory. Where memory peaks, due exchanges end first; where the arena would
 * grow by more than a quarter, exchanges finish as soon as they are due, or fewer start ahead.
 */
#include "clock.h"
#include "passes.h"
#include "sequence.h"
#include "trials.h"

#include <math.h>
#include <stdlib.h>

enum { N_TRIES = 6, ROOM_DIVISOR = 4, N_FREED = 5 };
/* How late an exchange may be, in its prices, where memory is the cost. */
enum { SLACK_AT_MOST = 1 };

/* What is tried, until the arena fits. */
typedef struct measure {
    /* How far ahead steps are taken, in the times that have to be filled. 0: none is, and only what lies behind an exchange
     * anyway is done meanwhile */
    double lead;
    /* an exchange is given so many times its price to be late, then it is waited for: its memory is free */
    double slack;
} measure;
static const measure tries[N_TRIES] = {{1, INFINITY}, {1, 4},      {1, 1},
                                       {0.5, 1},      {0.25, 0.5}, {0, 0}};

typedef struct need {
    double at;
    uint32_t step;
} need;

/* What every order is made by: found once. */
typedef struct prices {
    bool *is_exchange; /* [n_steps] */
    double *price;     /* [n_steps] */
    double *begins;    /* [n_steps + 1] when it would begin if exchanges took no time */
    bool *is_free;     /* [n_steps] of an exchange: begun early it takes no more memory */
    double *latest;    /* [n_steps] of an exchange: when it has to begin, so that nobody waits */
    need *needs;       /* [n_exchanges] when they are needed, in this order */
    uint32_t *turn;    /* [n_steps] of an exchange: its place there */
} prices;

/* Steps that are not in the new order yet. */
typedef struct waiting {
    uint32_t *n_left; /* [n_steps] of n_needs */
    double *ready_at; /* [n_steps] when all that it waits for is over */
    uint32_t *heap;   /* [n_heap] that wait for nothing but time, the first in the list on top */
    uint32_t *held;   /* [n_held] exchanges whose operands are there */
    uint32_t *flying; /* [n_flying] steps whose operands will be there */
    uint32_t n_heap, n_held, n_flying;
} waiting;

typedef struct timing {
    double clock;
    double over_at[1 << WEFT_MAX_AXES]; /* by axes: when the last exchange is over */
} timing;

typedef struct scheduling {
    weft_plan *plan;
    weft_error *error;
    uint32_t n_steps;
    weft_sequence sequence;
    prices prices;
    /* One order: */
    measure now;
    waiting waiting;
    timing time;
    double *starts;     /* by place: when a step begins */
    double *over;       /* by step: when it is over */
    weft_step *ordered; /* [n_steps] */
    uint32_t *place;    /* [n_steps] in the new order + 1; 0: none yet */
    uint32_t *ends;     /* [n_steps] `until`, by place */
    uint32_t n_ordered;
} scheduling;

/* ---- prices --------------------------------------------------------------------------------------- */

/* Begun earlier, an exchange keeps its results alive for longer, and what it alone reads for shorter. */
static bool takes_no_more(const weft_plan *plan, const uint32_t *n_readers, const weft_step *step)
{
    int64_t bytes = 0;
    for (int k = 0; k < step->n_in; k++) {
        const uint32_t operand = weft_placed_owner(plan, step->in[k]);
        const bool dies = plan->placed[operand].home == WEFT_TEMPORARY && n_readers[operand] == 1 &&
                          !plan->placed[step->in[k]].is_output;
        bytes += weft_placed_bytes(plan, step->out[k], 0);
        if (dies) bytes -= weft_placed_bytes(plan, step->in[k], 0);
    }
    return bytes <= 0;
}

static void find_free(scheduling *g)
{
    for (uint32_t s = 0; s < g->n_steps; s++)
        g->prices.is_free[s] = g->prices.is_exchange[s] &&
                               takes_no_more(g->plan, g->sequence.n_readers, &g->plan->steps[s]);
}

/* When the first step that waits for an exchange would begin if exchanges took no time. */
static double needed_at(const scheduling *g, uint32_t s)
{
    double at = g->prices.begins[g->n_steps];
    for (uint32_t e = g->sequence.serves[s]; e; e = g->sequence.edges[e - 1].next)
        at = fmin(at, g->prices.begins[g->sequence.edges[e - 1].step]);
    return at;
}

static int sooner(const void *a, const void *b)
{
    const need *x = a, *y = b;
    if (x->at != y->at) return x->at < y->at ? -1 : 1;
    return x->step < y->step ? -1 : 1;
}

/* An exchange has to be over when it is needed, and before the next of its group has to begin: of those that are there, the one
 * that is needed first goes first. */
static void find_latest(scheduling *g)
{
    double last[1 << WEFT_MAX_AXES];
    uint32_t n = 0;
    for (int axes = 0; axes < 1 << WEFT_MAX_AXES; axes++)
        last[axes] = INFINITY;
    for (uint32_t s = 0; s < g->n_steps; s++)
        if (g->prices.is_exchange[s]) g->prices.needs[n++] = (need){needed_at(g, s), s};
    qsort(g->prices.needs, n, sizeof *g->prices.needs, sooner);
    while (n-- > 0) {
        const uint32_t s = g->prices.needs[n].step;
        double *next = &last[g->plan->steps[s].convert.axes];
        g->prices.latest[s] = *next = fmin(g->prices.needs[n].at, *next) - g->prices.price[s];
        g->prices.turn[s] = n;
    }
}

static double usual_price(const weft_plan *plan, const weft_step *step)
{
    weft_exchange exchange;
    if (!weft_step_exchange(plan, step, 0, &exchange)) return weft_step_work(plan, step);
    return weft_exchange_price(plan, &plan->build.cost, &exchange) +
           weft_latency_price(plan, exchange.axes);
}

/* In seconds of the machine that the plan is for; where it is for none, in prices. */
static weft_status price_steps(scheduling *g, double *price)
{
    weft_plan *plan = g->plan;
    const weft_machine_model *machine = plan->build.machine;
    weft_clock clock = {0};
    if (machine)
        WEFT_TRY(weft_clock_open(plan, machine, 0, plan->n_steps, plan->arena, &clock, g->error));
    for (uint32_t s = 0; s < g->n_steps; s++) {
        const weft_step *step = &plan->steps[s];
        price[s] = machine ? weft_clock_step(&clock, step, 0).seconds : usual_price(plan, step);
    }
    return WEFT_OK;
}

static weft_status find_prices(scheduling *g)
{
    weft_exchange exchange;
    prices *p = &g->prices;
    WEFT_TRY(price_steps(g, p->price));
    for (uint32_t s = 0; s < g->n_steps; s++) {
        p->is_exchange[s] = weft_step_exchange(g->plan, &g->plan->steps[s], 0, &exchange);
        p->begins[s + 1] = p->begins[s] + (p->is_exchange[s] ? 0 : p->price[s]);
    }
    find_latest(g);
    return WEFT_OK;
}

/* ---- one order ------------------------------------------------------------------------------------ */

static void push(scheduling *g, uint32_t s)
{
    uint32_t at = g->waiting.n_heap++;
    for (; at > 0 && g->waiting.heap[(at - 1) / 2] > s; at = (at - 1) / 2)
        g->waiting.heap[at] = g->waiting.heap[(at - 1) / 2];
    g->waiting.heap[at] = s;
}

static uint32_t pop(scheduling *g)
{
    const uint32_t top = g->waiting.heap[0], last = g->waiting.heap[--g->waiting.n_heap];
    uint32_t at = 0;
    for (uint32_t child; (child = 2 * at + 1) < g->waiting.n_heap; at = child) {
        if (child + 1 < g->waiting.n_heap && g->waiting.heap[child + 1] < g->waiting.heap[child])
            child++;
        if (g->waiting.heap[child] >= last) break;
        g->waiting.heap[at] = g->waiting.heap[child];
    }
    g->waiting.heap[at] = last;
    return top;
}

/* Step `s` stands next. What waited for nothing else can follow when it is over. */
static void put(scheduling *g, uint32_t s, double over_at)
{
    g->ordered[g->n_ordered] = g->plan->steps[s];
    g->starts[g->n_ordered] = g->time.clock;
    g->over[s] = over_at;
    g->place[s] = ++g->n_ordered;
    for (uint32_t e = g->sequence.serves[s]; e; e = g->sequence.edges[e - 1].next) {
        const uint32_t to = g->sequence.edges[e - 1].step;
        g->waiting.ready_at[to] = fmax(g->waiting.ready_at[to], over_at);
        if (--g->waiting.n_left[to] == 0) g->waiting.flying[g->waiting.n_flying++] = to;
    }
}

static void put_work(scheduling *g, uint32_t s)
{
    put(g, s, g->time.clock + g->prices.price[s]);
    g->time.clock += g->prices.price[s];
}

static void put_exchange(scheduling *g, uint32_t s)
{
    double *over_at = &g->time.over_at[g->plan->steps[s].convert.axes];
    *over_at = fmax(g->time.clock, *over_at) + g->prices.price[s];
    put(g, s, *over_at);
}

/* Which is needed first stands first. */
static void hold(scheduling *g, uint32_t s)
{
    uint32_t at = g->waiting.n_held++;
    for (; at > 0 && g->prices.turn[g->waiting.held[at - 1]] > g->prices.turn[s]; at--)
        g->waiting.held[at] = g->waiting.held[at - 1];
    g->waiting.held[at] = s;
}

/* Steps whose operands are there by now. */
static void land(scheduling *g)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < g->waiting.n_flying; i++) {
        const uint32_t s = g->waiting.flying[i];
        if (g->waiting.ready_at[s] > g->time.clock)
            g->waiting.flying[kept++] = s;
        else if (g->prices.is_exchange[s])
            hold(g, s);
        else
            push(g, s);
    }
    g->waiting.n_flying = kept;
}

/* Whether exchange `s` begins before step `next`: it is that, or it costs nothing to begin, or after it somebody would wait.
 */
static bool begins_now(const scheduling *g, uint32_t s, uint32_t next)
{
    const double late = g->prices.latest[s] - g->now.lead * g->prices.price[s];
    return s == next ||
           (g->now.lead > 0 && (g->prices.is_free[s] || g->prices.begins[next + 1] > late));
}

static void start_exchanges(scheduling *g, uint32_t next)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < g->waiting.n_held; i++) {
        if (begins_now(g, g->waiting.held[i], next))
            put_exchange(g, g->waiting.held[i]);
        else
            g->waiting.held[kept++] = g->waiting.held[i];
    }
    g->waiting.n_held = kept;
}

/* Step `next` has been the first in the list since `reached`. Where it waits for an exchange, a step behind it is done,
 * unless that lies further ahead than the wait is long; else time goes by. */
static void go_on(scheduling *g, uint32_t next, double reached)
{
    const double wait = g->now.lead * (g->waiting.ready_at[next] - reached);
    const bool has_work = g->waiting.n_heap > 0 &&
                          g->prices.begins[g->waiting.heap[0]] - g->prices.begins[next] <= wait;
    if (g->waiting.n_heap > 0 && (g->waiting.heap[0] == next || (has_work && g->now.lead > 0)))
        put_work(g, pop(g));
    else
        g->time.clock = g->waiting.ready_at[next];
}

/* The first place behind that of exchange `s` where it is late by so many times its price. */
static uint32_t find_late(const scheduling *g, uint32_t s, double slack)
{
    uint32_t at = g->place[s];
    while (at < g->n_steps && g->starts[at] < g->over[s] + slack * g->prices.price[s])
        at++;
    return at;
}

/* Until when each exchange goes on, by what waits for it. */
static void find_ends(scheduling *g)
{
    for (uint32_t s = 0; s < g->n_steps; s++) {
        if (!g->prices.is_exchange[s]) continue;
        uint32_t until = find_late(g, s, g->now.slack);
        for (uint32_t e = g->sequence.serves[s]; e; e = g->sequence.edges[e - 1].next) {
            const uint32_t at = g->place[g->sequence.edges[e - 1].step] - 1;
            if (at < until) until = at;
        }
        g->ordered[g->place[s] - 1].until = until;
    }
}

static void make_order(scheduling *g, measure now)
{
    double reached = 0;
    uint32_t next = 0;
    g->now = now;
    g->time.clock = 0;
    g->n_ordered = g->waiting.n_heap = g->waiting.n_held = g->waiting.n_flying = 0;
    for (int axes = 0; axes < 1 << WEFT_MAX_AXES; axes++)
        g->time.over_at[axes] = 0;
    for (uint32_t s = 0; s < g->n_steps; s++) {
        g->place[s] = 0;
        g->waiting.ready_at[s] = 0;
        g->waiting.n_left[s] = g->sequence.n_needs[s];
        if (g->waiting.n_left[s] == 0) g->waiting.flying[g->waiting.n_flying++] = s;
    }
    while (g->n_ordered < g->n_steps) {
        for (; g->place[next]; next++)
            reached = g->time.clock;
        land(g);
        start_exchanges(g, next);
        if (!g->place[next]) go_on(g, next, reached);
    }
    find_ends(g);
}

/* ---- the pass --------------------------------------------------------------------------------------- */

static weft_status open_scheduling(scheduling *g)
{
    weft_arena *arena = g->plan->arena;
    const size_t n = g->n_steps + 1;
    uint32_t **const numbers[] = {&g->place,        &g->ends,         &g->waiting.n_left,
                                  &g->waiting.heap, &g->waiting.held, &g->waiting.flying,
                                  &g->prices.turn};
    double **const times[] = {&g->prices.price,     &g->prices.begins, &g->prices.latest,
                              &g->waiting.ready_at, &g->starts,        &g->over};
    bool is_there = true;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        is_there &= (*numbers[i] = weft_arena_take(arena, n * sizeof(uint32_t))) != NULL;
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        is_there &= (*times[i] = weft_arena_take(arena, n * sizeof(double))) != NULL;
    g->prices.is_exchange = weft_arena_take(arena, n * sizeof *g->prices.is_exchange);
    g->prices.is_free = weft_arena_take(arena, n * sizeof *g->prices.is_free);
    g->prices.needs = weft_arena_take(arena, n * sizeof *g->prices.needs);
    g->ordered = calloc(n, sizeof *g->ordered);
    if (!is_there || !g->prices.is_exchange || !g->prices.is_free || !g->prices.needs ||
        !g->ordered)
        return weft_fail_memory(g->error, n * sizeof *g->ordered);
    WEFT_TRY(weft_find_sequence(g->plan, &g->sequence, g->error));
    WEFT_TRY(find_prices(g));
    find_free(g);
    return WEFT_OK;
}

/* Exchanges that go on at this place and should be over by then end before it; whether there are any. */
static bool end_before(scheduling *g, uint32_t fullest)
{
    bool is_earlier = false;
    for (uint32_t s = 0; s < g->n_steps; s++) {
        weft_step *step = &g->ordered[g->place[s] - 1];
        if (!g->prices.is_exchange[s] || g->place[s] > fullest || step->until <= fullest) continue;
        const uint32_t late = find_late(g, s, SLACK_AT_MOST);
        if (late > fullest) continue;
        step->until = late;
        is_earlier = true;
    }
    return is_earlier;
}

static void keep_ends(const scheduling *g, uint32_t *ends)
{
    for (uint32_t at = 0; at < g->n_steps; at++)
        ends[at] = g->ordered[at].until;
}

/* The better one stays open, with its ends. */
static weft_status compare(scheduling *g, weft_trial **best, weft_trial *trial)
{
    bool is_no_better = false;
    weft_status status = WEFT_OK;
    if (*best) status = weft_trial_fits(*best, trial, (weft_allowance){0}, &is_no_better, g->error);
    if (status != WEFT_OK || is_no_better) {
        weft_trial_close(&trial);
        return status;
    }
    keep_ends(g, g->ends);
    weft_trial_close(best);
    *best = trial;
    return WEFT_OK;
}

/* Where most is alive nothing is kept for an exchange that should be over: the ends by which the arena is smallest. */
static weft_status free_fullest(scheduling *g, weft_trial *before, weft_trial **best)
{
    *best = NULL;
    for (int i = 0; i < N_FREED; i++) {
        weft_trial *trial;
        bool fits;
        WEFT_TRY(weft_trial_open(g->plan, g->ordered, g->n_steps, &trial, g->error));
        const uint32_t fullest = trial->packing.fullest;
        WEFT_TRY(compare(g, best, trial));
        WEFT_TRY(weft_trial_fits(*best, before, (weft_allowance){0}, &fits, g->error));
        if (fits || !end_before(g, fullest)) break;
    }
    for (uint32_t at = 0; at < g->n_steps; at++)
        g->ordered[at].until = g->ends[at];
    return WEFT_OK;
}

/* The first whose arena fits. */
static weft_status find_order(scheduling *g, bool *is_found)
{
    weft_trial *before, *after;
    *is_found = false;
    WEFT_TRY(weft_trial_open(g->plan, g->plan->steps, g->n_steps, &before, g->error));
    for (int i = 0; i < N_TRIES && !*is_found; i++) {
        make_order(g, tries[i]);
        WEFT_TRY(free_fullest(g, before, &after));
        WEFT_TRY(weft_trial_fits(after, before, (weft_allowance){.divisor = ROOM_DIVISOR}, is_found,
                                 g->error));
        weft_trial_close(&after);
    }
    weft_trial_close(&before);
    return WEFT_OK;
}

static bool has_exchanges(const weft_plan *plan)
{
    weft_exchange exchange;
    for (uint32_t s = 0; s < plan->n_steps; s++)
        if (weft_step_exchange(plan, &plan->steps[s], 0, &exchange)) return true;
    return false;
}

weft_status weft_pass_schedule(weft_plan *plan, weft_error *error)
{
    scheduling g = {.plan = plan, .error = error, .n_steps = plan->n_steps};
    bool is_found = false;
    if (plan->build.is_synchronous || !has_exchanges(plan)) return WEFT_OK;
    weft_status status = open_scheduling(&g);
    if (status == WEFT_OK) status = find_order(&g, &is_found);
    if (!is_found) {
        free(g.ordered);
        return status;
    }
    free(plan->steps);
    plan->steps = g.ordered;
    plan->build.cap_steps = plan->n_steps + 1;
    return WEFT_OK;
}
