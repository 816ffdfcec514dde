/* top.h: `weft top RUN`: a job that runs, rank by rank, four times a second. */
#ifndef WEFT_APPS_TOP_H
#define WEFT_APPS_TOP_H

#include "../../app.h"

extern const option_table top_table;
int top_main(int n, char **arguments);

#endif
