/* reduce_cut.c: in what parts reduced elements enter a state, and in what chunks lanes share them out; and what becomes of
 * states: cleared, and stored as numbers. See reduce_state.h.
 */
#include "cpu/reduce_state.h"

#include <math.h>
#include <string.h>

/* ---- parts and chunks ------------------------------------------------------------------------ */

/* Equal parts, in whole cache lines. */
int64_t weft_row_part(int64_t row)
{
    const int64_t n = (row + WEFT_BLOCK - 1) / WEFT_BLOCK;
    if (n < 2) return row;
    return ((row + n - 1) / n + 15) / 16 * 16;
}

int64_t weft_reduce_chunk(int64_t n, int64_t units, int64_t columns, int64_t part)
{
    enum { LEAST_CHUNK = 16384, MOST_OF_ONE = 64, MANY_UNITS = 16 };
    if (units < 1 || units >= MANY_UNITS) return n;
    int64_t chunks = n * columns / LEAST_CHUNK;
    if (chunks > WEFT_MOST_CHUNKS / units) chunks = WEFT_MOST_CHUNKS / units;
    if (chunks > MOST_OF_ONE) chunks = MOST_OF_ONE;
    if (chunks < 2) return n;
    return ((n + chunks - 1) / chunks + part - 1) / part * part;
}

/* ---- a state as numbers of a dtype ----------------------------------------------------------- */

void weft_state_clear(weft_combine combine, double *state, int64_t n)
{
    for (int c = 0; c < weft_combine_width(combine); c++)
        for (int64_t i = 0; i < n; i++)
            state[c * WEFT_COLUMNS + i] = weft_reducers[combine].identity[c];
}

static int32_t as_int(double x)
{
    if (x == -(double)INFINITY) return INT32_MIN;
    if (x == (double)INFINITY) return INT32_MAX;
    return (int32_t)(uint32_t)(int64_t)x; /* sums wrap */
}

static void store_number(weft_combine combine, weft_dtype dtype, char *to, int component, double x)
{
    if (dtype == WEFT_F64) {
        *(double *)to = x;
    } else if (dtype == WEFT_I32) {
        *(int32_t *)to = as_int(x);
    } else if (combine == WEFT_ARGMAX && component == 1) {
        const int32_t index = (int32_t)x;
        memcpy(to, &index, sizeof index);
    } else {
        *(float *)to = (float)x;
    }
}

void weft_state_store(weft_combine combine, weft_dtype dtype, const double *state, int64_t n,
                      void *to, int64_t stride)
{
    const int width = weft_combine_width(combine), bytes = (int)weft_dtype_bytes(dtype);
    for (int64_t i = 0; i < n; i++)
        for (int c = 0; c < width; c++)
            store_number(combine, dtype, (char *)to + (i * stride + c) * bytes, c,
                         state[c * WEFT_COLUMNS + i]);
}
