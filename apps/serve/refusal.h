/* refusal.h: what is wrong, as OpenAI's protocol says it. */
#ifndef WEFT_APPS_SERVE_REFUSAL_H
#define WEFT_APPS_SERVE_REFUSAL_H

/* serve_refusal - {"error": {"message": sentence, ..}}, to be freed; NULL: out of memory. status: of HTTP. Local. */
char *serve_refusal(int status, const char *sentence);

#endif
