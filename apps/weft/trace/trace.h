/* trace.h: weft trace: the traced steps of a run, as a file for Perfetto. */
#ifndef WEFT_APPS_TRACE_H
#define WEFT_APPS_TRACE_H

#include "../../app.h"

/* trace_main - arguments [n]: after the subcommand. returns the exit status. */
int trace_main(int n, char **arguments);
extern const option_table trace_table; /* of its options */

#endif
