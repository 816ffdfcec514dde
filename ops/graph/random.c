/* random.c: random numbers of a run of elements, so many at a time that the arithmetic vectorises.
 *
 * random_math.h defines one of them. All arithmetic is exactly rounded, one operation at a time, so every instruction
 * set gives the same bits.
 */
#include "random.h"

enum { most_blocks = WEFT_BLOCK / 4 + 1 }; /* a run may begin and end inside a block */

/* words[4 b + k]: word k of block first + b. The same rounds as weft_philox, block by block in
 * lockstep. */
WEFT_TARGET_CLONES static void fill_blocks(weft_philox_key key, uint64_t first, int n_blocks,
                                           uint32_t *words)
{
    WEFT_IVDEP
    for (int b = 0; b < n_blocks; b++) {
        uint32_t block[4];
        weft_philox(key, first + (uint64_t)b, block);
        for (int k = 0; k < 4; k++)
            words[4 * b + k] = block[k];
    }
}

static int blocks_of(int64_t first, int64_t n)
{
    return (int)((first % 4 + n + 3) / 4);
}

void weft_random_fill(weft_philox_key key, int64_t n, const weft_block_env *env, uint32_t *words)
{
    uint32_t blocks[4 * most_blocks];
    if (env->stride != 1) {
        for (int64_t i = 0; i < n; i++) {
            const int64_t at = env->index + i * env->stride;
            weft_philox(key, (uint64_t)at / 4, blocks);
            words[i] = blocks[at % 4];
        }
        return;
    }
    const int64_t before = env->index % 4; /* words of the first block that belong to nobody here */
    fill_blocks(key, (uint64_t)env->index / 4, blocks_of(env->index, n), blocks);
    memcpy(words, blocks + before, (size_t)n * sizeof *words);
}

/* ---- normal numbers -------------------------------------------------------------------------- */

/* Pair k: the words that say its radius and its angle; the normal numbers of its even and its odd element. */
WEFT_TARGET_CLONES static void box_muller(int n, const uint32_t *radius, const uint32_t *angle,
                                          double *even, double *odd)
{
    WEFT_IVDEP
    for (int k = 0; k < n; k++)
        weft_random_pair(radius[k], angle[k], &even[k], &odd[k]);
}

/* The pair of each element by itself. */
static void gauss_apart(weft_philox_key key, int64_t n, const weft_block_env *env, double *numbers)
{
    uint32_t radius[WEFT_BLOCK] = {0}, angle[WEFT_BLOCK] = {0}, block[4];
    double even[WEFT_BLOCK], odd[WEFT_BLOCK];
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = env->index + i * env->stride;
        weft_philox(key, (uint64_t)at / 4, block);
        radius[i] = block[at % 4 / 2 * 2];
        angle[i] = block[at % 4 / 2 * 2 + 1];
    }
    box_muller((int)n, radius, angle, even, odd);
    for (int64_t i = 0; i < n; i++)
        numbers[i] = (env->index + i * env->stride) % 2 == 0 ? even[i] : odd[i];
}

void weft_random_gauss(weft_philox_key key, int64_t n, const weft_block_env *env, double *numbers)
{
    enum { most_pairs = 2 * most_blocks };
    uint32_t words[4 * most_blocks], radius[most_pairs], angle[most_pairs];
    double even[most_pairs], odd[most_pairs], both[2 * most_pairs];
    if (env->stride != 1) {
        gauss_apart(key, n, env, numbers);
        return;
    }
    const int n_pairs = 2 * blocks_of(env->index, n);
    if (n_pairs <= 0) return;
    fill_blocks(key, (uint64_t)env->index / 4, n_pairs / 2, words);
    for (int k = 0; k < n_pairs; k++) {
        radius[k] = words[2 * k];
        angle[k] = words[2 * k + 1];
    }
    box_muller(n_pairs, radius, angle, even, odd);
    for (int k = 0; k < n_pairs; k++) {
        both[2 * k] = even[k];
        both[2 * k + 1] = odd[k];
    }
    memcpy(numbers, both + env->index % 4, (size_t)n * sizeof *numbers);
}
