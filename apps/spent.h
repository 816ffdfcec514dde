/* spent.h: what the time of a training was spent on beside its steps, and which option spares it.
 *
 *     app_spent_begin(&spent);
 *     ... weft_dataset_next ...     app_spent_lap(&spent, APP_ON_INPUT);
 *     ... weft_run, reads ...       app_spent_lap(&spent, APP_ON_STEPS);
 *     if (app_spent_tell(&spent, text, sizeof text)) puts(text);
 */
#ifndef WEFT_APPS_SPENT_H
#define WEFT_APPS_SPENT_H

#include <stdbool.h>
#include <stddef.h>

typedef enum app_spending {
    APP_ON_STEPS,  /* runs of the program, and reading what they made */
    APP_ON_INPUT,  /* waiting for the next batch */
    APP_ON_SAVES,  /* checkpoints, as far as steps wait for them */
    APP_ON_LOOKS,  /* the text that is held out */
    APP_ON_CHECKS, /* comparing what several ranks hold */
    APP_ON_REST,   /* all else that is done between two steps: metrics, progress, agreeing */
    APP_SPENDINGS
} app_spending;

typedef struct app_spent {
    double at; /* the last lap: app_seconds */
    double seconds[APP_SPENDINGS];
    char input[120]; /* which ranks waited for input, and how long; "": all alike, or not known */
} app_spent;

void app_spent_begin(app_spent *spent);
/* app_spent_lap - the time since the last lap, or the begin, went into this. Local. */
void app_spent_lap(app_spent *spent, app_spending what);
/* app_spent_ranks - at the end: which ranks have waited for their own input, by the records in a run's folder. Ranks wait for each other
 * at each batch, so one that reads slowly makes all wait. Local. */
void app_spent_ranks(app_spent *spent, const char *folder);
/* app_spent_is_long - whether a run took so long that its times say something: 5 s. Local; pure. */
bool app_spent_is_long(const app_spent *spent);
/* What took 2 % of the time or more. */
typedef struct app_spent_part {
    const char *what, *helps; /* "waiting for input"; a sentence */
    const char *ranks;        /* app_spent_ranks'; "": nothing of them */
    double seconds, share;    /* of the whole run */
} app_spent_part;
/* app_spent_list - of a run that took 5 s what it was spent on beside steps, the largest first, into parts [APP_SPENDINGS]. returns how
 * many there are. Local; pure. */
int app_spent_list(const app_spent *spent, app_spent_part *parts);
/* app_spent_tell - whether something took 2 % of the time or more, of a run that took 5 s: a line for each into text [room], with what
 * helps, the largest first. Local; pure. */
bool app_spent_tell(const app_spent *spent, char *text, size_t room);
/* app_spent_path - the file of a run's folder in which it keeps advice, and the list above, as it ends. The next run in that
 * folder takes it away as it begins. Into path [room]. Local; pure. */
void app_spent_path(const char *folder, char *path, size_t room);

#endif
