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

/* An exchange over several axes is at the farther level: there it may take less. */
weft_status weft_search_links_find(searching *s)
{
    const weft_machine_model *machine = s->options->machine;
    weft_search_link beyond = {INFINITY, INFINITY, 0};
    s->links = weft_arena_take(s->arena, (size_t)machine->n_levels * sizeof *s->links);
    if (!s->links) return weft_fail_memory(s->error, sizeof *s->links);
    for (int l = machine->n_levels; l-- > 0;) {
        double least, most;
        const double seconds = quickest(machine, l) / machine->levels[l].bytes_per_second;
        find_shares(machine, l, &least, &most);
        beyond.seconds = fmin(beyond.seconds, seconds);
        beyond.share_seconds = fmin(beyond.share_seconds, fmin(least, 1) * seconds);
        beyond.most_share = fmax(beyond.most_share, most);
        s->links[l] = beyond;
    }
    return WEFT_OK;
}
