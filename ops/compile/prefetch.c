/* prefetch: what a trip of a scan brings from outside by an exchange is brought for the trip after it while this one computes.
 *
 * Of a stack of weights that ZeRO 3 stores split, each trip sees an element and gathers it, which waits for nothing
 * but the number of the trip. So such a *chain*, from scan_each to the conversion that the body reads, stands twice.
 * Before the region it serves the first trip. In it, it serves the next trip (weft_step.is_ahead), and the last trip
 * leaves it out: as many exchanges and bytes as before. In the body there are two places for it:
 *
 * - behind the last step that reads what this trip has, in the same memory, which is nobody else's any more;
 * - where it stood, into memory of its own, from which it is copied when the next trip gets there.
 *
 * Taken is what leaves least of the exchange to be waited for, by the prices of the cost function, the copies counted. The
 * arena of rank 0 grows by a quarter at most: what gains least is left as it was.
 */
#include "passes.h"
#include "regions.h"
#include "trials.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM_DIVISOR = 4 };
static const uint32_t SEVERAL = UINT32_MAX; /* who makes it */

typedef struct chain {
    uint32_t begin;   /* the last of its steps that sees an element */
    uint32_t root;    /* the conversion that the body reads */
    uint32_t front;   /* what is for the first trip stands before this step, */
    uint32_t after;   /* and behind this one what is for the next */
    bool is_copied;   /* into memory of its own, and from there: */
    uint32_t *copies; /* [n_out of the root] */
    double gain;      /* 0: the chain stays as it was */
} chain;

typedef struct prefetching {
    weft_plan *plan;
    weft_error *error;
    weft_regions regions;
    uint32_t *maker;     /* [n_placed] the one step that writes it, + 1; 0: none; SEVERAL */
    uint32_t *n_readers; /* [n_placed] steps */
    bool *is_apart;      /* [n_steps] it depends on the number of the trip alone */
    bool *is_inner;      /* [n_steps] of these: another of them alone reads it */
    uint32_t *chain_of;  /* [n_steps] + 1; 0: none */
    double *begins; /* [n_steps + 1] the work of a run in all steps before, but for exchanges */
    chain *chains;  /* [n_chains] */
    uint32_t n_chains;
    weft_step *steps; /* [n_steps] the new list */
    uint32_t n_steps;
} prefetching;

/* ---- chains ---------------------------------------------------------------------------------------- */

static void look_at_uses(prefetching *p)
{
    const weft_plan *plan = p->plan;
    for (uint32_t s = 0; s < plan->n_steps; s++) {
        const weft_step *step = &plan->steps[s];
        for (int i = 0; i < step->n_in; i++)
            p->n_readers[weft_placed_owner(plan, step->in[i])]++;
        for (int o = 0; o < step->n_out; o++) {
            uint32_t *maker = &p->maker[weft_placed_owner(plan, step->out[o])];
            *maker = *maker == 0 ? s + 1 : SEVERAL;
        }
    }
}

/* Whoever may leave a trip early brings nothing for the next. */
static bool is_open(const prefetching *p, uint32_t scan)
{
    return scan != 0 && p->regions.guard[scan] == p->regions.begin[scan] &&
           p->plan->graph->scans[scan].trips > 1;
}

/* A temporary of its own that step `s` alone writes. */
static bool is_made_by(const prefetching *p, uint32_t placed, uint32_t s)
{
    const weft_placed *it = &p->plan->placed[placed];
    return it->home == WEFT_TEMPORARY && it->shares == 0 && it->carried == 0 && !it->is_output &&
           p->maker[placed] == s + 1;
}

/* Of an exchange of several tensors others may read some. */
static bool reads_all(const weft_step *step, const weft_step *maker)
{
    for (int o = 0; o < maker->n_out; o++) {
        int i = 0;
        while (i < step->n_in && step->in[i] != maker->out[o])
            i++;
        if (i == step->n_in) return false;
    }
    return true;
}

/* The step of the same trip that makes operand i, and nothing for others, + 1. */
static uint32_t maker_of(const prefetching *p, const weft_step *step, int i)
{
    const uint32_t placed = step->in[i], maker = p->maker[placed];
    if (maker == 0 || maker == SEVERAL || p->n_readers[placed] != 1 ||
        p->plan->placed[placed].shares != 0)
        return 0;
    const weft_step *its = &p->plan->steps[maker - 1];
    return p->is_apart[maker - 1] && its->scan == step->scan && reads_all(step, its) ? maker : 0;
}

static bool begins_chain(const prefetching *p, const weft_step *step)
{
    const weft_node *node = &p->plan->graph->nodes[step->node];
    return step->kind == WEFT_STEP_COPY && node->op == &weft_op_scan_each &&
           weft_scan_of(node)->scan == step->scan;
}

static bool goes_on_chain(const prefetching *p, const weft_step *step)
{
    if (step->kind != WEFT_STEP_CONVERT) return false;
    for (int i = 0; i < step->n_in; i++)
        if (maker_of(p, step, i) == 0) return false;
    return true;
}

static void find_apart(prefetching *p)
{
    for (uint32_t s = 0; s < p->plan->n_steps; s++) {
        const weft_step *step = &p->plan->steps[s];
        if (!is_open(p, step->scan)) continue;
        p->is_apart[s] = begins_chain(p, step) || goes_on_chain(p, step);
        for (int o = 0; o < step->n_out; o++)
            p->is_apart[s] = p->is_apart[s] && is_made_by(p, step->out[o], s);
        for (int i = 0; p->is_apart[s] && step->kind == WEFT_STEP_CONVERT && i < step->n_in; i++)
            p->is_inner[maker_of(p, step, i) - 1] = true;
    }
}

/* The steps that lead to `s`, and it, are of this chain; what they exchange costs so much, in a trip. */
static double take_chain(prefetching *p, uint32_t s, chain *c)
{
    const weft_step *step = &p->plan->steps[s];
    weft_exchange exchange;
    double price = 0;
    p->chain_of[s] = (uint32_t)(c - p->chains) + 1;
    if (step->kind == WEFT_STEP_COPY && s > c->begin) c->begin = s;
    if (weft_step_exchange(p->plan, step, 0, &exchange))
        price = weft_exchange_price(p->plan, &p->plan->build.cost, &exchange) +
                weft_latency_price(p->plan, exchange.axes);
    for (int i = 0; step->kind == WEFT_STEP_CONVERT && i < step->n_in; i++) {
        const uint32_t maker = maker_of(p, step, i) - 1;
        if (p->chain_of[maker] == 0) price += take_chain(p, maker, c);
    }
    return price;
}

/* ---- what is gained -------------------------------------------------------------------------------- */

/* Where among the steps of `scan` itself step `s` is done: where the scan within that holds it begins, or ends. */
static uint32_t lift(const prefetching *p, uint32_t s, uint32_t scan, const uint32_t *fences)
{
    const weft_scan *scans = p->plan->graph->scans;
    uint32_t within = p->plan->steps[s].scan;
    if (within == scan) return s;
    while (scans[within].parent != scan)
        within = scans[within].parent;
    return fences[within];
}

static bool reads(const prefetching *p, uint32_t s, const weft_step *root)
{
    const weft_step *step = &p->plan->steps[s];
    for (int i = 0; i < step->n_in; i++)
        for (int o = 0; o < root->n_out; o++)
            if (weft_placed_owner(p->plan, step->in[i]) == root->out[o]) return true;
    return false;
}

static void find_readers(const prefetching *p, uint32_t root, uint32_t *first, uint32_t *last)
{
    const weft_step *its = &p->plan->steps[root];
    *first = *last = root;
    for (uint32_t s = root + 1; s < p->regions.end[its->scan]; s++) {
        if (!reads(p, s, its)) continue;
        if (*first == root) *first = lift(p, s, its->scan, p->regions.begin);
        *last = lift(p, s, its->scan, p->regions.end);
    }
}

/* The first place in front of the scan, behind what other scans' bodies may change, where there is all that the chain begins with. */
static uint32_t find_front(const prefetching *p, const chain *c)
{
    const weft_plan *plan = p->plan;
    const uint32_t begin = p->regions.begin[plan->steps[c->root].scan];
    uint32_t front = begin;
    while (front > 0 && !weft_is_fence(&plan->steps[front - 1]))
        front--;
    for (uint32_t s = begin; s < c->root; s++) {
        if (p->chain_of[s] == 0 || &p->chains[p->chain_of[s] - 1] != c ||
            plan->steps[s].kind != WEFT_STEP_COPY)
            continue;
        const uint32_t maker = p->maker[weft_placed_owner(plan, plan->steps[s].in[0])];
        if (maker == SEVERAL) return begin;
        if (maker > front && maker <= begin) front = maker;
    }
    return front;
}

/* Of a run. A copy is read and written; nodes of scans say how theirs go on from trip to trip. */
static double copy_price(const prefetching *p, const weft_step *root)
{
    double bytes = 0;
    for (int o = 0; o < root->n_out; o++)
        bytes += (double)weft_placed_bytes(p->plan, root->out[o], 0);
    const weft_op *op = p->plan->graph->nodes[root->node].op;
    if (op == &weft_op_scan_each || op == &weft_op_scan_stack) return INFINITY;
    return weft_trips_of(p->plan->graph, root->scan) * bytes / WEFT_COPIES_PER_BYTE;
}

/* How much of the exchange goes on beside work: from where it can begin to its first reader, as it is; behind its last; or all
 * the time. Exchanges that stay go over the link one after the other: it is free again at `free`. */
static void weigh(const prefetching *p, chain *c, double price, double *free)
{
    const weft_step *root = &p->plan->steps[c->root];
    const double begin = p->begins[p->regions.begin[root->scan]],
                 end = p->begins[p->regions.end[root->scan]];
    uint32_t first, last;
    find_readers(p, c->root, &first, &last);
    const double over = fmax(*free, p->begins[c->begin]) + price;
    const double hidden = price - fmin(price, fmax(0, over - p->begins[first]));
    const double behind = fmin(price, end - p->begins[last + 1]);
    const double always = fmin(price, end - begin) - copy_price(p, root);
    c->is_copied = always > behind;
    c->after = c->is_copied ? c->root : last;
    c->gain = fmax(0, fmax(behind, always) - hidden);
    c->front = find_front(p, c);
    if (c->gain == 0) *free = over;
}

static void find_chains(prefetching *p)
{
    double free = 0;
    for (uint32_t s = 0; s < p->plan->n_steps; s++) {
        const weft_step *step = &p->plan->steps[s];
        if (step->kind == WEFT_STEP_BEGIN) free = p->begins[s];
        if (!p->is_apart[s] || p->is_inner[s] || step->kind != WEFT_STEP_CONVERT) continue;
        chain *c = &p->chains[p->n_chains++];
        c->root = s;
        const double price = weft_trips_of(p->plan->graph, step->scan) * take_chain(p, s, c);
        if (price > 0) weigh(p, c, price, &free);
    }
}

static void add_up_work(prefetching *p)
{
    weft_exchange exchange;
    for (uint32_t s = 0; s < p->plan->n_steps; s++) {
        const weft_step *step = &p->plan->steps[s];
        const bool exchanges = weft_step_exchange(p->plan, step, 0, &exchange);
        p->begins[s + 1] =
            p->begins[s] +
            (exchanges ? 0 : weft_times_of(p->plan, step) * weft_step_work(p->plan, step));
    }
}

/* ---- the new list ----------------------------------------------------------------------------------- */

/* The chain that step `s` is of, where that is brought ahead; NULL: it stays. */
static chain *moved(const prefetching *p, uint32_t s)
{
    chain *c = p->chain_of[s] == 0 ? NULL : &p->chains[p->chain_of[s] - 1];
    return c != NULL && c->gain > 0 ? c : NULL;
}

static void put(prefetching *p, const weft_step *step)
{
    p->steps[p->n_steps++] = *step;
}

/* The steps of chain `c` as they are in the scan around, or for the next trip. */
static void put_chain(prefetching *p, const chain *c, bool is_ahead)
{
    const weft_plan *plan = p->plan;
    for (uint32_t s = p->regions.begin[plan->steps[c->root].scan]; s <= c->root; s++) {
        if (moved(p, s) != c) continue;
        weft_step step = plan->steps[s];
        if (s == c->root && c->is_copied) step.out = c->copies;
        step.is_ahead = is_ahead;
        if (!is_ahead) step.scan = plan->graph->scans[step.scan].parent;
        put(p, &step);
    }
}

static void put_copies(prefetching *p, const chain *c)
{
    const weft_step *root = &p->plan->steps[c->root];
    for (int o = 0; o < root->n_out; o++) {
        weft_step copy = {.kind = WEFT_STEP_COPY,
                          .phase = root->phase,
                          .why = root->why,
                          .node = root->node,
                          .scan = root->scan,
                          .n_in = 1,
                          .n_out = 1,
                          .in = &c->copies[o],
                          .out = &root->out[o],
                          .reason = root->reason};
        put(p, &copy);
    }
}

/* What is for the first trip stands in front of step `s`, and what is for the next behind it. */
static void put_first(prefetching *p, uint32_t s)
{
    for (uint32_t i = 0; i < p->n_chains; i++)
        if (p->chains[i].gain > 0 && p->chains[i].front == s) put_chain(p, &p->chains[i], false);
}

static void put_ahead(prefetching *p, uint32_t s)
{
    for (uint32_t i = 0; i < p->n_chains; i++)
        if (p->chains[i].gain > 0 && p->chains[i].after == s) put_chain(p, &p->chains[i], true);
}

static void make_list(prefetching *p)
{
    p->n_steps = 0;
    for (uint32_t s = 0; s < p->plan->n_steps; s++) {
        const weft_step *step = &p->plan->steps[s];
        const chain *c = moved(p, s);
        put_first(p, s);
        if (c == NULL) put(p, step);
        if (c != NULL && c->root == s && c->is_copied) put_copies(p, c);
        put_ahead(p, s);
    }
}

/* ---- memory ------------------------------------------------------------------------------------------ */

/* What is written in front of the scan is there for all its trips. */
static weft_status place_chain(prefetching *p, chain *c)
{
    weft_plan *plan = p->plan;
    const weft_step *root = &plan->steps[c->root];
    const uint32_t around = plan->graph->scans[root->scan].parent;
    for (uint32_t s = 0; s <= c->root; s++)
        for (int o = 0; o < plan->steps[s].n_out && moved(p, s) == c; o++)
            if (s != c->root || !c->is_copied) plan->placed[plan->steps[s].out[o]].scan = around;
    if (!c->is_copied) return WEFT_OK;
    const size_t bytes = (size_t)root->n_out * sizeof *c->copies;
    c->copies = weft_arena_take(plan->arena, bytes);
    if (c->copies == NULL) return weft_fail_memory(p->error, bytes);
    for (int o = 0; o < root->n_out; o++) {
        weft_placed copy = plan->placed[root->out[o]];
        copy.scan = around;
        copy.next = 0;
        c->copies[o] = weft_plan_place(plan, &copy, NULL);
        if (c->copies[o] == 0) return weft_fail_memory(p->error, sizeof copy);
    }
    return WEFT_OK;
}

/* A chain that does not fit leaves tensors that no step uses. */
static weft_status place_chains(prefetching *p)
{
    for (uint32_t i = 0; i < p->n_chains; i++)
        if (p->chains[i].gain > 0) WEFT_TRY(place_chain(p, &p->chains[i]));
    return WEFT_OK;
}

/* The chain that gains least; NULL: none is brought ahead. */
static chain *find_least(prefetching *p)
{
    chain *least = NULL;
    for (uint32_t i = 0; i < p->n_chains; i++)
        if (p->chains[i].gain > 0 && (least == NULL || p->chains[i].gain < least->gain))
            least = &p->chains[i];
    return least;
}

/* Fewer, until they fit. */
static weft_status fit(prefetching *p)
{
    weft_plan *plan = p->plan;
    weft_trial *before, *after;
    bool fits = false;
    WEFT_TRY(weft_trial_open(plan, plan->steps, plan->n_steps, &before, p->error));
    for (chain *least; (least = find_least(p)) != NULL; least->gain = 0) {
        make_list(p);
        WEFT_TRY(weft_trial_open(plan, p->steps, p->n_steps, &after, p->error));
        WEFT_TRY(weft_trial_fits(after, before, (weft_allowance){.divisor = ROOM_DIVISOR}, &fits,
                                 p->error));
        weft_trial_close(&after);
        if (fits) break;
    }
    weft_trial_close(&before);
    return WEFT_OK;
}

/* ---- the pass ---------------------------------------------------------------------------------------- */

static weft_status open_prefetching(prefetching *p)
{
    weft_arena *arena = p->plan->arena;
    const size_t n = p->plan->n_steps + 1, n_placed = p->plan->n_placed;
    p->maker = weft_arena_take(arena, n_placed * sizeof *p->maker);
    p->n_readers = weft_arena_take(arena, n_placed * sizeof *p->n_readers);
    p->is_apart = weft_arena_take(arena, n * sizeof *p->is_apart);
    p->is_inner = weft_arena_take(arena, n * sizeof *p->is_inner);
    p->chain_of = weft_arena_take(arena, n * sizeof *p->chain_of);
    p->begins = weft_arena_take(arena, n * sizeof *p->begins);
    p->chains = weft_arena_take(arena, n * sizeof *p->chains);
    p->steps = calloc(3 * n, sizeof *p->steps); /* of a chain each stands twice, and is copied */
    if (!p->maker || !p->n_readers || !p->is_apart || !p->is_inner || !p->chain_of || !p->begins ||
        !p->chains || !p->steps)
        return weft_fail_memory(p->error, 3 * n * sizeof *p->steps);
    return weft_find_regions(p->plan, arena, &p->regions, p->error);
}

static weft_status find_what_gains(prefetching *p)
{
    WEFT_TRY(open_prefetching(p));
    look_at_uses(p);
    find_apart(p);
    add_up_work(p);
    find_chains(p);
    WEFT_TRY(place_chains(p));
    return fit(p);
}

weft_status weft_pass_prefetch(weft_plan *plan, weft_error *error)
{
    prefetching p = {.plan = plan, .error = error};
    if (plan->build.is_synchronous || plan->graph->n_scans <= 1) return WEFT_OK;
    const weft_status status = find_what_gains(&p);
    if (status != WEFT_OK || find_least(&p) == NULL) {
        free(p.steps);
        return status;
    }
    free(plan->steps);
    plan->steps = p.steps;
    plan->n_steps = p.n_steps;
    plan->build.cap_steps = plan->n_steps;
    plan->packed.offset = NULL; /* it was for the list before */
    return WEFT_OK;
}
