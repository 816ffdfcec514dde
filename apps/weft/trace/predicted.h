/* predicted.h: what was predicted of traced steps, beside what they did. */
#ifndef WEFT_APPS_PREDICTED_H
#define WEFT_APPS_PREDICTED_H

#include "../../perfetto.h"
#include "weft/research/trace.h"

/* predicted_add - a process of tracks beside those of a rank: each of its runs as it was predicted, from when it began. Scans show
 * their first trip. Nothing where nothing was predicted. Local. */
void predicted_add(perfetto *out, const weft_traced *traced);
/* predicted_print - a run as predicted and as it was, and the steps that differ most. Nothing where nothing was predicted. Local. */
weft_status predicted_print(const weft_traced *traced, FILE *file, weft_error *error);

#endif
