/* element.h: write an element-by-element op's mathematics once, get its block functions.
 *
 *     WEFT_ELEMENT_1(x < 0 ? 0 : x)                   f32 and f64; the table is called `element`
 *     WEFT_BLOCK_1(relu_f32, float, float, x < 0 ? 0 : x)                  or piece by piece
 *
 * The expression sees x, y (operands), n0, n1 (the op's numbers) and env; generators also `index`,
 * the global index of the element. The loop is compiled for several instruction sets; the loader
 * picks one. The result may overwrite an operand: each element is read before it is written.
 *
 * Tables keep the expression's text beside the block: devices compile loops of their own from it (C that is C++ too, of what
 * math.h, half.h and philox.h have). Macros in it are kept by their names, so that they mean there what they mean there.
 */
#ifndef WEFT_EXTEND_ELEMENT_H
#define WEFT_EXTEND_ELEMENT_H

#include "weft/extend/math.h"
#include "weft/extend/op.h"
#include "weft/extend/relay.h"

#define WEFT_BLOCK_1(name, T, R, expression)                                                       \
    WEFT_TARGET_CLONES static void name(int64_t n, void *out, const void *const *in,               \
                                        const weft_block_env *env)                                 \
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
    WEFT_TARGET_CLONES static void name(int64_t n, void *out, const void *const *in,               \
                                        const weft_block_env *env)                                 \
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

/* No operand: the expression sees `index`. */
#define WEFT_BLOCK_0(name, R, expression)                                                          \
    WEFT_TARGET_CLONES static void name(int64_t n, void *out, const void *const *in,               \
                                        const weft_block_env *env)                                 \
    {                                                                                              \
        R *out_ = out;                                                                             \
        const double n0 = env->number[0], n1 = env->number[1];                                     \
        (void)n0, (void)n1, (void)in;                                                              \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const int64_t index = env->index + i * env->stride;                                    \
            (void)index;                                                                           \
            out_[i] = (R)(expression);                                                             \
        }                                                                                          \
    }

/* A choice: condition c (i32), then x and y. */
#define WEFT_BLOCK_3(name, T, R, expression)                                                       \
    WEFT_TARGET_CLONES static void name(int64_t n, void *out, const void *const *in,               \
                                        const weft_block_env *env)                                 \
    {                                                                                              \
        R *out_ = out;                                                                             \
        const int32_t *c_ = in[0];                                                                 \
        const T *x_ = in[1], *y_ = in[2];                                                          \
        (void)env;                                                                                 \
        WEFT_IVDEP                                                                                 \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const int32_t c = c_[i];                                                               \
            const T x = x_[i], y = y_[i];                                                          \
            out_[i] = (R)(expression);                                                             \
        }                                                                                          \
    }

/* Whole tables. One operand: of float dtypes; 1X where they need different functions; 1W: also i32 and i64. Two: also
 * i32, whose arithmetic wraps around (write it unsigned); 2W: and i64. A table for f32 is one for bf16 and f16, and one for
 * i32 is one for u8: loops widen what they read and narrow what they store. */
#define WEFT_ELEMENT_1X(expression_f32, expression_f64)                                            \
    WEFT_ELEMENT_1_(expression_f32, #expression_f32, expression_f64, #expression_f64)
#define WEFT_ELEMENT_1(expression) WEFT_ELEMENT_1_(expression, #expression, expression, #expression)
#define WEFT_ELEMENT_1_(expression_f32, text_f32, expression_f64, text_f64)                        \
    WEFT_BLOCK_1(block_f32, float, float, expression_f32)                                          \
    WEFT_BLOCK_1(block_f64, double, double, expression_f64)                                        \
    WEFT_RELAY_1(expression_f32)                                                                   \
    static const weft_element element = {.size = sizeof(weft_element),                             \
                                         .block[WEFT_F32][WEFT_F32] = block_f32,                   \
                                         .block[WEFT_F64][WEFT_F64] = block_f64,                   \
                                         .relay = &relay,                                          \
                                         .text[WEFT_F32][WEFT_F32] = text_f32,                     \
                                         .text[WEFT_F64][WEFT_F64] = text_f64};

/* Of blocks block_f32, block_f64, block_i32 and block_i64 and legs `relay`. */
#define WEFT_ELEMENT_W_(text_float, text_i32, text_i64)                                            \
    static const weft_element element = {.size = sizeof(weft_element),                             \
                                         .block[WEFT_F32][WEFT_F32] = block_f32,                   \
                                         .block[WEFT_F64][WEFT_F64] = block_f64,                   \
                                         .block[WEFT_I32][WEFT_I32] = block_i32,                   \
                                         .block[WEFT_I64][WEFT_I64] = block_i64,                   \
                                         .relay = &relay,                                          \
                                         .text[WEFT_F32][WEFT_F32] = text_float,                   \
                                         .text[WEFT_F64][WEFT_F64] = text_float,                   \
                                         .text[WEFT_I32][WEFT_I32] = text_i32,                     \
                                         .text[WEFT_I64][WEFT_I64] = text_i64};

#define WEFT_ELEMENT_1W(expression, expression_i32, expression_i64)                                \
    WEFT_BLOCK_1(block_f32, float, float, expression)                                              \
    WEFT_BLOCK_1(block_f64, double, double, expression)                                            \
    WEFT_BLOCK_1(block_i32, int32_t, int32_t, expression_i32)                                      \
    WEFT_BLOCK_1(block_i64, int64_t, int64_t, expression_i64)                                      \
    WEFT_RELAY_1(expression)                                                                       \
    WEFT_ELEMENT_W_(#expression, #expression_i32, #expression_i64)

#define WEFT_ELEMENT_2(expression, expression_i32)                                                 \
    WEFT_BLOCK_2(block_f32, float, float, expression)                                              \
    WEFT_BLOCK_2(block_f64, double, double, expression)                                            \
    WEFT_BLOCK_2(block_i32, int32_t, int32_t, expression_i32)                                      \
    WEFT_RELAY_2(expression)                                                                       \
    static const weft_element element = {.size = sizeof(weft_element),                             \
                                         .block[WEFT_F32][WEFT_F32] = block_f32,                   \
                                         .block[WEFT_F64][WEFT_F64] = block_f64,                   \
                                         .block[WEFT_I32][WEFT_I32] = block_i32,                   \
                                         .relay = &relay,                                          \
                                         .text[WEFT_F32][WEFT_F32] = #expression,                  \
                                         .text[WEFT_F64][WEFT_F64] = #expression,                  \
                                         .text[WEFT_I32][WEFT_I32] = #expression_i32};

#define WEFT_ELEMENT_2W(expression, expression_i32, expression_i64)                                \
    WEFT_BLOCK_2(block_f32, float, float, expression)                                              \
    WEFT_BLOCK_2(block_f64, double, double, expression)                                            \
    WEFT_BLOCK_2(block_i32, int32_t, int32_t, expression_i32)                                      \
    WEFT_BLOCK_2(block_i64, int64_t, int64_t, expression_i64)                                      \
    WEFT_RELAY_2(expression)                                                                       \
    WEFT_ELEMENT_W_(#expression, #expression_i32, #expression_i64)

#define WEFT_ELEMENT_COMPARE(expression)                                                           \
    WEFT_BLOCK_2(block_f32, float, int32_t, expression)                                            \
    WEFT_BLOCK_2(block_f64, double, int32_t, expression)                                           \
    WEFT_BLOCK_2(block_i64, int64_t, int32_t, expression)                                          \
    WEFT_BLOCK_2(block_i32, int32_t, int32_t, expression)                                          \
    static const weft_element element = {.size = sizeof(weft_element),                             \
                                         .block[WEFT_F32][WEFT_I32] = block_f32,                   \
                                         .block[WEFT_F64][WEFT_I32] = block_f64,                   \
                                         .block[WEFT_I64][WEFT_I32] = block_i64,                   \
                                         .block[WEFT_I32][WEFT_I32] = block_i32,                   \
                                         .text[WEFT_F32][WEFT_I32] = #expression,                  \
                                         .text[WEFT_F64][WEFT_I32] = #expression,                  \
                                         .text[WEFT_I64][WEFT_I32] = #expression,                  \
                                         .text[WEFT_I32][WEFT_I32] = #expression};

/* Of blocks block_f32, block_f64, block_i32 and block_i64, each from a dtype to itself, of one text. */
#define WEFT_ELEMENT_OF_ALL(index_, text_)                                                         \
    static const weft_element element = {.size = sizeof(weft_element),                             \
                                         .index = index_,                                          \
                                         .block[WEFT_F32][WEFT_F32] = block_f32,                   \
                                         .block[WEFT_F64][WEFT_F64] = block_f64,                   \
                                         .block[WEFT_I64][WEFT_I64] = block_i64,                   \
                                         .block[WEFT_I32][WEFT_I32] = block_i32,                   \
                                         .text[WEFT_F32][WEFT_F32] = text_,                        \
                                         .text[WEFT_F64][WEFT_F64] = text_,                        \
                                         .text[WEFT_I64][WEFT_I64] = text_,                        \
                                         .text[WEFT_I32][WEFT_I32] = text_};

/* Without an operand: `index` is a weft_index. */
#define WEFT_ELEMENT_0(index, expression)                                                          \
    WEFT_BLOCK_0(block_f32, float, expression)                                                     \
    WEFT_BLOCK_0(block_f64, double, expression)                                                    \
    WEFT_BLOCK_0(block_i32, int32_t, expression)                                                   \
    WEFT_BLOCK_0(block_i64, int64_t, expression)                                                   \
    WEFT_ELEMENT_OF_ALL(index, #expression)

/* A condition c (i32), x and y. */
#define WEFT_ELEMENT_3(expression)                                                                 \
    WEFT_BLOCK_3(block_f32, float, float, expression)                                              \
    WEFT_BLOCK_3(block_f64, double, double, expression)                                            \
    WEFT_BLOCK_3(block_i32, int32_t, int32_t, expression)                                          \
    WEFT_BLOCK_3(block_i64, int64_t, int64_t, expression)                                          \
    WEFT_ELEMENT_OF_ALL(WEFT_INDEX_NONE, #expression)

/* Identity for all dtypes; out may be the operand itself. */
#define WEFT_ELEMENT_COPY                                                                          \
    WEFT_BLOCK_1(block_f32, float, float, x)                                                       \
    WEFT_BLOCK_1(block_f64, double, double, x)                                                     \
    WEFT_BLOCK_1(block_i32, int32_t, int32_t, x)                                                   \
    WEFT_BLOCK_1(block_i64, int64_t, int64_t, x)                                                   \
    WEFT_ELEMENT_OF_ALL(WEFT_INDEX_NONE, "x")

#endif
