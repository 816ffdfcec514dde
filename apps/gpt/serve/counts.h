/* counts.h: what /metrics tells, in the text format of Prometheus. */
#ifndef WEFT_APPS_GPT_COUNTS_H
#define WEFT_APPS_GPT_COUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Seconds, by bounds that double: 1 ms, 2 ms, .., 65 s, any. */
enum { GPT_BOUNDS = 17 };
typedef struct gpt_times {
    int64_t counts[GPT_BOUNDS + 1];
    double sum;
} gpt_times;
void gpt_times_add(gpt_times *times, double seconds);

/* How requests ended. */
typedef enum gpt_end {
    GPT_DONE,    /* answered */
    GPT_WRONG,   /* refused: it was wrong */
    GPT_REFUSED, /* refused: too many, or the server ends */
    GPT_LATE,    /* it had no time left */
    GPT_LEFT,    /* nobody wanted the answer any more */
    GPT_FAILED,
    GPT_ENDINGS
} gpt_end;

typedef struct gpt_counts {
    int64_t ended[GPT_ENDINGS];
    int64_t read, written; /* tokens of prompts, and drawn */
    int64_t n_busy, n_slots, n_waiting, n_clients;
    gpt_times waits, firsts, gaps,
        ticks; /* in the queue; to the first token; between two; a tick */
} gpt_counts;

/* gpt_counts_text - all of it, to be freed; NULL: out of memory. Local. */
char *gpt_counts_text(const gpt_counts *counts);

#endif
