/* serve.h: `weft serve`: a saved program's outputs by HTTP; of a run of gpt, `gpt serve`. */
#ifndef WEFT_APPS_WEFT_SERVE_H
#define WEFT_APPS_WEFT_SERVE_H

#include "../../options.h"

extern const option_table serve_table;
int serve_main(int n, char **arguments);

#endif
