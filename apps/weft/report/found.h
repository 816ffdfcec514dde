/* found.h: what there is to report: the folder of a run with whatever is in it, or a plan as JSON.
 *
 *     report_found found = {0};
 *     WEFT_TRY(report_find("runs/gpt", "", &found, error));
 *     ...
 *     report_forget(&found);
 */
#ifndef WEFT_APPS_REPORT_FOUND_H
#define WEFT_APPS_REPORT_FOUND_H

#include <stdbool.h>

#include "../../json.h"
#include "../trace/rings.h"

typedef struct report_found {
    const char *source; /* as it was given; borrowed */
    bool is_run;        /* a folder */
    bool is_going;      /* a job has the folder now */
    json_t *run;        /* run.json; NULL: none */
    json_t *plan;       /* NULL: none */
    json_t *advice;     /* advice.json of a run; NULL: none */
    rings rings;
    char metrics[4200]; /* the path of metrics.jsonl; "": none */
} report_found;

/* report_find - Local.
 *
 * source   a folder, a file, or "-": stdin
 * plan     of a run: the file of its plan, or "-"; "": plan.json in the folder, if it is there
 * returns  WEFT_USAGE for what is neither a run nor a plan, with the line where JSON ends being such; WEFT_IO where it cannot be
 *          read; WEFT_CORRUPT for a damaged trace. Call report_forget in any case */
weft_status report_find(const char *source, const char *plan, report_found *found,
                        weft_error *error);
void report_forget(report_found *found);

#endif
