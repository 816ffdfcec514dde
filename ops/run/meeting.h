/* meeting.h (private): ranks that see each other's memory wait for each other. */
#ifndef WEFT_MEETING_H
#define WEFT_MEETING_H

#include "sync.h"

typedef struct weft_meeting {
    _Alignas(64) _Atomic uint32_t n_here;
    _Atomic uint32_t n_ranks;
    _Atomic bool has_core_each;
    _Alignas(64) weft_word round; /* two more for each round that is over; odd: broken */
} weft_meeting;

/* weft_meeting_open - of so many ranks, by each of them, in memory that is zero else, and that all see;
 * has_core_each: they look for long before they let others run. weft_meet - until all of them are here; false: one
 * will not come. weft_meeting_break - this rank will not come any more: nobody waits for it from now on. Any thread. */
void weft_meeting_open(weft_meeting *meeting, int n_ranks, bool has_core_each);
bool weft_meet(weft_meeting *meeting);
void weft_meeting_break(weft_meeting *meeting);

#endif
