/* run.h: a training that can be stopped and continued: the options, the checkpoints, the decision
 * to stop.
 *
 *     WEFT_TRY(app_run_open(&run, &(app_run_setup){settings, program, data, steps}, error));
 *     for (int64_t step = run.first + 1; step <= steps && !run.is_stopped; step++) {
 *         ... weft_dataset_next, weft_run, report ...
 *         WEFT_TRY(app_run_step(&run, step, error));
 *     }
 *     WEFT_TRY(app_run_finish(&run, error));
 *     ...
 *     app_run_close(&run);
 */
#ifndef WEFT_APPS_RUN_H
#define WEFT_APPS_RUN_H

#include "board.h"
#include "held.h"
#include "lock.h"
#include "metrics.h"
#include "options.h"
#include "plan.h"
#include "predict.h"
#include "spent.h"
#include "stop.h"
#include "tracing.h"
#include "weft/checkpoint.h"
#include "weft/io.h"

/* The options it reads, for a program's table; besides "run" and "seed", which are the program's
 * own. */
#define APP_RUN_OPTIONS                                                                             \
    {"save-every",                                                                                  \
     OPTION_COUNT,                                                                                  \
     "0",                                                                                           \
     "N",                                                                                           \
     "Continuing",                                                                                  \
     "steps between checkpoints; 0: by --save-after, and when the run ends or is stopped"},         \
        {"save-after",                                                                              \
         OPTION_TIME,                                                                               \
         "10m",                                                                                     \
         "TIME",                                                                                    \
         "Continuing",                                                                              \
         "a checkpoint after the step at which the newest is so old; 0s: none for that",            \
         NULL,                                                                                      \
         -1},                                                                                       \
        {"keep", OPTION_COUNT, "2", "N", "Continuing", "newest checkpoints that stay", NULL, 2},    \
        {"resume",                                                                                  \
         OPTION_TEXT,                                                                               \
         "auto",                                                                                    \
         "WHAT",                                                                                    \
         "Continuing",                                                                              \
         "auto: from the newest good checkpoint of --run; none: from the start; or a step"},        \
        {"data-changed", OPTION_FLAG,                                                               \
         "no",           "",                                                                        \
         "Continuing",   "go on with other data than it has learned from, from its first sample"},  \
        {"fresh",      OPTION_FLAG,                                                                 \
         "no",         "",                                                                          \
         "Continuing", "from the start; the folder of --run is first renamed to DIR.1, DIR.2 ..."}, \
        {"max-time", OPTION_TIME,  "",                                                              \
         "TIME",     "Continuing", "save and stop before it has run so long: 90s, 30m, 2h"},        \
        {"patience",                                                                                \
         OPTION_TIME,                                                                               \
         "10s",                                                                                     \
         "TIME",                                                                                    \
         "Continuing",                                                                              \
         "how long ranks wait for one that does nothing, before the job is ended; 0s: for ever",    \
         NULL,                                                                                      \
         -1},                                                                                       \
        APP_MACHINE_OPTION("Continuing"), APP_BOARD_OPTIONS("Continuing"),                          \
        APP_KEEP_PLAN_OPTION("Continuing"),                                                         \
    {                                                                                               \
        "check-replicas", OPTION_COUNT, "0", "N", "Continuing",                                     \
            "steps between comparing what several ranks hold; 0: only when saving"                  \
    }

typedef struct app_run_setup {
    const settings *settings; /* borrowed, as are the others */
    weft_program *program;
    weft_dataset *data;
    int64_t last; /* the step that ends the run */
    /* what checkpoints had in their seed that did not say their data yet; 0: nothing */
    uint64_t mark;
    histograms_of of; /* what --histograms looks at; its program is this one */
    double items;     /* that a step learns from, and what they are: "samples", "tokens" */
    const char *unit;
    weft_trace_part looks; /* what runs between steps besides, for --trace: `runs` at each look */
    bool is_quiet;         /* nothing is said of what went well */
    app_pipe pipe;         /* of a pipeline, for --keep-plan */
    app_held *held;        /* looks at held-out data; NULL, or one without data: there are none */
} app_run_setup;

/* What looks at held-out data came to. */
typedef struct app_run_looks {
    int64_t step; /* of the newest that was not cut short; 0: none */
    double loss;  /* it came to; may be no number */
    bool is_best; /* it is lower than all before, and --best wants it kept: the same on all ranks */
    double best;  /* the lowest on disk, at the root; with --best alone */
    int64_t best_step; /* its step; 0: there is none */
    bool
        is_missing; /* the step that the run goes on from should have had one: the same on all ranks */
} app_run_looks;

typedef struct app_run {
    app_run_setup setup;
    weft_checkpoints *checkpoints;
    int64_t first;       /* the step that it continues from; 0: a new run */
    int64_t step, saved; /* done; the newest one on disk */
    stop_watch watch;
    double save_begun; /* the newest one's, or when the run began: app_seconds */
    app_lock lock;     /* of the run directory; the root's */
    app_tracing tracing;
    app_comparison comparison; /* of --machine */
    app_spent spent; /* app_run_step takes laps for what it does; the program for input and steps */
    app_board board; /* of --tensorboard */
    app_run_looks looks;
    app_metrics metrics; /* app_run_all's; the root's */
    bool is_running;     /* the start is over: a failure from here on is not the command line's */
    bool is_stopped;     /* early: watch.why */
    char note[1024];     /* what to tell at the start, a line each; "" for nothing */
} app_run;

/* app_run_open - the run directory; --fresh; the checkpoint that it continues from into the
 * program's variables, run counter and the dataset's position. Collective over the job; agrees on
 * failure. */
weft_status app_run_open(app_run *run, const app_run_setup *setup, weft_error *error);
/* app_run_begin - the look that the run before was stopped in, if it was: `numbers` are of step run->first. Collective over the job. */
weft_status app_run_begin(app_run *run, app_held_numbers *numbers, weft_error *error);
/* app_run_look - after weft_run of step number `step`, where a look is due; app_run_step saves what --best keeps. Collective over the
 * job. */
weft_status app_run_look(app_run *run, int64_t step, app_held_numbers *numbers, weft_error *error);
/* app_run_found - at the start of a run that goes on, the root: the lowest loss of held-out data on disk, and whether the step `stored` that
 * it goes on from lacks its look. Local. */
void app_run_found(app_run *run, const char *folder, const weft_stored *stored);
/* app_run_before - before weft_run of step number `step`, its batch there: histograms. Collective over the job. */
weft_status app_run_before(app_run *run, int64_t step, weft_error *error);
/* app_run_step - after step number `step`: save, compare replicas, decide whether to stop.
 * Collective over the job. */
weft_status app_run_step(app_run *run, int64_t step, weft_error *error);
/* app_run_finish - the last checkpoint, until it is on disk. Collective over the job. */
weft_status app_run_finish(app_run *run, weft_error *error);
/* What app_run_all reads after each step: the loss, and others by their names in metrics.jsonl. */
enum { APP_MOST_READ = 4 };
typedef struct app_run_reads {
    weft_value values[APP_MOST_READ]; /* scalars; the first is the loss */
    const char *names[APP_MOST_READ];
    int n;
} app_run_reads;

/* app_run_all - open, every step, finish: for programs that want no more than a line of the loss
 * every 100 steps, and metrics.jsonl. Collective over the job. */
weft_status app_run_all(app_run *run, const app_run_setup *setup, const app_run_reads *reads,
                        weft_error *error);
/* app_run_result - a number that is known when the training is over, as a line of its own in metrics.jsonl; the root writes. Local. */
void app_run_result(app_run *run, const char *name, double number);
/* app_run_settle - after a failure that every rank knows of: let a save under way end. Collective
 * over the job. */
void app_run_settle(app_run *run, const weft_error *error);
void app_run_close(app_run *run);

/* app_run_saves - when checkpoints are made, in a line. Local. */
void app_run_saves(const app_run *run, char *text, size_t bytes);
/* app_run_ending - one sentence about a run that was stopped early or had nothing to do; false:
 * neither. Local. */
bool app_run_ending(const app_run *run, char *text, size_t bytes);
/* app_run_best - which checkpoint --best has kept; false: none. Of the root. Local. */
bool app_run_best(const app_run *run, char *text, size_t bytes);

/* app_make_folder - a run directory, with those above it. Local. */
weft_status app_make_folder(const char *path, weft_error *error);
/* app_checkpoint_folder - where the run directory `folder` keeps its checkpoints. Local. */
void app_checkpoint_folder(const char *folder, char *path, size_t bytes);

#endif
