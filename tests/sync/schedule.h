/* schedule.h: a scheduler that decides at every access to shared memory which thread goes on, so that orders which a
 * machine shows once in a year are tried one after the other.
 *
 *     static void body(void *argument) { ... weft_thread_start(...) ... weft_thread_join(...) }
 *     schedule_report report;
 *     CHECK(schedule_explore(body, &state, &(schedule_options){.n_preemptions = 2}, &report));
 *
 * The code under test is the library's, compiled with WEFT_SCHEDULED (mesh/sync/sync.h): each atomic access, wait and
 * lock comes here first. Threads are fibers of one thread, so a run is the same whenever its choices are. A run
 * begins with `body` as thread 0. Between two accesses no other thread runs, so the tried orders are the sequentially
 * consistent ones. Clocks find a memory order that is too weak, for memory that threads hand to each other
 * (weft_sync_reads, weft_sync_writes).
 *
 * A thread that looks at a word again and again is put aside until somebody else has written something. So threads that
 * only wait for each other are found: nobody can go on. So is a sleeper that nobody wakes.
 */
#ifndef WEFT_TEST_SCHEDULE_H
#define WEFT_TEST_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

enum { SCHEDULE_THREADS = 33, SCHEDULE_WORDS = 4000 };

typedef struct schedule_options {
    int n_preemptions; /* times that a thread which could go on is put aside; all orders with so many, or fewer */
    int64_t most_runs; /* 0: a million; of random ones 10,000 */
    uint64_t seed;     /* other than 0: random orders, with any number of preemptions */
    /* a sleep with a time limit may be needed to go on: the code says why that is right */
    bool may_oversleep;
    bool
        has_strangers; /* threads are told that they were preempted, and that all are on one core */
} schedule_options;

typedef struct schedule_report {
    int64_t n_runs, n_accesses, longest; /* longest: accesses of one run */
    int64_t n_overslept;                 /* sleeps that ended by their time limit alone */
    bool is_complete;                    /* all orders within the bound were tried */
    char failure[SCHEDULE_WORDS]; /* "": none; else what went wrong, and who waited for whom */
} schedule_report;

/* schedule_explore - run `body` in one order after the other, until one fails or all were tried. Returns whether none
 * failed. The state is the body's to set up, each time. */
bool schedule_explore(void (*body)(void *argument), void *argument, const schedule_options *options,
                      schedule_report *report);
/* schedule_fail - this order is wrong, and why. From within a body; returns, and the run goes on to its end. */
void schedule_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The thread that goes on, from 0. */
int schedule_thread(void);

#endif
