/* diff.h: the command `weft diff A B`. */
#ifndef WEFT_APPS_DIFF_H
#define WEFT_APPS_DIFF_H

#include "../../options.h"

extern const option_table diff_table;
int diff_main(int n, char **arguments);

#endif
