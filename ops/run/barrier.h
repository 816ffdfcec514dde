/* barrier.h (private): a barrier between ranks that see each other's memory. */
#ifndef WEFT_BARRIER_H
#define WEFT_BARRIER_H

#include "sync.h"

typedef struct weft_barrier {
    _Alignas(64) _Atomic uint32_t n_here;
    _Atomic uint32_t n_ranks;
    _Atomic bool has_core_each;
    _Alignas(64) weft_word round; /* two more for each round that is over; odd: broken */
} weft_barrier;

/* weft_barrier_open - of so many ranks, by each of them, in memory that is zero else, and that all see;
 * has_core_each: they look for long before they let others run. weft_barrier_wait - until all of them are here; false: one
 * will not come. weft_barrier_break - this rank will not come any more: nobody waits for it from now on. Any thread. */
void weft_barrier_open(weft_barrier *barrier, int n_ranks, bool has_core_each);
bool weft_barrier_wait(weft_barrier *barrier);
void weft_barrier_break(weft_barrier *barrier);

#endif
