/* loop_source.h: what generated loops are written in (loop_text.c): the words of their argument, and all that expressions call.
 *
 * A loop's argument is an array of words: pointers, sizes, strides, numbers. The place of each value is written into
 * the loop.
 */
#ifndef WEFT_CUDA_LOOP_SOURCE_H
#define WEFT_CUDA_LOOP_SOURCE_H

#include "mesh/cuda/kernel_source.h"

#include "ops/graph/random_math.h"
#include "rows.h"
#include "weft/extend/half.h"
#include "weft/extend/math.h"

#define WORD(i)       (work.word[i])
#define POINTER(T, i) ((T *)GLOBAL((void *)work.word[i]))
#define NUMBER(i)     double_of_word(work.word[i])

DEVICE double double_of_word(int64_t word)
{
    double number;
    memcpy(&number, &word, sizeof number);
    return number;
}

/* The number of the run: as it is said, or what is not said of it is in a cell, as it is done again and again. */
DEVICE uint64_t run_of(int64_t said, int64_t cell)
{
    return (uint64_t)said | (cell != 0 ? *(const uint32_t *)GLOBAL((void *)cell) : 0);
}

DEVICE weft_block_env env_of(uint64_t run, uint64_t seed, uint32_t random, double n0, double n1)
{
    const weft_block_env env = {{n0, n1, 0, 0}, seed, random, run, 0, 0};
    return env;
}

#endif
