/* options_check.h: whether a value is what its option takes. For options.c. */
#ifndef WEFT_APPS_OPTIONS_CHECK_H
#define WEFT_APPS_OPTIONS_CHECK_H

#include "options.h"

/* option_check - `said` is how the user wrote it: "--batch 0", "WEFT_BATCH=0". Local. returns WEFT_USAGE with one sentence. */
weft_status option_check(const option *o, const char *value, const char *said, weft_error *error);

/* option_check_path - the length alone: names of files in a folder come behind it, and the system takes no path of more than 4,095
 * bytes. what: "FILE", "the operand". Local. returns WEFT_USAGE. */
weft_status option_check_path(const char *what, const char *path, weft_error *error);

/* option_seconds - "90s", "30m", "1.5h" in seconds; below 0: it is none of these. Local. */
double option_seconds(const char *text);

#endif
