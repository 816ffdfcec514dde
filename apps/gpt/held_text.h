/* held_text.h: the text that gpt learns nothing from (--eval-data, --eval-share), and its loss as a forward program. */
#ifndef WEFT_APPS_GPT_HELD_TEXT_H
#define WEFT_APPS_GPT_HELD_TEXT_H

#include "setup.h"

/* gpt_held_open - setup->held; nothing where options name no such text. Collective over the job; agrees on failure. */
weft_status gpt_held_open(gpt_setup *setup, weft_error *error);
/* gpt_held_compile - for a plan, on a mesh without ranks: of the text, where it is there, only how long it is. Local. */
weft_status gpt_held_compile(gpt_setup *setup, weft_error *error);

#endif
