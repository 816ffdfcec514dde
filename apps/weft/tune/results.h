/* results.h: what a search came to: a table, a picture, data. */
#ifndef WEFT_APPS_TUNE_RESULTS_H
#define WEFT_APPS_TUNE_RESULTS_H

#include "search.h"

/* results_table - the best first, then the command of the best. Local. */
weft_status results_table(const search *s, int most, weft_error *error);
/* results_json - all of them, to stdout. Local. */
weft_status results_json(const search *s, weft_error *error);
/* results_picture - an SVG: for each option that varies, its values and what trials came to. Local. returns WEFT_IO */
weft_status results_picture(const search *s, const char *path, weft_error *error);

#endif
