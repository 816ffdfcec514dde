/* hold.h (private): keep a program's variables as they are until somebody has read them, while it goes on.
 *
 * A run waits only before its first step that writes a variable: forward and backward passes come before that.
 */
#ifndef WEFT_RUN_HOLD_H
#define WEFT_RUN_HOLD_H

#include "weft/program.h"

/* Made by who reads; lives until weft_hold_end. */
typedef struct weft_hold {
    void (*wait)(struct weft_hold *hold); /* until all is read; any thread, any number of times */
    weft_program *program;                /* NULL: over */
} weft_hold;

/* All Local, on the thread that runs the program. A second hold waits for the first. A program that is destroyed waits,
 * and ends its hold. */
void weft_hold_start(weft_hold *hold, weft_program *program);
void weft_hold_end(weft_hold *hold);
/* Before a variable of the program, or one that it shares, is written. Any thread. */
void weft_hold_wait(const weft_program *program);

#endif
