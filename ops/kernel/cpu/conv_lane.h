/* conv_lane.h: what a lane keeps while it does some rows of a convolution (conv_items.c), and how it finds where they are (conv_points.c). */
#ifndef WEFT_CONV_LANE_H
#define WEFT_CONV_LANE_H

#include "cpu/conv.h"

enum {
    WEFT_CONV_BLOCK = 256,      /* elements that are summed up in a register */
    WEFT_CONV_TILES = 160,      /* of rows, whose addresses are kept */
    WEFT_CONV_ZEROS = 32 << 10, /* bytes that a run outside of x reads, at most */
    WEFT_CONV_PANEL = WEFT_RUN_VECTORS * WEFT_RUN_BYTES
};

/* One tile's rows: addresses in x without k's part, and of y, and places in windows. */
typedef struct weft_conv_row_set {
    int64_t x[WEFT_RUN_ROWS], y[WEFT_RUN_ROWS];
    int64_t at[WEFT_CONV_WINDOWS][WEFT_RUN_ROWS];
    int64_t n;
    bool is_inside; /* at all of k */
} weft_conv_row_set;

typedef struct weft_conv_block {
    int64_t n;
    int64_t x[WEFT_CONV_BLOCK], w[WEFT_CONV_BLOCK]; /* bytes */
    int64_t first[WEFT_CONV_BLOCK], k[WEFT_CONV_BLOCK];
    int64_t at[WEFT_CONV_WINDOWS][WEFT_CONV_BLOCK];
    const char *b[WEFT_CONV_BLOCK];
} weft_conv_block;

/* Of a lane's scratch. */
typedef struct weft_conv_lane {
    char pad[WEFT_CONV_PAD_BYTES];
    weft_conv_row_set tiles[WEFT_CONV_TILES];
    weft_conv_block block;
    const char *a[WEFT_CONV_BLOCK][WEFT_RUN_ROWS], *b[WEFT_CONV_BLOCK];
    int64_t k[WEFT_CONV_BLOCK];
    char panel[WEFT_CONV_BLOCK * WEFT_CONV_PANEL];
    _Alignas(64) char places[WEFT_RUN_ROWS][WEFT_RUN_BYTES]; /* of channels */
    _Alignas(64) char spare[WEFT_RUN_ROWS][WEFT_CONV_PANEL];
    char zeros[WEFT_CONV_ZEROS];
} weft_conv_lane;
_Static_assert(sizeof(weft_conv_lane) <= WEFT_LANE_SCRATCH, "scratch holds all");

/* Tiles [first, first + n) of rows, with p at element 0 of m and k. */
void weft_conv_find_rows(const weft_conv *c, const weft_conv_place *p, int64_t first, int64_t n,
                         weft_conv_lane *m);
/* The block of runs that begins with `first`; w_first: of w at element 0. */
void weft_conv_find_runs(const weft_conv *c, int64_t first, int64_t w_first, weft_conv_block *b);
/* Sets t's runs: the block's, with the addresses of a tile's rows. */
void weft_conv_point(const weft_conv *c, const weft_conv_row_set *set, weft_run_tile *t,
                     weft_conv_lane *m);

#endif
