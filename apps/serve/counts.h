/* counts.h: what /metrics tells, in the text format of Prometheus: what all servers count, and how others are told. */
#ifndef WEFT_APPS_SERVE_COUNTS_H
#define WEFT_APPS_SERVE_COUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Seconds, by bounds that double: 1 ms, 2 ms, .., 65 s, any. */
enum { SERVE_BOUNDS = 17 };
typedef struct serve_times {
    int64_t counts[SERVE_BOUNDS + 1];
    double sum;
} serve_times;
void serve_times_add(serve_times *times, double seconds);

/* How requests ended. */
typedef enum serve_end {
    SERVE_DONE,    /* answered */
    SERVE_WRONG,   /* refused: it was wrong */
    SERVE_REFUSED, /* refused: too many, or the server ends */
    SERVE_LATE,    /* it had no time left */
    SERVE_LEFT,    /* nobody wanted the answer any more */
    SERVE_FAILED,
    SERVE_ENDINGS
} serve_end;

typedef struct serve_counts {
    int64_t ended[SERVE_ENDINGS];
    int64_t n_clients;
    serve_times waits; /* in the queue */
} serve_counts;

/* serve_count - a number, as a "counter" or a "gauge", by its name behind "weft_serve_" and what it is; serve_count_times - a histogram.
 * Local, as all here. */
void serve_count(FILE *file, const char *name, const char *kind, const char *help, int64_t n);
void serve_count_times(FILE *file, const char *name, const char *help, const serve_times *t);
/* serve_counts_write - those of all servers. */
void serve_counts_write(FILE *file, const serve_counts *counts, int64_t n_waiting);

#endif
