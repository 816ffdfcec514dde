/* look.h (private): the ranks of this process, as its watching thread sees them: how long each has been waiting, and
 * whether it works.
 */
#ifndef WEFT_LOOK_H
#define WEFT_LOOK_H

#include "view.h"

/* weft_look_around - before looking at ranks; a few times a second. Local, from the watching thread, as all here. */
void weft_look_around(double now);
/* weft_look_at - the whole view of local rank number `index`. asked: a call of long ago to recall; sequence 0: none. */
void weft_look_at(int index, double now, const weft_recall *asked, weft_rank_view *view);
/* The thread itself was held up until now: nothing that it did not see counts. */
void weft_look_forgive(double seconds);

/* weft_look_device_patience - so long a device may do nothing while a rank waits for it; 0: for ever. Local. */
void weft_look_device_patience(int milliseconds);
/* weft_look_hurry - the process was told to end: lanes that wait for each other are waited for no longer than a
 * moment. Any thread. */
void weft_look_hurry(bool is_hurried);

#endif
