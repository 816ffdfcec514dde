/* best_links: what the links of a machine do at best, level by level, for floors with exchanges (tolls.c). */
#include "searching.h"

#include <math.h>

/* By how much measured exchanges may be quicker than links say. */
static double quickest(const weft_machine_model *machine, int level)
{
    double least = 1;
    for (int e = 0; e < machine->n_exchanges; e++) {
        const weft_exchange_curve *curve = &machine->exchanges[e];
        const double n = curve->ranks, others = n > 1 ? (n - 1) / n : 1;
        if (curve->level != level || curve->kind == WEFT_BORDER || curve->kind == WEFT_ALL_TO_ALL)
            continue;
        for (int i = 0; i < curve->seconds.n; i++) {
            const double bytes =
                curve->seconds.size[i] * others * (curve->kind == WEFT_ALL_REDUCE ? 2 : 1);
            const double linked = 2 * n * machine->levels[level].latency_seconds +
                                  bytes / machine->levels[level].bytes_per_second;
            least = fmin(least, curve->seconds.value[i] / linked);
        }
    }
    return least;
}

static void find_shares(const weft_machine_model *machine, int level, double *least, double *most)
{
    *least = INFINITY;
    *most = 0;
    for (int k = 0; k < WEFT_CONVERTS; k++) {
        const double share = weft_exchange_share(machine, level, (weft_convert_kind)k);
        *least = fmin(*least, share);
        *most = fmax(*most, share);
    }
}

void weft_search_meeting(const weft_machine_model *machine, const weft_search_axis *axis,
                         double near[WEFT_MAX_LEVELS])
{
    for (int l = 0; l < machine->n_levels; l++) {
        const int ranks = machine->levels[l].ranks;
        const bool is_all = ranks == 0 || l >= axis->level;
        near[l] = is_all ? axis->size : fmin(axis->size, ceil((double)ranks / axis->stride));
    }
}

weft_search_link weft_search_link_through(const searching *s, const double near[WEFT_MAX_LEVELS])
{
    const int n_levels = s->options->machine->n_levels;
    weft_search_link link = {0};
    double inside = 1;
    for (int l = 0; l < n_levels; l++) {
        const double part = 1 / inside - 1 / near[l];
        link.seconds += part * s->links[l].seconds;
        link.share_seconds += part * s->links[l].share_seconds;
        inside = near[l];
    }
    return link;
}

weft_search_link weft_search_link_along(const searching *s, const weft_search_axis *axis)
{
    double near[WEFT_MAX_LEVELS];
    const double others = 1 - 1.0 / axis->size;
    if (axis->size < 2) return s->links[axis->level];
    weft_search_meeting(s->options->machine, axis, near);
    const weft_search_link whole = weft_search_link_through(s, near);
    return (weft_search_link){.seconds = whole.seconds / others,
                              .share_seconds = whole.share_seconds / others,
                              .most_share = s->links[axis->level].most_share};
}

/* An exchange over several axes may be at a farther level: there it may take less, and less of the cores. */
weft_status weft_search_links_find(searching *s)
{
    const weft_machine_model *machine = s->options->machine;
    weft_search_link beyond = {INFINITY, INFINITY, 0};
    double least_share = 1;
    s->links = weft_arena_take(s->arena, (size_t)machine->n_levels * sizeof *s->links);
    if (!s->links) return weft_fail_memory(s->error, sizeof *s->links);
    for (int l = machine->n_levels; l-- > 0;) {
        double least, most;
        const double seconds = quickest(machine, l) / machine->levels[l].bytes_per_second;
        find_shares(machine, l, &least, &most);
        beyond.seconds = fmin(beyond.seconds, seconds);
        least_share = fmin(least_share, least);
        beyond.share_seconds = least_share * beyond.seconds;
        beyond.most_share = fmax(beyond.most_share, most);
        s->links[l] = beyond;
    }
    return WEFT_OK;
}
