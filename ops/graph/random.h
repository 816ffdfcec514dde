/* random.h: the two random numbers everything else is made of, as functions of (key, element index)
 * alone.
 *
 * Initial values, weft_random_* and dropout use these, so one element can be computed anywhere, by
 * itself.
 */
#ifndef WEFT_RANDOM_H
#define WEFT_RANDOM_H

#include <math.h>

#include "weft/philox.h"

/* Uniform in [0, 1): word i % 4 of block i / 4. */
static inline double weft_random_unit(weft_philox_key key, int64_t i)
{
    uint32_t words[4];
    weft_philox(key, (uint64_t)i / 4, words);
    return weft_philox_unit(words[i % 4]);
}

/* Box and Muller 1958: two words make two independent normal numbers; element i is the cosine
 * (even) or the sine (odd) of its pair. */
static inline double weft_random_pair(const uint32_t words[4], int64_t i)
{
    const uint32_t *pair = words + (i % 4) / 2 * 2;
    const double radius = sqrt(-2.0 * log(1.0 - weft_philox_unit(pair[0])));
    const double angle = 6.283185307179586 * weft_philox_unit(pair[1]);
    return radius * (i % 2 == 0 ? cos(angle) : sin(angle));
}

/* Normal with mean 0 and deviation 1. */
static inline double weft_random_gauss(weft_philox_key key, int64_t i)
{
    uint32_t words[4];
    weft_philox(key, (uint64_t)i / 4, words);
    return weft_random_pair(words, i);
}

/* The words of the block that holds element i, kept from the element before where that is the same
 * block. */
typedef struct weft_random_words {
    uint64_t block; /* UINT64_MAX: none yet */
    uint32_t words[4];
} weft_random_words;
static inline const uint32_t *weft_random_next(weft_philox_key key, int64_t i,
                                               weft_random_words *kept)
{
    if (kept->block != (uint64_t)i / 4) {
        kept->block = (uint64_t)i / 4;
        weft_philox(key, kept->block, kept->words);
    }
    return kept->words;
}

#endif
