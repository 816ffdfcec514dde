/* pool_rows.h: rows of max pooling along a dim without a window, as the channels, in vectors. */
#ifndef WEFT_POOL_ROWS_H
#define WEFT_POOL_ROWS_H

#include "cpu/kernels.h"

enum { WEFT_POOL_TAPS = 256 };

/* What of the other side goes with a row, by rising number of the tap. */
typedef struct weft_pool_taps {
    int n;
    int64_t at[WEFT_POOL_TAPS]; /* elements to where that row begins */
    int32_t tap[WEFT_POOL_TAPS];
} weft_pool_taps;

typedef struct weft_pool_rows {
    /* y[i] the largest of x[at + i], which[i] its tap; of none: the least number and -1 */
    void (*largest)(const weft_pool_taps *taps, int64_t n, const void *x, void *y, int32_t *which);
    /* x[i] the sum of those y[at + i] whose tap which[at + i] is. streams: x goes past the caches, and is aligned to 64 */
    void (*put)(const weft_pool_taps *taps, int64_t n, const void *y, const int32_t *which,
                bool streams, void *x);
} weft_pool_rows;

/* Of a dtype that is computed with. */
const weft_pool_rows *weft_pool_rows_of(weft_dtype dtype);

#endif
