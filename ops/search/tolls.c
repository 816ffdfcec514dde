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
#include "searching.h"

#include <math.h>
#include <string.h>

enum {
    MOST_BOUNDS = 8,
    MOST_JOINT = 6 /* axes whose ways are looked at together */
};                 /* of bounds a vector: those that are not there count nothing */
static const double MIXED = 0.9,
                    EVEN = 0.5; /* parts of a bound that is mixed with that of all works */

/* Unlike fmin one instruction; nothing here is no number. */
static inline double lesser(double a, double b)
{
    return a < b ? a : b;
}

/* ---- bounds --------------------------------------------------------------------------------------------- */

/* What counts, and how often. */
typedef struct bound {
    double all, first, not_beside, not_beside_tight; /* works */
    double full[WEFT_TOLL_KINDS],
        share[WEFT_TOLL_KINDS]; /* exchanges; and the cores that they take */
    double first_tight;         /* those before all gradients, in full */
    double gradient;            /* exchanges of gradients along `axis`, in full */
    int axis;
} bound;

typedef struct tolling {
    const searching *s;
    const weft_search_outline *outline;
    const weft_search_setting *setting;
    const double (*repeated)
        [WEFT_MAX_AXES]; /* [n_works] seconds more where a kernel is whole along an axis */
    double weights[WEFT_WORK_ORDERS][MOST_BOUNDS]; /* of works */
    /* of exchanges by kind, in full before all gradients and else, and of the cores that they take */
    double full[2][WEFT_TOLL_KINDS][MOST_BOUNDS], share[WEFT_TOLL_KINDS][MOST_BOUNDS];
    double most, works; /* seconds above which nobody asks; of all works */
    int n_bounds;
    bound bounds[MOST_BOUNDS];
    double sums[MOST_BOUNDS];
} tolling;

static const weft_search_role *role_at(const tolling *t, int axis)
{
    return &t->s->roles.list[t->outline->axes[axis].role];
}

static const weft_search_link *link_at(const tolling *t, int axis)
{
    return &t->s->links[t->outline->axes[axis].level];
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

static double others(const tolling *t, int axis)
{
    const double n = t->outline->axes[axis].size;
    return (n - 1) / n;
}

/* Whether variables are stored in shards over the axis, besides what names split. */
static bool is_sharded(const tolling *t, uint64_t dims, int axis, int stage)
{
    return t->setting->zero >= stage && dims != 0 && !(role_at(t, axis)->set & dims) &&
           role_at(t, axis)->splits_storage;
}

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

/* What so many bytes through the link of an axis count in each bound. */
static void count(const tolling *t, const weft_search_toll *toll, int axis, double bytes,
                  double costs[MOST_BOUNDS])
{
    const weft_search_link *link = link_at(t, axis);
    const double *full = t->full[toll->is_first][toll->kind], *share = t->share[toll->kind];
    for (int b = 0; b < MOST_BOUNDS; b++)
        costs[b] += bytes * (full[b] * link->seconds + share[b] * link->share_seconds);
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

/* What one kernel costs on each axis, in each bound. Large: what is not asked for is not cleared. */
typedef struct cutting {
    const weft_search_work *work;
    int n_ways[WEFT_MAX_AXES];
    const weft_search_way *ways[WEFT_MAX_AXES][WEFT_SEARCH_WAYS];
    double costs[WEFT_MAX_AXES][WEFT_SEARCH_WAYS][MOST_BOUNDS];
} cutting;

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
                count(t, toll, axis, c->work->times * bytes_along(t, toll, axis), spared);
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
        count(t, toll, axis, work->times * bytes_along(t, toll, axis), costs);
        limit(t, toll, work, axis, costs);
        for (int w = 0; w < c->n_ways[axis]; w++)
            for (int b = 0; b < MOST_BOUNDS && is_paid(toll, c->ways[axis][w], work->n_in); b++)
                c->costs[axis][w][b] += toll->share * costs[b];
    }
}

/* ---- gradients ------------------------------------------------------------------------------------------------ */

static const weft_search_toll *gradient_of(const weft_search_work *work)
{
    for (int i = 0; i < work->n_tolls; i++)
        if (work->tolls[i].of == WEFT_TOLL_GRADIENT) return &work->tolls[i];
    return NULL;
}

/* What a way makes of it along an axis: the whole, a part, or a sum that others have parts of. */
enum { MADE_WHOLE, MADE_SPLIT, MADE_SUM, MADE };

static int made_by(const weft_search_way *way, const weft_search_toll *toll)
{
    if (way->is_whole && way->has == 0) return MADE_WHOLE;
    return way->has >> toll->term & 1 ? MADE_SPLIT : MADE_SUM;
}

/* A gradient's exchange is in a queue of its axis, of which there are several with others. Where others cut it, those exchange more. */
static double queues_of(const tolling *t, const bool *divides, int axis)
{
    double queues = 1;
    for (int a = 0; a < t->outline->n; a++)
        if (a != axis) queues *= 1 + (divides[a] ? 1.0 / t->outline->axes[a].size : 1);
    return queues;
}

static void count_gradient(const tolling *t, const weft_search_toll *toll, int axis, double bytes,
                           const bool *divides, double costs[MOST_BOUNDS])
{
    for (int a = 0; a < t->outline->n; a++)
        if (a != axis && divides[a]) bytes /= t->outline->axes[a].size;
    bytes *= others(t, axis);
    count(t, toll, axis, bytes, costs);
    for (int b = 0; b < MOST_BOUNDS; b++)
        if (t->bounds[b].axis == axis)
            costs[b] += t->bounds[b].gradient * bytes * link_at(t, axis)->seconds /
                        queues_of(t, divides, axis);
}

/* One cut of all axes: a sum is scattered to where shards are, or is reduced by all; what was made in parts becomes whole. Sums that become
 * whole along several axes may do so at once: the longest counts. */
static void cut_gradient(const tolling *t, const cutting *c, const weft_search_toll *toll,
                         const int *made, double costs[MOST_BOUNDS])
{
    bool divides[WEFT_MAX_AXES];
    double most = 0;
    int longest = -1;
    for (int a = 0; a < t->outline->n; a++) {
        const bool is_named = (role_at(t, a)->set & toll->dims) != 0;
        divides[a] = is_named || is_sharded(t, toll->dims, a, 1) || made[a] == MADE_SPLIT;
    }
    for (int a = 0; a < t->outline->n; a++) {
        const bool is_named = (role_at(t, a)->set & toll->dims) != 0;
        const bool is_sum = made[a] == MADE_SUM;
        const bool is_home = is_named || is_sharded(t, toll->dims, a, 3); /* it stays in shards */
        if (made[a] == MADE_WHOLE) continue;
        if (is_sum && !divides[a]) {
            const double seconds = others(t, a) * link_at(t, a)->seconds;
            if (seconds > most) longest = a;
            most = fmax(most, seconds);
            continue;
        }
        const double bytes = (is_sum ? toll->bytes : 0) + (is_home ? 0 : toll->again);
        count_gradient(t, toll, a, c->work->times * toll->often * bytes, divides, costs);
    }
    if (longest >= 0)
        count_gradient(t, toll, longest, c->work->times * toll->often * (toll->bytes + toll->again),
                       divides, costs);
}

/* Of all ways of an axis that make a gradient alike the least, for each bound by itself. */
typedef struct making {
    bool is_there[WEFT_MAX_AXES][MADE];
    double costs[WEFT_MAX_AXES][MADE][MOST_BOUNDS];
} making;

static void find_makings(const tolling *t, const cutting *c, const weft_search_toll *toll,
                         making *m)
{
    memset(m->is_there, 0, sizeof m->is_there);
    for (int a = 0; a < t->outline->n; a++)
        for (int w = 0; w < c->n_ways[a]; w++) {
            const int made = made_by(c->ways[a][w], toll);
            double *least = m->costs[a][made];
            for (int b = 0; b < MOST_BOUNDS; b++)
                least[b] =
                    m->is_there[a][made] ? lesser(least[b], c->costs[a][w][b]) : c->costs[a][w][b];
            m->is_there[a][made] = true;
        }
}

/* The next of how a gradient may be made along all axes, or the first where `made` is -1; false: that was the last. */
static bool turn(const tolling *t, const making *m, int *made)
{
    bool goes_on = false;
    for (int a = 0; a < t->outline->n && !goes_on; a++) {
        const int before = made[a];
        do
            made[a] = (made[a] + 1) % MADE;
        while (!m->is_there[a][made[a]]);
        goes_on = made[a] > before && before >= 0;
    }
    return goes_on;
}

/* Of all ways of all axes together the least, for each bound by itself. What a gradient exchanges depends on how it is made alone. */
static void add_with_gradient(tolling *t, const cutting *c, const weft_search_toll *toll)
{
    making m;
    double least[MOST_BOUNDS];
    int made[WEFT_MAX_AXES];
    find_makings(t, c, toll, &m);
    for (int a = 0; a < t->outline->n; a++)
        made[a] = -1;
    (void)turn(t, &m, made);
    for (int b = 0; b < MOST_BOUNDS; b++)
        least[b] = INFINITY;
    do {
        double costs[MOST_BOUNDS] = {0};
        for (int a = 0; a < t->outline->n; a++)
            for (int b = 0; b < MOST_BOUNDS; b++)
                costs[b] += m.costs[a][made[a]][b];
        cut_gradient(t, c, toll, made, costs);
        for (int b = 0; b < MOST_BOUNDS; b++)
            least[b] = lesser(costs[b], least[b]);
    } while (turn(t, &m, made));
    for (int b = 0; b < MOST_BOUNDS; b++)
        t->sums[b] += least[b];
}

static void add_kernel(tolling *t, const cutting *c)
{
    const weft_search_toll *gradient = gradient_of(c->work);
    if (gradient && t->outline->n <= MOST_JOINT) {
        add_with_gradient(t, c, gradient);
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
    for (int w = 0; w < profile->n_works; w++) {
        weft_search_work *work = &profile->works[w];
        double ranks;
        const double seconds = weft_search_work_seconds(t->s, t->outline, t->setting, work, &ranks);
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
