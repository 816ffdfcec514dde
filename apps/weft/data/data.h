/* data.h: `weft data`: what files hold that programs read: their format, records and fields. */
#ifndef WEFT_APPS_WEFT_DATA_H
#define WEFT_APPS_WEFT_DATA_H

#include "../../options.h"

/* data_main - the command without "weft data". returns the exit status */
int data_main(int n, char **arguments);
extern const option_table data_table; /* of its options */

#endif
