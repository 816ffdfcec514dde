/* watch.h: who waits for whom: every rank's calls are recorded, and a job that cannot go on is ended with a reason.
 *
 *     WEFT_TRY(weft_world_open(&world, &error));                 the watch begins here, by itself
 *     WEFT_TRY(weft_watch_record("runs/book/recorder", &error)); optional: records survive kill -9
 *     weft_watch_busy("reading the test set"); ... weft_watch_busy(NULL);
 *
 * Each process has a thread that looks at the records of its ranks and tells process 0, over sockets of its own. A rank
 * that died, was stopped, is cut off, hangs, or runs other calls than its peers ends the whole job: one paragraph on
 * stderr, the same in the records, exit status 71, 72 or 73 (docs/reliability.md). `weft postmortem` reads the records.
 */
#ifndef WEFT_WATCH_H
#define WEFT_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "weft/error.h"

WEFT_BEGIN

/* weft_watch_record - from now on keep the records in files of `folder`, one a local rank, 725 kB each, instead of in
 * memory only; files of an earlier job that lie there are replaced. The folder must be there on all processes. Local; not
 * while a program runs.
 *
 * returns WEFT_IO when a file cannot be made or the disk is full; records then stay in memory */
WEFT_API WEFT_MUST_CHECK weft_status weft_watch_record(const char *folder, weft_error *error);

/* weft_watch_patience - seconds that ranks wait for one that does nothing (neither waits, nor computes, nor reads or
 * writes a disk) before the job is ended. Default 10, at least 3; 0: only watch, never end the job; NaN changes nothing. Set the same everywhere.
 * Local. */
WEFT_API void weft_watch_patience(double seconds);

/* weft_watch_device_patience - seconds that a device may make no progress in its queued work while a rank waits for
 * it, as in one long kernel, before the job is ended. Default 60, at least 3, and never less than the patience of
 * ranks; 0: for ever; NaN changes nothing. Set the same everywhere. Local. */
WEFT_API void weft_watch_device_patience(double seconds);

/* weft_watch_busy - this rank is about to do something of the user's that may take long without using the processor;
 * NULL: it is over. `what` is copied. Local; from any thread. */
WEFT_API void weft_watch_busy(const char *what);

/* weft_watch_hurry - the program was told to end, and will when its run is over. A run that cannot get on, since its
 * lanes wait for each other, is ended in a moment, whatever the patience. Local; from any thread, and from a signal
 * handler. */
WEFT_API void weft_watch_hurry(void);

/* weft_watch_saved - the newest checkpoint's step, for reports. Local. */
WEFT_API void weft_watch_saved(int64_t step);

/* weft_watch_work - what this process's program is at, for people who look on (weft_live_open). Local; not while a program runs.
 *
 * last   the number of the last run; 0: not known
 * items  that a run goes through; 0: not known
 * unit   of these, at most 15 letters: "tokens"; NULL: none */
WEFT_API void weft_watch_work(int64_t last, int64_t items, const char *unit);

/* ---- while it runs, from another process: no world, no mesh. All Local. ---------------------------------------- */

typedef struct weft_live weft_live; /* opaque: the records of a job, as its ranks write them */

typedef struct weft_live_rank {
    int rank, pid;
    const char *host;
    bool is_here;    /* on this host, so that what it writes is seen at once */
    bool is_running; /* its process is there; of another host: it was heard in the last 10 s */
    bool has_left;   /* its process said that it ends */
    int64_t run, saved,
        last; /* runs begun; step of the newest checkpoint, -1: none; weft_watch_work's, 0: not known */
    int64_t items;     /* of a run; 0: not known */
    const char *unit;  /* of these; "": not known */
    const char *doing; /* as of weft_rank_report */
    int awaits;        /* the first rank that it waits for; -1: none */
    int n_waiters;     /* ranks that wait for it */
    /* seconds since the job began: that it has stood still for other ranks; that its program has for its next batch */
    double waited, input;
    double opened, begun,
        alive;      /* seconds since 1970: the record, the last run, the last sign of life */
    int64_t memory; /* bytes that its process has in memory; 0: not known */
} weft_live_rank;

/* weft_live_open - the records under a run directory, or its `recorder` folder. They are looked at where the ranks write them, so the ranks
 * have no work with it. returns WEFT_USAGE where there are none, WEFT_IO where they cannot be read, WEFT_CORRUPT for those of another version */
WEFT_API WEFT_MUST_CHECK weft_status weft_live_open(const char *path, weft_live **live,
                                                    weft_error *error);
/* weft_live_look - the ranks at this moment. Ranks borrowed before are gone. NULL: nothing. Returns seconds since 1970. */
WEFT_API double weft_live_look(weft_live *live);
WEFT_API int weft_live_n_ranks(const weft_live *live);
/* By rank; NULL past the end, and before the first look. Borrowed until the next look. */
WEFT_API const weft_live_rank *weft_live_rank_at(const weft_live *live, int index);
WEFT_API void weft_live_close(weft_live **live);

/* ---- after the end: no world, no mesh. All Local. ------------------------------------------------------------- */

typedef struct weft_postmortem weft_postmortem; /* opaque: the records of one job */

typedef struct weft_rank_report {
    int rank, pid;
    const char *host;
    int64_t run, saved; /* runs of the program begun; step of the newest checkpoint, -1: none */
    uint64_t n_calls;   /* collectives begun */
    /* "in all_reduce 12 over data of w.grad [...] f32, called at model.c:88" */
    const char *doing;
    /* "left the job", "died of SIGSEGV", "ended without a word" */
    const char *ended;
    double alive; /* when it was last seen alive; seconds since 1970 */
    double call;  /* when its last call began                        */
} weft_rank_report;

/* weft_postmortem_open - read the records under a run directory, or its `recorder` folder. WEFT_USAGE when there are
 * none. */
WEFT_API WEFT_MUST_CHECK weft_status weft_postmortem_open(const char *path,
                                                          weft_postmortem **postmortem,
                                                          weft_error *error);
WEFT_API void weft_postmortem_close(weft_postmortem **postmortem);
/* Of NULL, and of an index that is not there, the following say "", 0 or NULL.
 *
 * The paragraph: the reason why the job ended, as it was said then, or else as the records tell. Borrowed. */
WEFT_API const char *weft_postmortem_text(const weft_postmortem *postmortem);
/* The exit status that the job ended with, or would have: 0 when every rank left the job. */
WEFT_API int weft_postmortem_status(const weft_postmortem *postmortem);
/* The number of ranks with records. */
WEFT_API int weft_postmortem_n_ranks(const weft_postmortem *postmortem);
WEFT_API const weft_rank_report *weft_postmortem_rank_at(const weft_postmortem *postmortem,
                                                         int index);
/* The last calls of a rank, oldest first, at most `most`: one line each, with how long the call was under way and how long the
 * rank waited for it, where it went on beside the rank's work. The caller frees it; NULL: out of memory. */
WEFT_API char *weft_postmortem_calls(const weft_postmortem *postmortem, int index, int most);

WEFT_END

#endif
