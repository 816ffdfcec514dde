/* element.h: write an element-by-element op's mathematics once, get its block functions.
 *
 *     WEFT_BLOCK_1(relu_f32, float, float, x > 0 ? x : 0)
 *     static const weft_element element = {.block[WEFT_F32][WEFT_F32] = relu_f32, ...};
 *
 * The expression sees x, y (operands), n0, n1 (the op's numbers) and env. The loop is compiled for several
 * instruction sets; the loader picks one. The result may overwrite an operand: each element is read before it
 * is written.
 */
#ifndef WEFT_ELEMENT_H
#define WEFT_ELEMENT_H

#include "cpu/math.h"
#include "op.h"

#define WEFT_BLOCK_1(name, T, R, expression)                                                       \
    WEFT_CLONES static void name(int64_t n, void *out, const void *const *in,                      \
                                 const weft_block_env *env)                                        \
    {                                                                                              \
        R *out_ = out;                                                                             \
        const T *x_ = in[0];                                                                       \
        const T n0 = (T)env->number[0], n1 = (T)env->number[1];                                    \
        (void)n0, (void)n1;                                                                        \
        WEFT_IVDEP                                                                                 \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const T x = x_[i];                                                                     \
            out_[i] = (R)(expression);                                                             \
        }                                                                                          \
    }

#define WEFT_BLOCK_2(name, T, R, expression)                                                       \
    WEFT_CLONES static void name(int64_t n, void *out, const void *const *in,                      \
                                 const weft_block_env *env)                                        \
    {                                                                                              \
        R *out_ = out;                                                                             \
        const T *x_ = in[0], *y_ = in[1];                                                          \
        const T n0 = (T)env->number[0], n1 = (T)env->number[1];                                    \
        (void)n0, (void)n1;                                                                        \
        WEFT_IVDEP                                                                                 \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const T x = x_[i], y = y_[i];                                                          \
            out_[i] = (R)(expression);                                                             \
        }                                                                                          \
    }

#endif
