/* deadline.h: when the batch job that this process is in will be ended, as Slurm tells it.
 *
 *     deadline d;
 *     deadline_open(&d);
 *     ... now and then:  deadline_poll(&d); if (d.end > 0 && app_seconds() > d.end) ...
 *     deadline_close(&d);
 */
#ifndef WEFT_APPS_DEADLINE_H
#define WEFT_APPS_DEADLINE_H

#include <stdbool.h>
#include <sys/types.h>

typedef struct deadline {
    double end;             /* as app_seconds counts; 0: there is none, or it is not known */
    const char *source;     /* who says so: "SLURM_JOB_END_TIME", "squeue"; "" while nobody does */
    const char *job;        /* the number to ask squeue about; NULL: nobody to ask */
    double every, patience; /* seconds between two questions; that an answer may take */
    double asked;           /* when the last question was asked */
    pid_t child;            /* the squeue that is asked now; 0: none */
    bool is_ended;          /* it took too long and was killed */
    int answer;             /* the reading end of its stdout */
    char text[64];          /* what it has said so far */
    size_t used;
} deadline;

/* deadline_open - take the end from SLURM_JOB_END_TIME, or ask squeue for it. Local. Does not wait
 * for the answer. */
void deadline_open(deadline *d);
/* deadline_poll - take an answer that has come; ask again every few minutes, since a limit may be
 * changed while a job runs; give up a squeue that hangs. Local. Never waits. */
void deadline_poll(deadline *d);
/* deadline_close - end a squeue that is still asked. Local. */
void deadline_close(deadline *d);

/* deadline_parse - the seconds in what `squeue -o %L` prints: "1-02:03:04", "02:03:04", "03:04".
 * Local. returns false for anything else, as UNLIMITED, NOT_SET and INVALID */
bool deadline_parse(const char *text, double *seconds);

#endif
