/* ends.h (private): many pieces as one, by the places where each ends. */
#ifndef WEFT_IO_ENDS_H
#define WEFT_IO_ENDS_H

#include <stdint.h>

/* weft_ends_find - the piece that place `at` is in, and where that piece begins. ends [n], none below the one before; at < ends[n - 1]. */
static inline int64_t weft_ends_find(const int64_t *ends, int64_t n, int64_t at, int64_t *begin)
{
    int64_t low = 0, high = n - 1;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (at < ends[middle])
            high = middle;
        else
            low = middle + 1;
    }
    *begin = low > 0 ? ends[low - 1] : 0;
    return low;
}

#endif
