/* tune.h: `weft tune`: the options of a training that learn best, searched for. */
#ifndef WEFT_APPS_TUNE_H
#define WEFT_APPS_TUNE_H

#include "../../app.h"

extern const option_table tune_table;
int tune_main(int n, char **arguments);

#endif
