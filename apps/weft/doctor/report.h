/* report.h: the findings of all processes as one report, and as lines for people. */
#ifndef WEFT_APPS_DOCTOR_REPORT_H
#define WEFT_APPS_DOCTOR_REPORT_H

#include <jansson.h>

#include "doctor.h"

/* doctor_report - findings [processes] -> hosts with their checks, what differs between them, and whether all is well. The caller's. */
json_t *doctor_report(const json_t *all);
/* doctor_print - a report in words; quiet: without what is good. */
void doctor_print(const json_t *report, bool is_quiet);

#endif
