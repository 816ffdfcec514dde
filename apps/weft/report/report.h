/* report.h: weft report: a run or a plan as one HTML file. */
#ifndef WEFT_APPS_REPORT_H
#define WEFT_APPS_REPORT_H

#include "../../app.h"

/* report_main - arguments [n]: after the subcommand. returns the exit status. */
int report_main(int n, char **arguments);
extern const option_table report_table; /* of its options */

#endif
