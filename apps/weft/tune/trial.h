/* trial.h: one training of a search: started on its part of the machine, awaited, and what it came to.
 *
 * A trial has a run directory of its own, so a trial that is to go further, or that was cut off, goes on from its own checkpoint, on
 * another mesh too.
 */
#ifndef WEFT_APPS_TUNE_TRIAL_H
#define WEFT_APPS_TUNE_TRIAL_H

#include <sys/types.h>

#include "space.h"

enum { TRIAL_RUNGS = 20 };

/* What a trial came to, so far trained. */
typedef struct outcome {
    bool is_done;
    int status; /* exit status */
    int64_t steps;
    double result; /* NaN: none */
    double seconds;
} outcome;

/* What a member of a population was trained by in one round. */
typedef struct trial_round {
    char values[SPACE_AXES][SPACE_TEXT];
    int from; /* whose checkpoint it began with; -1: its own */
} trial_round;

typedef struct trial {
    int number;
    char values[SPACE_AXES][SPACE_TEXT];
    /* of a population: the round that it began with another's checkpoint, in a folder of its own; 0: it never did */
    int life;
    trial_round *rounds; /* of a population [n_rungs], else NULL */
    /* of a climb: the trial that was the best, and the one that it is halfway to; -1: it is a whole step away */
    bool is_climbed;
    int from, toward;
    outcome outcomes[TRIAL_RUNGS];
} trial;

typedef struct launch {
    const space *space;
    char *const *command; /* [n] */
    int n;
    const char *folder;  /* of the search */
    const char *program; /* where it is */
    bool makes_mesh;     /* a rank for each core */
} launch;

/* trial_folder - its run directory: "trial_0007" in the search's, or "trial_0007_r03" since it went on from another one. */
void trial_folder(const char *folder, const trial *t, char *path, size_t room);
/* trial_start - until step `until`, 0: to the end, on cores `first` to `first + n_cores - 1` of those that this process has. What it says goes
 * into its log. Local. returns its process, or -1 with WEFT_IO */
pid_t trial_start(const launch *l, const trial *t, int64_t until, int first, int n_cores,
                  weft_error *error);
/* trial_result - the mean of the numbers called `name` in its metrics of the last ten steps up to `until`, 0: of all; *steps: of the newest. NaN: there
 * are none; then WEFT_USAGE with the names that there are, if there is any. Local. */
double trial_result(const char *folder, const trial *t, const char *name, int64_t until,
                    int64_t *steps, weft_error *error);
/* trial_said - the last line of its log. Local. */
void trial_said(const char *folder, int number, char *text, size_t room);

#endif
