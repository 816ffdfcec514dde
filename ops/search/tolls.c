/* tolls: seconds that no plan of a choice can beat, with the exchanges that each has to have.
 *
 * On each axis a kernel is cut along one of its ways, or every rank does the whole of it. Each way has its exchanges: of operands, results,
 * variables and gradients (flows.c). All exchanges are a sum over kernels and axes. So the least of it is found kernel by kernel, for any
 * prices.
 *
 * An exchange makes a step longer by more or less, as work goes on beside it. A step is no shorter than each of these *bounds*, which
 * are sums of works and exchanges too:
 *
 * - all works, and of each exchange the share of the cores that it takes;
 * - all works without those beside tight exchanges, and these exchanges in full; then with the share of all others too, less what other
 *   queues may do meanwhile;
 * - all works without those beside a chain of exchanges, and these exchanges in full;
 * - the works before all gradients, and the gradients' exchanges along an axis of the slowest links, one behind the other on each
 *   of its queues.
 *
 * In the last two, kernels that are whole would cost nothing where their work does not count. So they are mixed with the first.
 */
#include "tolling.h"

#include <math.h>
#include <string.h>

static const double MIXED = 0.9,
                    EVEN = 0.5; /* parts of a bound that is mixed with that of all works */

/* ---- bounds --------------------------------------------------------------------------------------------- */

static void find_links(tolling *t)
{
    for (int a = 0; a < t->outline->n; a++) {
        const weft_search_axis *axis = &t->outline->axes[a];
        weft_search_meeting(t->s->options->machine, axis, t->near[a]);
        t->links[a] = weft_search_link_along(t->s, axis);
    }
}

/* The cores that all queues take at once, at most: each set of axes has one. */
static double crowd_of(const tolling *t)
{
    double sum = 0;
    for (uint32_t axes = 1; axes < 1u << t->outline->n; axes++) {
        double most = 0;
        for (int a = 0; a < t->outline->n; a++)
            if (axes >> a & 1) most = fmax(most, link_at(t, a)->most_share);
        sum += most;
    }
    return sum;
}

static void add_bound(tolling *t, double part, const bound *b, const bound *all)
{
    bound *to = &t->bounds[t->n_bounds++];
    *to = *all;
    to->axis = b->axis;
    to->all *= 1 - part;
    to->first = part * b->first;
    to->not_beside = part * b->not_beside;
    to->not_beside_tight = part * b->not_beside_tight;
    to->first_tight = part * b->first_tight;
    to->gradient = part * b->gradient;
    for (int k = 0; k < WEFT_TOLL_KINDS; k++) {
        to->full[k] = part * b->full[k];
        to->share[k] = (1 - part) * all->share[k] + part * b->share[k];
    }
}

static double slowest(const tolling *t)
{
    double most = 0;
    for (int a = 0; a < t->outline->n; a++)
        most = fmax(most, link_at(t, a)->seconds);
    return most;
}

static void list_bounds(tolling *t)
{
    const double crowd = crowd_of(t), share = fmin(1, 1 / fmax(crowd, 1e-300));
    const double left = fmax(0, 1 - crowd);
    const bound all = {.all = 1, .share = {share, share, share}, .axis = -1};
    add_bound(t, 0, &all, &all);
    const bound tight = {.not_beside_tight = 1, .full = {[WEFT_TOLL_TIGHT] = 1}, .axis = -1};
    add_bound(t, 1, &tight, &all);
    const bound tight_and_others = {.not_beside_tight = 1,
                                    .full = {[WEFT_TOLL_TIGHT] = left},
                                    .share = {share, share, 0},
                                    .axis = -1};
    if (left > 0) add_bound(t, 1, &tight_and_others, &all);
    const bound chain = {.not_beside = 1, .full = {0, 1, 1}, .axis = -1};
    add_bound(t, MIXED, &chain, &all);
    for (int a = 0; a < t->outline->n && t->n_bounds + 1 < MOST_BOUNDS; a++) {
        if (link_at(t, a)->seconds < slowest(t)) continue;
        const bound gradients = {.first = 1, .first_tight = 1, .gradient = 1, .axis = a};
        add_bound(t, MIXED, &gradients, &all);
        add_bound(t, EVEN, &gradients, &all);
    }
}

static void find_exchange_weights(tolling *t)
{
    for (int kind = 0; kind < WEFT_TOLL_KINDS; kind++)
        for (int b = 0; b < t->n_bounds; b++) {
            const bound *of = &t->bounds[b];
            t->share[kind][b] = of->share[kind];
            t->full[false][kind][b] = t->full[true][kind][b] = of->full[kind];
            if (kind == WEFT_TOLL_TIGHT) t->full[true][kind][b] += of->first_tight;
        }
}

static void find_weights(tolling *t)
{
    find_exchange_weights(t);
    for (int order = 0; order < WEFT_WORK_ORDERS; order++)
        for (int b = 0; b < t->n_bounds; b++) {
            const bound *of = &t->bounds[b];
            double weight = of->all;
            if (order & WEFT_WORK_FIRST) weight += of->first;
            if (!(order & WEFT_WORK_BESIDE)) weight += of->not_beside;
            if (!(order & WEFT_WORK_BESIDE_TIGHT)) weight += of->not_beside_tight;
            t->weights[order][b] = weight;
        }
}

/* ---- exchanges --------------------------------------------------------------------------------------------- */

/* By how much the other axes may make smaller what a toll exchanges along one. */
static double cut_beside(const tolling *t, const weft_search_toll *toll, int axis)
{
    double parts = 1;
    for (int a = 0; a < t->outline->n; a++) {
        const bool is_variable = toll->of == WEFT_TOLL_VARIABLE && is_sharded(t, toll->dims, a, 3);
        if (a != axis && (role_at(t, a)->reach & toll->dims || is_variable))
            parts *= t->outline->axes[a].size;
    }
    return parts;
}

/* The bytes of a toll along an axis. */
static double bytes_along(const tolling *t, const weft_search_toll *toll, int axis)
{
    double bytes = toll->bytes;
    if (toll->of == WEFT_TOLL_VARIABLE) {
        const bool is_named = (role_at(t, axis)->set & toll->dims) != 0;
        const bool is_shard = is_sharded(t, toll->dims, axis, 3);
        bytes = is_named ? toll->bytes : is_shard ? toll->again : 0;
    }
    return toll->often * bytes * others(t, axis) / cut_beside(t, toll, axis);
}

static bool is_cut_along(const tolling *t, const weft_search_work *work, int axis)
{
    for (int w = 0; w < work->n_ways; w++)
        if (!work->ways[w].is_whole && work->ways[w].dims & role_at(t, axis)->reach) return true;
    return false;
}

/* Seconds more of work that all ranks of an axis do, where it could cut it: else it is not among those that share the work. */
static void find_repeated(const tolling *t, const weft_search_work *work, double seconds,
                          double ranks, double repeated[WEFT_MAX_AXES])
{
    for (int a = 0; a < t->outline->n; a++) {
        const double all = t->outline->axes[a].size * work->seconds / ranks;
        repeated[a] = is_cut_along(t, work, a) ? fmax(0, all - seconds) : 0;
    }
}

/* Whether all works and this are more than anybody asks for: then it is no way. */
static bool is_beyond(const tolling *t, double more)
{
    return t->works + more >= t->most;
}

/* A toll is no more than what it costs that somebody else is whole. */
static void limit(const tolling *t, const weft_search_toll *toll, const weft_search_work *payer,
                  int axis, double costs[MOST_BOUNDS])
{
    if (toll->of != WEFT_TOLL_LACK) return;
    const weft_search_profile *profile = &t->s->profiles[t->setting->profile];
    const weft_search_work *whole = toll->whole >= 0 ? &profile->works[toll->whole] : NULL;
    const double more = whole ? t->repeated[toll->whole][axis] : 0;
    if (more > 0 && is_beyond(t, more)) return;
    for (int b = 0; b < MOST_BOUNDS; b++) {
        const double most = more > 0 ? more / whole->times * payer->times * toll->often *
                                           t->weights[whole->order][b]
                                     : 0;
        costs[b] = lesser(costs[b], most);
    }
}

/* What is spared by a whole one, which costs no less than nothing then. */
static void add_whole(const tolling *t, cutting *c, int axis, double more)
{
    for (int w = 0; w < c->n_ways[axis] && c->ways[axis][w]->is_whole; w++) {
        double spared[MOST_BOUNDS] = {0};
        for (int i = 0; i < c->work->n_tolls; i++) {
            const weft_search_toll *toll = &c->work->tolls[i];
            if (toll->of == WEFT_TOLL_SPARED && c->ways[axis][w]->spares >> toll->term & 1)
                count(t, toll, link_at(t, axis), c->work->times * bytes_along(t, toll, axis),
                      spared);
        }
        for (int b = 0; b < MOST_BOUNDS; b++)
            c->costs[axis][w][b] = fmax(0, more * t->weights[c->work->order][b] - spared[b]);
    }
}

/* A result of whole operands is whole. */
static bool is_paid(const weft_search_toll *toll, const weft_search_way *way, int n_in)
{
    if (way->is_whole && way->has == 0 && toll->term >= n_in) return false;
    return !(way->has >> toll->term & 1);
}

static void look_at_axis(const tolling *t, cutting *c, int axis, double more)
{
    const weft_search_work *work = c->work;
    const bool is_cut = is_cut_along(t, work, axis);
    c->n_ways[axis] = 0;
    for (int w = 0; w < work->n_ways; w++) {
        const weft_search_way *way = &work->ways[w];
        if (way->is_whole ? !(is_cut && is_beyond(t, more))
                          : (way->dims & role_at(t, axis)->reach) != 0)
            c->ways[axis][c->n_ways[axis]++] = way;
    }
    memset(c->costs[axis], 0, (size_t)c->n_ways[axis] * sizeof c->costs[axis][0]);
    add_whole(t, c, axis, more);
    for (int i = 0; i < work->n_tolls; i++) {
        const weft_search_toll *toll = &work->tolls[i];
        double costs[MOST_BOUNDS] = {0};
        if (toll->of == WEFT_TOLL_GRADIENT || toll->of == WEFT_TOLL_SPARED) continue;
        count(t, toll, link_at(t, axis), work->times * bytes_along(t, toll, axis), costs);
        limit(t, toll, work, axis, costs);
        for (int w = 0; w < c->n_ways[axis]; w++)
            for (int b = 0; b < MOST_BOUNDS && is_paid(toll, c->ways[axis][w], work->n_in); b++)
                c->costs[axis][w][b] += toll->share * costs[b];
    }
}

static const weft_search_toll *gradient_of(const weft_search_work *work)
{
    for (int i = 0; i < work->n_tolls; i++)
        if (work->tolls[i].of == WEFT_TOLL_GRADIENT) return &work->tolls[i];
    return NULL;
}

static void add_kernel(tolling *t, const cutting *c)
{
    const weft_search_toll *gradient = gradient_of(c->work);
    if (gradient && t->outline->n <= MOST_JOINT) {
        weft_search_add_gradient(t, c, gradient);
        return;
    }
    for (int a = 0; a < t->outline->n; a++)
        for (int b = 0; b < MOST_BOUNDS; b++) {
            double least = INFINITY;
            for (int w = 0; w < c->n_ways[a]; w++)
                least = lesser(c->costs[a][w][b], least);
            t->sums[b] += least;
        }
}

/* ---- the whole -------------------------------------------------------------------------------------------------- */

/* Sums only grow: above what anybody asks for no more has to be looked at. */
static double floor_of(const tolling *t)
{
    double floor = 0;
    for (int b = 0; b < MOST_BOUNDS; b++)
        floor = fmax(floor, t->sums[b]);
    return fmin(floor, t->most);
}

static void add_works(tolling *t, double (*repeated)[WEFT_MAX_AXES])
{
    const weft_search_profile *profile = &t->s->profiles[t->setting->profile];
    weft_search_sharing sharing;
    weft_search_share(t->s, t->outline, &sharing);
    for (int w = 0; w < profile->n_works; w++) {
        const weft_search_work *work = &profile->works[w];
        double ranks;
        const double seconds = weft_search_work_seconds(t->s, &sharing, t->setting, work, &ranks);
        t->works += seconds;
        for (int b = 0; b < MOST_BOUNDS; b++)
            t->sums[b] += seconds * t->weights[work->order][b];
        if (work->n_ways > 0) find_repeated(t, work, seconds, ranks, repeated[w]);
    }
}

double weft_search_toll_seconds(const searching *s, const weft_search_outline *outline,
                                const weft_search_setting *setting, double most)
{
    const weft_search_profile *profile = &s->profiles[setting->profile];
    tolling t = {.s = s, .outline = outline, .setting = setting, .most = most};
    double repeated[WEFT_SEARCH_WORKS][WEFT_MAX_AXES];
    if (!profile->has_tolls) return 0;
    find_links(&t);
    list_bounds(&t);
    find_weights(&t);
    t.repeated = (const double(*)[WEFT_MAX_AXES])repeated;
    add_works(&t, repeated);
    for (int w = 0; w < profile->n_works && floor_of(&t) < most; w++) {
        cutting c;
        c.work = &profile->works[w];
        if (c.work->n_tolls == 0) continue;
        for (int a = 0; a < outline->n; a++)
            look_at_axis(&t, &c, a, repeated[w][a]);
        add_kernel(&t, &c);
    }
    return floor_of(&t);
}
