/* barrier: ranks that see each other's memory wait for each other: threads, or processes of one host.
 *
 * The last to come advances the round, for which the others look. They come within microseconds of each other where each
 * has a core of its own; where it has not, they let others run, and then sleep. A barrier that is broken has an odd
 * round for ever: so that too wakes who sleeps.
 */
#include "barrier.h"

enum { SPINS = 2000, FEW_SPINS = 50, YIELDS = 4, BROKEN = 1, ROUND = 2 };

void weft_barrier_open(weft_barrier *barrier, int n_ranks, bool has_core_each)
{
    weft_sync_store_relaxed(&barrier->has_core_each, has_core_each);
    weft_sync_store_relaxed(&barrier->n_ranks, (uint32_t)n_ranks);
}

/* The round as it is when it is no longer `round`. */
static uint32_t await_end(weft_barrier *m, uint32_t round)
{
    const int spins = weft_sync_load_relaxed(&m->has_core_each) ? SPINS : FEW_SPINS;
    weft_waiter wait = {"the other ranks to write together", WEFT_ANY, {spins, YIELDS}, NULL, 0};
    uint32_t now;
    while ((now = weft_sync_load(&m->round.value)) == round)
        if (!weft_waiter_pause(&wait))
            weft_word_sleep(&m->round, round, WEFT_OF_PROCESSES, 0, &wait);
    weft_waiter_end(&wait);
    return now;
}

bool weft_barrier_wait(weft_barrier *barrier)
{
    const uint32_t round = weft_sync_load(&barrier->round.value);
    if (round & BROKEN) return false;
    const uint32_t n_ranks = weft_sync_load_relaxed(&barrier->n_ranks);
    if (weft_sync_add(&barrier->n_here, 1) + 1 < n_ranks)
        return (await_end(barrier, round) & BROKEN) == 0;
    weft_sync_store(&barrier->n_here, 0);
    const uint32_t ended = weft_sync_add(&barrier->round.value, ROUND);
    weft_word_wake(&barrier->round, WEFT_OF_PROCESSES);
    return (ended & BROKEN) == 0;
}

void weft_barrier_break(weft_barrier *barrier)
{
    (void)weft_sync_or(&barrier->round.value, BROKEN);
    weft_word_wake(&barrier->round, WEFT_OF_PROCESSES);
}
