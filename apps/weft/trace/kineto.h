/* kineto.h: the traced steps of a rank as JSON in the form of Kineto, the profiler of PyTorch: for tools that read that. */
#ifndef WEFT_APPS_KINETO_H
#define WEFT_APPS_KINETO_H

#include "weft/research/trace.h"

/* kineto_write - the file rank_N.json in `folder`, which is made where it is not there. Local. */
weft_status kineto_write(const weft_traced *traced, const char *folder, weft_error *error);

#endif
