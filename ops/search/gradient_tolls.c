/* gradient_tolls: what a kernel's gradient exchanges, which depends on how it is made along all axes at once. */
#include "tolling.h"

#include <math.h>
#include <string.h>

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

static void count_queue(const tolling *t, int axis, double bytes, const bool *divides,
                        double costs[MOST_BOUNDS])
{
    for (int b = 0; b < MOST_BOUNDS; b++)
        if (t->bounds[b].axis == axis)
            costs[b] += t->bounds[b].gradient * bytes * link_at(t, axis)->seconds /
                        queues_of(t, divides, axis);
}

static double cut_by(const tolling *t, const bool *divides, int axis, double bytes)
{
    for (int a = 0; a < t->outline->n; a++)
        if (a != axis && divides[a]) bytes /= t->outline->axes[a].size;
    return bytes;
}

static void count_gradient(const tolling *t, const weft_search_toll *toll, int axis, double bytes,
                           const bool *divides, double costs[MOST_BOUNDS])
{
    const double through = cut_by(t, divides, axis, bytes) * others(t, axis);
    count(t, toll, link_at(t, axis), through, costs);
    count_queue(t, axis, through, divides, costs);
}

/* A sum becomes whole along several axes: at once, the nearest first, which takes no longer than one axis behind the other. On a queue
 * of the slowest of them there is what it has to exchange when the others have made it small. */
static void count_together(const tolling *t, const weft_search_toll *toll, uint32_t axes,
                           double bytes, const bool *divides, double costs[MOST_BOUNDS])
{
    double near[WEFT_MAX_LEVELS], pieces = 1, most = 0;
    int slowest = -1;
    for (int l = 0; l < t->s->options->machine->n_levels; l++)
        near[l] = 1;
    for (int a = 0; a < t->outline->n; a++) {
        if (!(axes >> a & 1)) continue;
        for (int l = 0; l < t->s->options->machine->n_levels; l++)
            near[l] *= t->near[a][l];
        pieces *= t->outline->axes[a].size;
        const double seconds = others(t, a) * link_at(t, a)->seconds;
        if (seconds > most) slowest = a;
        most = fmax(most, seconds);
    }
    if (slowest < 0) return;
    const weft_search_link link = weft_search_link_through(t->s, near);
    bytes = cut_by(t, divides, -1, bytes);
    count(t, toll, &link, bytes, costs);
    pieces /= t->outline->axes[slowest].size;
    count_queue(t, slowest, bytes * others(t, slowest) / pieces, divides, costs);
}

/* One cut of all axes: a sum is scattered to where shards are, or is reduced by all; what was made in parts becomes whole. */
static void cut_gradient(const tolling *t, const cutting *c, const weft_search_toll *toll,
                         const int *made, double costs[MOST_BOUNDS])
{
    bool divides[WEFT_MAX_AXES];
    uint32_t together = 0;
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
            together |= 1u << a;
            continue;
        }
        const double bytes = (is_sum ? toll->bytes : 0) + (is_home ? 0 : toll->again);
        count_gradient(t, toll, a, c->work->times * toll->often * bytes, divides, costs);
    }
    count_together(t, toll, together, c->work->times * toll->often * (toll->bytes + toll->again),
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
void weft_search_add_gradient(tolling *t, const cutting *c, const weft_search_toll *toll)
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
