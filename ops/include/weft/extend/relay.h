/* relay.h: element ops that follow each other hand their elements on in registers.
 *
 * A block is gone through in *tiles* of eight vectors. A *leg* does one thing to a tile - loads it, does one op, stores
 * it - and ends by calling the next leg with the tile in its arguments: vector registers, and a call at the very end is a
 * jump. So ops of any number, in any order, are one pass over a block, and each is compiled by itself from its own
 * expression: the bits are those of its block function.
 *
 * How vectors are passed depends on their width, so there are legs for the width of each instruction set of WEFT_TARGET_CLONES;
 * where there are no clones, of 16 bytes alone. Only f32: the dtype that loops have most of.
 */
#ifndef WEFT_EXTEND_RELAY_H
#define WEFT_EXTEND_RELAY_H

#include "weft/extend/target_clones.h"
#include "weft/extend/kernel.h"

/* data: what the leg reads or writes beside the tile: block, element `at` is data[at]; or one number. */
typedef struct weft_leg {
    weft_leg_run run;
    void *data;
    const weft_block_env *env;
} weft_leg;

enum { WEFT_TILE_VECTORS = 8 };

#define WEFT_VECTOR(bytes) float __attribute__((vector_size(bytes)))
#define WEFT_TILE(bytes)                                                                           \
    WEFT_VECTOR(bytes)                                                                             \
    v0, WEFT_VECTOR(bytes) v1, WEFT_VECTOR(bytes) v2, WEFT_VECTOR(bytes) v3,                       \
        WEFT_VECTOR(bytes) v4, WEFT_VECTOR(bytes) v5, WEFT_VECTOR(bytes) v6, WEFT_VECTOR(bytes) v7
#define WEFT_LEG_TYPE(bytes) void (*)(const weft_leg *leg, int64_t at, WEFT_TILE(bytes))
/* How a leg ends, with the vectors of a tile. */
#define WEFT_GO_ON(bytes, ...) ((WEFT_LEG_TYPE(bytes))leg[1].run)(leg + 1, at, __VA_ARGS__)

/* Where an operand of the expression comes from. */
#define WEFT_FROM_TILE   tile.each[k]
#define WEFT_FROM_BLOCK  data[k]
#define WEFT_FROM_NUMBER number

#define WEFT_LEG(name, bytes, isa, number_, x_, y_, expression)                                    \
    isa static void name##_##bytes(const weft_leg *leg, int64_t at, WEFT_TILE(bytes))              \
    {                                                                                              \
        enum { WIDTH = bytes / sizeof(float) };                                                    \
        union {                                                                                    \
            WEFT_VECTOR(bytes) v[WEFT_TILE_VECTORS];                                               \
            float each[WEFT_TILE_VECTORS * WIDTH];                                                 \
        } tile = {{v0, v1, v2, v3, v4, v5, v6, v7}};                                               \
        const weft_block_env *env = leg->env;                                                      \
        const float n0 = (float)env->number[0], n1 = (float)env->number[1];                        \
        const float number = number_, *data = (const float *)leg->data + at;                       \
        (void)n0, (void)n1, (void)number, (void)data;                                              \
        WEFT_IVDEP                                                                                 \
        for (int k = 0; k < WEFT_TILE_VECTORS * (int)WIDTH; k++) {                                 \
            const float x = x_, y = y_;                                                            \
            (void)x, (void)y;                                                                      \
            tile.each[k] = (float)(expression);                                                    \
        }                                                                                          \
        WEFT_GO_ON(bytes, tile.v[0], tile.v[1], tile.v[2], tile.v[3], tile.v[4], tile.v[5],        \
                   tile.v[6], tile.v[7]);                                                          \
    }

/* One leg for each width, and where they stand. */
#ifdef WEFT_HAS_CLONES
#define WEFT_LEGS(name, ...)                                                                       \
    WEFT_LEG(name, 16, , __VA_ARGS__)                                                              \
    WEFT_LEG(name, 32, __attribute__((target("arch=x86-64-v3"))), __VA_ARGS__)                     \
    WEFT_LEG(name, 64, __attribute__((target("arch=x86-64-v4"))), __VA_ARGS__)
#define WEFT_LEG_LIST(name)                                                                        \
    {                                                                                              \
        (void (*)(void)) name##_16, (weft_leg_run)name##_32, (weft_leg_run)name##_64               \
    }
#else
#define WEFT_LEGS(name, ...) WEFT_LEG(name, 16, , __VA_ARGS__)
#define WEFT_LEG_LIST(name)                                                                        \
    {                                                                                              \
        (void (*)(void)) name##_16                                                                 \
    }
#endif

#define WEFT_RELAY_1(expression)                                                                   \
    WEFT_LEGS(leg_alone, 0, WEFT_FROM_TILE, 0, expression)                                         \
    static const weft_relay relay = {{[WEFT_LEG_ALONE] = WEFT_LEG_LIST(leg_alone)}};

#define WEFT_RELAY_2(expression)                                                                   \
    WEFT_LEGS(leg_and_block, 0, WEFT_FROM_TILE, WEFT_FROM_BLOCK, expression)                       \
    WEFT_LEGS(leg_block_and, 0, WEFT_FROM_BLOCK, WEFT_FROM_TILE, expression)                       \
    WEFT_LEGS(leg_and_number, *(const float *)leg->data, WEFT_FROM_TILE, WEFT_FROM_NUMBER,         \
              expression)                                                                          \
    WEFT_LEGS(leg_number_and, *(const float *)leg->data, WEFT_FROM_NUMBER, WEFT_FROM_TILE,         \
              expression)                                                                          \
    static const weft_relay relay = {{[WEFT_LEG_AND_BLOCK] = WEFT_LEG_LIST(leg_and_block),         \
                                      [WEFT_LEG_BLOCK_AND] = WEFT_LEG_LIST(leg_block_and),         \
                                      [WEFT_LEG_AND_NUMBER] = WEFT_LEG_LIST(leg_and_number),       \
                                      [WEFT_LEG_NUMBER_AND] = WEFT_LEG_LIST(leg_number_and)}};

#endif
