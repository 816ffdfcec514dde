/* random.c: the random words of a run of elements, many Philox blocks at a time so that the rounds
 * vectorise. */
#include "random.h"

#include "weft/extend/math.h"

enum { most_blocks = WEFT_BLOCK / 4 + 1 }; /* a run may begin and end inside a block */

/* words[4 b + k]: word k of block first + b. The same rounds as weft_philox, block by block in
 * lockstep. */
WEFT_CLONES static void fill_blocks(weft_philox_key key, uint64_t first, int n_blocks,
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
    fill_blocks(key, (uint64_t)env->index / 4, (int)((before + n + 3) / 4), blocks);
    memcpy(words, blocks + before, (size_t)n * sizeof *words);
}
