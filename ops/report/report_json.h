/* report_json.h (private): a plan as JSON, to which others add. */
#ifndef WEFT_REPORT_JSON_H
#define WEFT_REPORT_JSON_H

#include "report.h"

#include <jansson.h>

/* The plan, to be given back by json_decref; NULL and the reason in `error`, which must be there. */
json_t *weft_report_json(const weft_program *program, weft_error *error);
weft_status weft_report_json_write(const json_t *root, FILE *file, weft_error *error);

#endif
