/* heads.h: options of attention: how many heads, of how many numbers, and how these turn by places. */
#ifndef WEFT_APPS_GPT_HEADS_H
#define WEFT_APPS_GPT_HEADS_H

#include "../options.h"
#include "weft/ops.h"

/* gpt_heads_check - returns WEFT_USAGE for options that do not fit each other. gpt_rotary_of - how pairs turn. Local. */
weft_status gpt_heads_check(const settings *s, weft_error *error);
weft_rope_options gpt_rotary_of(const settings *s);

#endif
