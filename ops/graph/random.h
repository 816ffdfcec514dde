/* random.h: the two random numbers everything else is made of, as functions of (key, element index)
 * alone.
 *
 * Initial values, weft_random_* and dropout use these, so one element can be computed anywhere, by
 * itself.
 */
#ifndef WEFT_RANDOM_H
#define WEFT_RANDOM_H

#include <math.h>

#include "kernel.h"
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

/* weft_random_fill - the words of `n` <= WEFT_BLOCK elements: element i is number env->index + i *
 * env->stride. */
void weft_random_fill(weft_philox_key key, int64_t n, const weft_block_env *env, uint32_t *words);

static inline weft_philox_key weft_random_key(const weft_block_env *env)
{
    return (weft_philox_key){env->seed, env->random, (uint32_t)env->step};
}

#endif
