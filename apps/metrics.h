/* metrics.h: what each step of a training came to, as JSON lines that other programs read: one object a line, one line a step.
 *
 *     app_metrics metrics = {0};
 *     WEFT_TRY(app_metrics_open(&metrics, settings, error));
 *     json_t *line = app_metrics_line(step);
 *     json_object_set_new(line, "loss", app_json_number(loss));
 *     WEFT_TRY(app_metrics_write(&metrics, step, line, error));
 *     ...
 *     WEFT_TRY(app_metrics_close(&metrics, error));
 *
 * Lines are appended, so that a run which goes on writes on. Only the root writes; all Local.
 */
#ifndef WEFT_APPS_METRICS_H
#define WEFT_APPS_METRICS_H

#include <stdio.h>

#include "board.h"
#include "json.h"
#include "options.h"

/* The option, for a program's table; besides "run", which is the program's own. */
#define APP_METRICS_OPTION(group)                                                                  \
    {                                                                                              \
        "metrics", OPTION_TEXT, "", "FILE", group, "append JSON lines here instead, one a step"    \
    }

typedef struct app_metrics {
    FILE *file;       /* NULL: closed */
    app_board *board; /* gets each line too; NULL: nobody does */
} app_metrics;

/* app_metrics_open - the file of --metrics, or metrics.jsonl in the folder of --run, which is there. */
weft_status app_metrics_open(app_metrics *metrics, const settings *s, weft_error *error);
/* app_metrics_line - a line's beginning: its step. NULL: out of memory, which app_metrics_write says. */
json_t *app_metrics_line(int64_t step);
/* app_metrics_write - takes the line, and hands it to the system. returns WEFT_IO, as for a full disk */
weft_status app_metrics_write(app_metrics *metrics, int64_t step, json_t *line, weft_error *error);
/* app_metrics_close - returns WEFT_IO when the file could not be written to its end */
weft_status app_metrics_close(app_metrics *metrics, weft_error *error);

/* app_open_file - a file of a run for writing, by fopen's mode; app_close_file - `what` is the file in the sentence. */
weft_status app_open_file(const char *path, const char *mode, FILE **file, weft_error *error);
weft_status app_close_file(FILE **file, const char *what, weft_error *error);

#endif
