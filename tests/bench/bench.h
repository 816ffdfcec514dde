/* bench.h: the clock, and what every measurement does with an error. */
#ifndef WEFT_BENCH_H
#define WEFT_BENCH_H

#include <stdio.h>
#include <time.h>

#include "weft/error.h"

static inline double bench_now(void) /* seconds */
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The exit status of a measurement: its error is printed when there is one. */
static inline int bench_end(const char *name, weft_status status, const weft_error *error)
{
    if (status == WEFT_OK) return 0;
    fprintf(stderr, "%s: %s\n", name, error->message);
    return 1;
}

#endif
