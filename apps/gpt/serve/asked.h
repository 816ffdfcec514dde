/* asked.h: the body of a request, read and checked: each thing that is wrong is one sentence. */
#ifndef WEFT_APPS_GPT_ASKED_H
#define WEFT_APPS_GPT_ASKED_H

#include "server.h"

/* gpt_asked_read - the JSON of a body into a request, tokens and all. By the thread that encodes. returns WEFT_USAGE for what the client can
 * mend, WEFT_MEMORY */
weft_status gpt_asked_read(const gpt_facts_served *facts, const char *body, size_t n,
                           gpt_request *r, weft_error *error);

#endif
