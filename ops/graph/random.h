/* random.h: the random numbers everything else is made of, as functions of (key, element index)
 * alone, many at a time.
 *
 * Initial values, weft_random_* and dropout use these, so one element can be computed anywhere, by
 * itself. The bits are the same on every processor: nothing here calls libm, and no product and sum
 * become one operation (random.c and the ops that scale these numbers are compiled so).
 */
#ifndef WEFT_RANDOM_H
#define WEFT_RANDOM_H

#include "kernel.h"
#include "random_math.h"

/* weft_random_fill - the words of `n` <= WEFT_BLOCK elements: element i is number env->index + i *
 * env->stride, which uses word index % 4 of block index / 4. */
void weft_random_fill(weft_philox_key key, int64_t n, const weft_block_env *env, uint32_t *words);

/* weft_random_gauss - the same elements as normal numbers with mean 0 and deviation 1. */
void weft_random_gauss(weft_philox_key key, int64_t n, const weft_block_env *env, double *numbers);

#endif
