/* conv_runs.h: tiles of a sum of products over runs, for processors with AVX-512: what conv_rows.c is made of.
 *
 * c[i, j] = or += the sum over runs r and their elements l of a[r][i][l, j] b[r][l, j]. Each row of the tile has an address of its
 * own in each run, so rows may lie anywhere, and nothing is copied. Sums go in the order of the runs, in one register an element.
 */
#ifndef WEFT_CONV_RUNS_H
#define WEFT_CONV_RUNS_H

#include "cpu/kernels.h"

enum { WEFT_RUN_ROWS = 8, WEFT_RUN_VECTORS = 4, WEFT_RUN_BYTES = 64 /* of a vector */ };

/* What has columns of its own. */
typedef enum weft_run_kind {
    WEFT_RUN_PRODUCT, /* b: a's number goes with all columns */
    WEFT_RUN_EACH,    /* a and b: column by column */
    WEFT_RUN_SCALED,  /* a: b's number goes with all columns */
    WEFT_RUN_KINDS,
    /* a and b, in groups of few: each number of a's group goes with all columns of b's */
    WEFT_RUN_GROUPS = WEFT_RUN_KINDS
} weft_run_kind;

typedef struct weft_run_tile {
    int64_t n;                             /* runs */
    const char *const (*a)[WEFT_RUN_ROWS]; /* [n] */
    const char *const *b;                  /* [n] */
    const int64_t *k;                      /* [n] elements of each */
    int64_t a_step, b_step;                /* bytes from one element of a run to the next */
    char *const *c;                        /* [rows], none the same; contents are kept by `add` */
    int columns;                           /* c's; b of a product has zeros up to whole vectors */
    bool add;
    bool streams;     /* c goes past the caches: whole vectors, aligned to one; not with `add` */
    int64_t channels; /* of a group */
    const char
        *places; /* [channels] vectors: where a vector of a has a channel of each column's group */
} weft_run_tile;

typedef void (*weft_run_function)(const weft_run_tile *t);

enum { WEFT_RUN_SIZES = 5 };
typedef struct weft_run_kernels {
    int width; /* elements of a vector */
    /* of 1, 2, 4, 6 rows by 1 to 4 vectors, and 8 by 3 at most. Of the kinds that read columns of a, columns are whole vectors */
    weft_run_function whole[WEFT_RUN_KINDS][WEFT_RUN_SIZES][WEFT_RUN_VECTORS];
    /* those of one vector that is not whole: nothing behind it is read */
    weft_run_function part[WEFT_RUN_KINDS][WEFT_RUN_SIZES];
    /* Groups: of 1, 2, 4, 6 rows, a run a tap; and to the filter, of 2, 4 or 8 channels, which are c's rows, by one row of a.
     * By 1 or 2 vectors, columns are whole ones. */
    weft_run_function groups[WEFT_RUN_SIZES][2], to_groups[3][2];
} weft_run_kernels;

/* NULL: there are none for this processor and dtype. */
const weft_run_kernels *weft_run_kernels_of(weft_dtype dtype);

#endif
