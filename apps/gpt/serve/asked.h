/* asked.h: the body of a request, read and checked: each thing that is wrong is one sentence. */
#ifndef WEFT_APPS_GPT_ASKED_H
#define WEFT_APPS_GPT_ASKED_H

#include "facts.h"

/* gpt_asked_read - the JSON of a body into a gpt_request, tokens and all. By the thread that encodes. facts: a gpt_facts_served. returns WEFT_USAGE for what the client can
 * mend, WEFT_MEMORY */
weft_status gpt_asked_read(const void *facts, const char *body, size_t n, serve_request *r,
                           weft_error *error);

#endif
