/* pending.h (private): what a rank has under way, and waiting for it.
 *
 * In every wait of a rank, all its exchanges under way go on. So ranks may wait for several things in different
 * orders: each needs from the others only that they have started, and all start in one order.
 */
#ifndef WEFT_PENDING_H
#define WEFT_PENDING_H

#include "sync.h"
#include "weft/error.h"

typedef struct weft_pending weft_pending;
struct weft_pending {
    weft_pending *next, *previous; /* on the desk, in the order they were started */
    /* Go on as far as it can without waiting; true: it is over, and `error` tells how it went. */
    bool (*poll)(weft_pending *it);
    bool is_over;
    weft_error error;
};

/* Of one rank, in all groups of a mesh. Touched by its rank only, but for the bell. */
typedef struct weft_desk {
    _Alignas(64) weft_pending *first, *last;
    int n_spins;     /* looks before others are let run */
    int n_no_yields; /* waits to come in which the core is not yielded: strangers would have it */
    uint64_t round;  /* times that all under way was polled */
    bool is_waiting; /* in weft_desk_wait: it has nothing else to do */
    bool can_sleep;  /* whoever brings something on rings */
    _Alignas(64) weft_word bell;
} weft_desk;

/* weft_desk_open - of a rank with so many on its host, all of which have a core of their own or not; can_sleep: whoever brings
 * something on rings. Local. */
void weft_desk_open(weft_desk *desk, bool can_sleep, int n_near);
/* weft_desk_begin - `it` is under way from now on: every wait of the rank polls it, until it is over. Local. */
void weft_desk_begin(weft_desk *desk, weft_pending *it);
/* weft_desk_wait - until it is over; returns how it went. */
weft_status weft_desk_wait(weft_desk *desk, weft_pending *it, weft_error *error);
/* weft_desk_poll - what is under way goes on, without waiting. Local. */
void weft_desk_poll(weft_desk *desk);
/* weft_desk_ring - wake the rank if it sleeps: something that it may wait for has changed. From any rank. */
void weft_desk_ring(weft_desk *desk);

#endif
