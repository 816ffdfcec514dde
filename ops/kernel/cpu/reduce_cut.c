/* reduce_cut.c: in what parts reduced elements enter a state, and in what chunks lanes share them out; and what becomes of
 * states: cleared, and stored as numbers. See reduce_state.h.
 */
#include "cpu/reduce_state.h"
#include "weft/extend/target_clones.h"

#include <math.h>

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
    for (int c = 0; c < weft_combine_width(combine); c++) {
        const double identity = weft_reducers[combine].identity[c];
        for (int64_t i = 0; i < n; i++)
            state[c * WEFT_COLUMNS + i] = identity;
    }
}

static int32_t as_int(double x)
{
    if (x == -(double)INFINITY) return INT32_MIN;
    if (x == (double)INFINITY) return INT32_MAX;
    return (int32_t)(uint32_t)(int64_t)x; /* sums wrap */
}

/* Of a component: one number after the other, `stride` numbers apart; side by side where it is 1. */
#define STORE(name, T, of)                                                                         \
    WEFT_TARGET_CLONES static void name(const double *restrict state, int64_t n, void *to,         \
                                        int64_t stride)                                            \
    {                                                                                              \
        T *restrict y = to;                                                                        \
        for (int64_t i = 0; i < n && stride == 1; i++)                                             \
            y[i] = of(state[i]);                                                                   \
        for (int64_t i = 0; i < n && stride != 1; i++)                                             \
            y[i * stride] = of(state[i]);                                                          \
    }
STORE(store_f32, float, (float))
STORE(store_f64, double, )
STORE(store_i32, int32_t, as_int)
/* An index among elements of f32 lies where a number would. */
STORE(store_index, int32_t, (int32_t))

typedef void (*storing)(const double *state, int64_t n, void *to, int64_t stride);
static const storing stores[WEFT_DTYPES] = {
    [WEFT_F32] = store_f32, [WEFT_F64] = store_f64, [WEFT_I32] = store_i32};

void weft_state_store(weft_combine combine, weft_dtype dtype, const double *state, int64_t n,
                      void *to, int64_t stride)
{
    const int64_t bytes = (int64_t)weft_dtype_bytes(dtype);
    for (int c = 0; c < weft_combine_width(combine); c++) {
        const bool is_index = combine == WEFT_ARGMAX && c == 1 && dtype == WEFT_F32;
        (is_index ? store_index : stores[dtype])(state + c * WEFT_COLUMNS, n,
                                                 (char *)to + c * bytes, stride);
    }
}
