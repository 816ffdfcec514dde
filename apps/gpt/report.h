/* report.h: what a training tells: a progress line, metrics as JSON lines, a run directory. Only
 * the root rank's report does anything; all ranks may call. */
#ifndef WEFT_APPS_GPT_REPORT_H
#define WEFT_APPS_GPT_REPORT_H

#include "../metrics.h"
#include "setup.h"

typedef struct gpt_report {
    const gpt_setup *setup;
    app_metrics metrics;
    FILE *log;              /* NULL: none */
    bool is_root, is_quiet; /* quiet: nothing on stderr */
    bool is_terminal;       /* the progress line is rewritten in place */
    double begun, shown;    /* seconds: the first step's start, the last rewriting */
} gpt_report;

typedef struct gpt_step {
    int64_t step;
    double loss, norm, rate, seconds;
    double balance, dropped; /* of experts, summed over layers */
    app_held_numbers held;
} gpt_step;

/* gpt_report_open - the run directory with run.json, log.txt and metrics.jsonl; prints settings and
 * facts. Local. returns WEFT_IO when something cannot be written */
weft_status gpt_report_open(gpt_report *report, const gpt_setup *setup, weft_error *error);
/* gpt_report_step - one step's numbers. Local. returns WEFT_IO, as for a full disk */
weft_status gpt_report_step(gpt_report *report, const gpt_step *step, weft_error *error);
/* gpt_report_look - a look at held-out data after a step that an earlier run has done, if there was one. Local. returns WEFT_IO, as
 * above */
weft_status gpt_report_look(gpt_report *report, int64_t step, const app_held_numbers *held,
                            weft_error *error);
/* gpt_report_close - the last line. Local. returns WEFT_IO when the files could not be written to
 * the end */
weft_status gpt_report_close(gpt_report *report, weft_error *error);

/* gpt_report_say - a line for log.txt and, unless quiet, stderr. Local. */
void gpt_report_say(gpt_report *report, const char *text);

#endif
