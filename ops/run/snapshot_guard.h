/* snapshot_guard.h (private): nobody writes a variable before the reader of a snapshot has read it; the program runs on
 * meanwhile.
 *
 * A run waits before a step that writes a variable, for that variable alone: who reads them does it in the order in which
 * they are written (weft_write_order), and is ahead of the run all the time.
 */
#ifndef WEFT_RUN_HOLD_H
#define WEFT_RUN_HOLD_H

#include "weft/program.h"

/* Made by who reads; lives until weft_snapshot_guard_end. */
typedef struct weft_snapshot_guard {
    /* until the variable is read whose memory on a local rank begins there; NULL, or memory that is nothing's known here:
     * until all are. Any thread, any number of times */
    void (*wait)(struct weft_snapshot_guard *guard, const void *memory);
    weft_program *program; /* NULL: over */
} weft_snapshot_guard;

/* All Local, on the thread that runs the program. A second guard waits for the first. A program that is destroyed waits,
 * and ends its guard. */
void weft_snapshot_guard_start(weft_snapshot_guard *guard, weft_program *program);
void weft_snapshot_guard_end(weft_snapshot_guard *guard);
/* Before a variable of the program, or one that it shares, is written: the one whose memory begins there; NULL: any. Any
 * thread. */
void weft_snapshot_guard_wait(const weft_program *program, const void *memory);
/* Whether there is something to wait for. */
bool weft_is_snapshot_guarded(const weft_program *program);
/* The program's variables, as weft_variable_at counts them, in the order in which a run begins to write them; those that it
 * does not write come last. order [n]. Local. */
void weft_write_order(const weft_program *program, int n, int *order);

#endif
