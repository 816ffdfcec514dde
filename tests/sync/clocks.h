/* clocks.h: what each thread of a run knows of what the others have done, by the orders that accesses name.
 *
 * Each thread has a clock with a count for every thread: up to there it knows what that one did. A release of an
 * address leaves the thread's clock there, an acquire of it takes that clock. So memory that is not atomic is handed
 * over, or it is not, whatever the order in which a run went by.
 */
#ifndef WEFT_TEST_CLOCKS_H
#define WEFT_TEST_CLOCKS_H

#include "sync.h"

/* clocks_begin - a run begins, with thread 0. clocks_fork - another thread begins, and knows what its parent knows. */
void clocks_begin(void);
void clocks_fork(int parent, int thread);
/* clocks_access - fails the run (schedule_fail) where the thread reads or writes what was not handed over to it. */
void clocks_access(int thread, const volatile void *where, weft_access kind);

#endif
