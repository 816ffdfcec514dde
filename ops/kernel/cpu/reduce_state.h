/* reduce_state.h: running states of the reductions, and how a run of elements enters them.
 *
 * A state is up to three doubles per result element, kept as state[component * WEFT_COLUMNS +
 * column]: many columns are reduced side by side, or one row into column 0.
 */
#ifndef WEFT_REDUCE_STATE_H
#define WEFT_REDUCE_STATE_H

#include "kernel.h"

enum { WEFT_COLUMNS = 256, WEFT_STATE = 3, WEFT_PARTS = 8 };

/* What enters a state at once: contiguous elements, in parts that enter one after the other, each of at most WEFT_BLOCK. What
 * can be done to all parts before the state is touched is, so that no part waits for the one before it. */
typedef struct weft_span {
    const void *x;   /* [n] */
    int64_t n, part; /* n <= WEFT_PARTS * part; the last part may be shorter */
    int64_t index;   /* element i is number index + i of the reduced range */
    /* what is read next lies so many elements behind x: memory is asked for it; 0: it is not */
    int64_t ahead;
} weft_span;

typedef struct weft_reducer {
    double identity[WEFT_STATE];
    void (*merge)(double *state, const double *other,
                  int64_t n_columns);                              /* other comes after state */
    void (*row[WEFT_DTYPES])(double *state, const weft_span *run); /* into column 0 */
    bool asks[WEFT_DTYPES];                                        /* does row heed `ahead`? */
    bool asks_late; /* once all of the run has been read */
    /* row that leaves something behind of each element, in left, which may be x, and the shift by which it did, one a part:
     * lse leaves exp(x - shift). factor: of the shift, and of both numbers of the finished state of all runs of the row, what
     * resume takes. resume: of what was left, y = exp((x - maximum) - log_sum); y may be left. NULL: there is no such thing */
    void (*leave[WEFT_DTYPES])(double *state, const weft_span *run, void *left, double *shift);
    double (*factor[WEFT_DTYPES])(double shift, const void *maximum, const void *log_sum);
    void (*resume[WEFT_DTYPES])(int64_t n, void *y, const void *left, double factor);
} weft_reducer;

extern const weft_reducer weft_reducers[WEFT_COMBINES];

/* reduce_columns.c: rows enter each of n columns, one after the other, `stride` elements apart; the first is number index of the
 * reduced range. NULL: not for this dtype. */
typedef void (*weft_column)(double *state, const void *x, int64_t stride, int64_t rows, int64_t n,
                            int64_t index);
extern const weft_column weft_columns[WEFT_COMBINES][WEFT_DTYPES];

/* In parts of how many elements a row of so many enters its state: of at most WEFT_BLOCK. A row's length alone says it, in
 * the kernel and in loops alike, so its sum has the same bits in both. */
int64_t weft_row_part(int64_t row);
/* How many of n reduced elements are a chunk, for `units` results, or runs of so many columns of them: few results of many
 * elements are cut, so that all lanes have work; in whole parts, by shape alone. At most WEFT_MOST_CHUNKS are cut of all. In the
 * kernel and in loops alike. */
enum { WEFT_MOST_CHUNKS = 120 };
int64_t weft_reduce_chunk(int64_t n, int64_t units, int64_t columns, int64_t part);
/* The identity, in n columns. */
void weft_state_clear(weft_combine combine, double *state, int64_t n);
/* What n columns of a state are as numbers of a dtype: weft_combine_width of them at to[i * stride]. */
void weft_state_store(weft_combine combine, weft_dtype dtype, const double *state, int64_t n,
                      void *to, int64_t stride);

#endif
