/* random_element.h: element ops that are random numbers: of the numbers n0 and n1 of their attributes, and of one that is drawn
 * for each element, `drawn`.
 */
#ifndef WEFT_RANDOM_ELEMENT_H
#define WEFT_RANDOM_ELEMENT_H

#include "element.h"
#include "random.h"

#define WEFT_RANDOM_BLOCK(name, T, DRAWN, draw, value)                                             \
    static void name(int64_t n, void *out, const void *const *in, const weft_block_env *env)       \
    {                                                                                              \
        T *out_ = out;                                                                             \
        (void)in;                                                                                  \
        const double n0 = env->number[0], n1 = env->number[1];                                     \
        DRAWN all[WEFT_BLOCK];                                                                     \
        draw(weft_random_key(env), n, env, all);                                                   \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const DRAWN drawn = all[i];                                                            \
            out_[i] = (T)(value);                                                                  \
        }                                                                                          \
    }
/* `element`: `draw` fills a block with what is drawn, of which `value` makes an element; `alone` is the text of one element. */
#define WEFT_RANDOM_ELEMENT(DRAWN, draw, value, alone)                                             \
    WEFT_RANDOM_BLOCK(block_f32, float, DRAWN, draw, value)                                        \
    WEFT_RANDOM_BLOCK(block_f64, double, DRAWN, draw, value)                                       \
    static const weft_element element = {.size = sizeof(weft_element),                             \
                                         .index = WEFT_INDEX_LINEAR,                               \
                                         .block[WEFT_F32][WEFT_F32] = block_f32,                   \
                                         .block[WEFT_F64][WEFT_F64] = block_f64,                   \
                                         .text[WEFT_F32][WEFT_F32] = alone,                        \
                                         .text[WEFT_F64][WEFT_F64] = alone};

#endif
