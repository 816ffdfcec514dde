/* hold.h (private): keep a program's variables as they are until somebody has read them, while it goes on.
 *
 * A run waits before a step that writes a variable, for that variable alone: who reads them does it in the order in which
 * they are written (weft_write_order), and is ahead of the run all the time.
 */
#ifndef WEFT_RUN_HOLD_H
#define WEFT_RUN_HOLD_H

#include "weft/program.h"

/* Made by who reads; lives until weft_hold_end. */
typedef struct weft_hold {
    /* until the variable is read whose memory on a local rank begins there; NULL, or memory that is nothing's known here:
     * until all are. Any thread, any number of times */
    void (*wait)(struct weft_hold *hold, const void *memory);
    weft_program *program; /* NULL: over */
} weft_hold;

/* All Local, on the thread that runs the program. A second hold waits for the first. A program that is destroyed waits,
 * and ends its hold. */
void weft_hold_start(weft_hold *hold, weft_program *program);
void weft_hold_end(weft_hold *hold);
/* Before a variable of the program, or one that it shares, is written: the one whose memory begins there; NULL: any. Any
 * thread. */
void weft_hold_wait(const weft_program *program, const void *memory);
/* Whether there is something to wait for. */
bool weft_is_held(const weft_program *program);
/* The program's variables, as weft_variable_at counts them, in the order in which a run begins to write them; those that it
 * does not write come last. order [n]. Local. */
void weft_write_order(const weft_program *program, int n, int *order);

#endif
