/* advice.h: what a plan that does not fit could be instead. */
#ifndef WEFT_APPS_GPT_ADVICE_H
#define WEFT_APPS_GPT_ADVICE_H

#include "setup.h"

/* gpt_advise - where a rank of the planned program needs more memory than this machine has: options that need less, each planned
 * like the program itself, until one fits. Prints to stdout. Local. */
weft_status gpt_advise(const gpt_setup *setup, weft_error *error);

#endif
