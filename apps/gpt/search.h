/* search.h: gpt search: the quickest mesh, layout and options of a training. */
#ifndef WEFT_APPS_GPT_SEARCH_H
#define WEFT_APPS_GPT_SEARCH_H

#include "../search.h"
#include "setup.h"

/* gpt_search_open - how gpt is built for a choice, and what it may do in several ways; `search` stays where it is. Local. */
void gpt_search_open(const settings *s, app_search *search);
/* gpt_search - print what is best for these settings. Local: on the root alone. */
weft_status gpt_search(const settings *s, const weft_world *world, weft_error *error);

#endif
