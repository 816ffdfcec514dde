/* tokens.h: `weft tokens`. */
#ifndef WEFT_APPS_WEFT_TOKENS_H
#define WEFT_APPS_WEFT_TOKENS_H

#include "../options.h"

/* tokens_main - the command without "weft tokens". returns the exit status */
int tokens_main(int n, char **arguments);
extern const option_table tokens_table; /* of its options */

#endif
