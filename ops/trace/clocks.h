/* clocks.h (private): how far the clocks of ranks are apart.
 *
 * Processes of one host have one CLOCK_MONOTONIC, unless one of them has a time of its own (a name space). Other clocks are
 * compared with rank 0's in gathers of all ranks, one after the other: each rank reads its clock before each gather, and
 * gathers that. Rank 0's reading before gather k comes after this rank's before gather k - 1, since rank 0 had to have that; and
 * before this rank's before gather k + 1. The narrowest such gap gives the offset, and half of it bounds the error.
 */
#ifndef WEFT_TRACE_CLOCKS_H
#define WEFT_TRACE_CLOCKS_H

#include "program.h"
#include "weft/research/trace.h"

enum { WEFT_CLOCK_ROUNDS = 32 };

typedef struct weft_clocks {
    weft_program *program; /* whose ranks compare */
    bool is_one;           /* all ranks have the same clock */
    uint64_t job;          /* of all ranks the same, of no other trace */
    int64_t *heard;        /* [3 n_ranks] readings, and places for a gather */
} weft_clocks;

/* weft_clocks_open - whether clocks have to be compared; what `refused` says is known to all ranks then, and ends it on all.
 * Collective over the mesh. weft_clocks_close - also after a failure. Local. */
weft_status weft_clocks_open(weft_program *program, const weft_error *refused, weft_clocks *clocks,
                             weft_error *error);
void weft_clocks_close(weft_clocks *clocks);
/* weft_clocks_compare - this process's with rank 0's. Collective over the mesh. */
weft_status weft_clocks_compare(const weft_clocks *clocks, weft_traced_clock *clock,
                                weft_error *error);
/* weft_clock_between - of readings before gathers 0 to n, and one after them: own [n + 2], rank 0's [n + 1]. Pure. */
weft_traced_clock weft_clock_between(const int64_t *own, const int64_t *zero, int n);

#endif
