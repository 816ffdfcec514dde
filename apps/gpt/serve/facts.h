/* facts.h: what gpt serve's requests are told and checked by, and what it counts. */
#ifndef WEFT_APPS_GPT_FACTS_H
#define WEFT_APPS_GPT_FACTS_H

#include "../../serve/queue.h"
#include "request.h"

typedef struct gpt_counts {
    int64_t read, written; /* tokens of prompts, and drawn */
    int64_t n_busy, n_slots;
    serve_times firsts, gaps, ticks; /* to the first token; between two; a tick */
} gpt_counts;

typedef struct gpt_facts_served {
    char model[256]; /* its name */
    bpe *words;      /* NULL: bytes. Encoding is of the thread that speaks HTTP alone */
    int64_t seq, width, n_words;
    size_t longest;    /* bytes of a word */
    gpt_counts counts; /* under the queue's lock */
} gpt_facts_served;

/* gpt_counts_write - for /metrics, of gpt_facts_served. Local. */
void gpt_counts_write(FILE *file, const void *served);

#endif
