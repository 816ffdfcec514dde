/* parts.h (private): the parts of a report, which become its data: small enough for a browser, whatever the plan's size.
 *
 * Texts are written once, and named by their numbers. Steps that differ in their times alone are of one kind, which is written
 * once: a step has the number of its kind, and its times in whole ns. So 12,000 steps of 65,536 ranks take some hundred KB. A note
 * says what is left out all the same.
 */
#ifndef WEFT_APPS_REPORT_PARTS_H
#define WEFT_APPS_REPORT_PARTS_H

#include <stddef.h>

#include "found.h"

/* At most so many of each are in the data. */
typedef struct report_limits {
    size_t steps, events, tensors, points;
} report_limits;

typedef struct report_data {
    report_found *found; /* its traces are opened as they are needed */
    report_limits limits;
    json_t *root;                 /* what the page gets */
    json_t *texts, *text_numbers; /* each once; its number by its text */
    json_t *kinds,
        *kind_numbers; /* of steps: rows of report_step's facts; the number of a row by itself as text */
    json_t *notes; /* sentences */
    json_t
        *rows; /* of the steps that are shown: their number, if not all are; borrowed from root */
    size_t n_steps;          /* of the plan, shown or not */
    unsigned char *is_shown; /* [n_steps]; NULL: there is no step */
} report_data;

/* A step of the plan, by what it has in common with others. Texts may be NULL. */
typedef struct report_step {
    const char *phase, *name, *place;
    const char *from, *spec,
        *box; /* of its first operand and result, "[batch:8/data]"; rank 0's part of the result */
    const char *reason, *queue;
    double flops, bytes, times; /* of one time; how often a run does it */
} report_step;

/* report_data_make - all of it. Own `data`: report_data_free. Local. */
weft_status report_data_make(report_data *data, report_found *found, const report_limits *limits,
                             weft_error *error);
void report_data_free(report_data *data);

/* report_text - the number of a text; what is not UTF-8 becomes "?". NULL is "". */
json_int_t report_text(report_data *data, const char *text);
/* report_kind - the number of the kind of a step. */
json_int_t report_kind(report_data *data, const report_step *step);
/* report_note - a sentence about what is left out. */
void report_note(report_data *data, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* report_short_text - a text, cut off if it is long; "?" where it is not UTF-8. Own it. */
json_t *report_short_text(const char *text);
/* report_copy - a value with long texts and lists cut off, so that no file makes a page too long. NULL of NULL. Own it. */
json_t *report_copy(const json_t *value);
/* report_choose - which steps are shown: the `limits.steps` that weigh most.
 *
 * weights  [n] seconds, or another measure of all steps
 * what     "predicted seconds", for the note */
weft_status report_choose(report_data *data, const double *weights, size_t n, const char *what,
                          weft_error *error);
/* report_column - of the steps that are shown: each number, in whole units, or if is_sum what it is more than the one before. */
void report_column(report_data *data, const char *name, const double *numbers, bool is_sum);

/* report_plan_part - the plan's facts, its steps and tensors, its prediction. Nothing without a plan.
 * report_trace_part - what ranks have measured; the steps too, where there is no plan. Nothing without a trace.
 * report_curves_part - metrics.jsonl, as curves. Nothing without it.
 * report_advice_part - what would help: of a run what its end said, else what its plan says. Nothing where nobody asked. All Local. */
weft_status report_plan_part(report_data *data, weft_error *error);
weft_status report_trace_part(report_data *data, weft_error *error);
weft_status report_curves_part(report_data *data, weft_error *error);
void report_advice_part(report_data *data);

#endif
