/* states.h: numbers of every combine and dtype, another one on each rank. */
#ifndef TEST_STATES_H
#define TEST_STATES_H

#include <math.h>
#include <string.h>

#include "engine.h"

/* Number c of a state of rank r, made of x. */
static inline double number_of(weft_combine combine, int r, double x, int c)
{
    if (combine == WEFT_LSE && c == 1) return x * x + 0.1;
    if (combine == WEFT_ARGMAX) return c == 1 ? 10 * r + 1 : floor(3 * x); /* ties */
    if (combine == WEFT_MOMENTS && c == 0) return r % 3; /* some ranks saw nothing */
    if (combine == WEFT_MOMENTS && c == 2) return x * x;
    return x;
}

static inline void fill_states(weft_combine combine, weft_dtype dtype, int r, void *data,
                               int64_t count)
{
    enum { PERIOD = 1013 };
    const int width = weft_combine_width(combine);
    const int64_t again = PERIOD * width, n = count < again ? count : again;
    double waves[PERIOD]; /* not exact in binary, so that another order of addition shows */
    for (int s = 0; s < PERIOD && s < count; s++)
        waves[s] = sin(1.0 + 3.7 * r + 0.61 * s);
    for (int64_t i = 0; i < n; i++) {
        const int c = (int)(i % width);
        const double x = number_of(combine, r, waves[i / width], c);
        const int32_t index = (int32_t)x;
        const double most = dtype == WEFT_U8 ? 255 : 1e9; /* an integer of every size */
        weft_dtype_put(dtype, data, i, weft_dtype_is_float(dtype) || c == 1 ? x : x * most);
        if (dtype == WEFT_F32 && combine == WEFT_ARGMAX && c == 1)
            memcpy((float *)data + i, &index, sizeof index);
    }
    const int64_t bytes = (int64_t)weft_dtype_bytes(dtype);
    for (int64_t i = again; i < count; i += again)
        memcpy((char *)data + i * bytes, data,
               (size_t)((count - i < again ? count - i : again) * bytes));
}

#endif
