/* rings.h: the files into which the ranks of a run have written what their steps did: found by their names, and read one by one.
 *
 *     rings r = {.n = 0};
 *     WEFT_TRY(rings_find(&r, "runs/gpt", error));
 *     while (r.n_open < r.n) WEFT_TRY(rings_open_next(&r, error));
 *     ... r.traced[i] ...
 *     rings_close(&r);
 */
#ifndef WEFT_APPS_RINGS_H
#define WEFT_APPS_RINGS_H

#include "weft/research/trace.h"

typedef struct rings {
    char folder[4096];
    int *numbers; /* [n] of ranks, ascending */
    size_t n;
    weft_traced **traced; /* [n_open], in the order of numbers */
    size_t n_open;
} rings;

/* rings_find - of the run directory `run`; none is fine. Local. returns WEFT_IO where its folder cannot be listed */
weft_status rings_find(rings *r, const char *run, weft_error *error);
/* rings_open_next - read the file of numbers[n_open]. Local. returns WEFT_CORRUPT for one that is damaged, or is another rank's */
weft_status rings_open_next(rings *r, weft_error *error);
void rings_close(rings *r);

#endif
