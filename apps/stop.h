/* stop.h: when a run has to stop early: a signal, a file, the time that is left.
 *
 *     stop_watch watch;
 *     stop_watch_open(&watch, "runs/gpt", seconds, estimate);
 *     ... after each step:  if (stop_watch_step(&watch)) ... watch.why says it
 *     stop_watch_close();
 */
#ifndef WEFT_APPS_STOP_H
#define WEFT_APPS_STOP_H

#include <stdbool.h>

#include "deadline.h"

typedef struct stop_watch {
    const char *folder;   /* where a file named "halt" stops the run; NULL: not the root, so neither
                             that is looked for nor squeue asked */
    double begun;         /* when the program began: app_seconds */
    double limit;         /* seconds it may take, --max-time; 0: any */
    double slowest, last; /* seconds of the slowest step; when the last one ended */
    double saving;        /* seconds that a last save may take */
    deadline job;         /* the batch job's end; asked for by the root alone */
    double told;          /* the end that was last told, as app_seconds counts; 0: none */
    char why[256];        /* the reason to stop; "" while there is none */
} stop_watch;

/* app_seconds - a clock for differences. Local. */
double app_seconds(void);

/* stop_survive_failed_writes - from here on a write to a pipe that nobody reads, or past `ulimit -f`, fails and does not end the
 * process. Local. */
void stop_survive_failed_writes(void);
/* stop_watch_open - the signals that ask a process to end are taken note of from here on, but for those that it ignores; a
 * second SIGINT ends the process at once. Local. */
void stop_watch_open(stop_watch *watch, const char *folder, double limit, double saving);
/* stop_watch_step - after a step: whether the run has to stop now. A halt file is removed when it
 * is seen. Local. */
bool stop_watch_step(stop_watch *watch);
/* stop_watch_is_asked - whether a signal has come that asks the process to end. Local. */
bool stop_watch_is_asked(void);
/* stop_watch_news - "stops before 17:03:12 (squeue)", once it is known and whenever it changes;
 * false: nothing new. Local. */
bool stop_watch_news(stop_watch *watch, char *text, size_t bytes);
/* stop_watch_end - no more squeue. Local. */
void stop_watch_end(stop_watch *watch);
/* stop_watch_close - signals do again what they did. Local. */
void stop_watch_close(void);

#endif
