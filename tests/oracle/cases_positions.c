/* cases_positions.c: where rows of q and k stand. */
#include "cases.h"

static weft_value rope_rows(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(BATCH, SEQ, HEADS, FEATURE));
    return weft_rope(x, weft_iota(b->graph, WEFT_I32, SEQ), FEATURE, 0);
}
static weft_value rope_places(build_t *b, weft_dtype t) /* some of them below 0 */
{
    weft_value x = in(b, t, WEFT_DIMS(FEATURE, SEQ, BATCH));
    return weft_rope(x, weft_oracle_input(b, WEFT_I32, WEFT_DIMS(BATCH, SEQ), -3, 9), FEATURE, 7.5);
}
static weft_value rope_one(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(BATCH, SIX));
    return weft_rope(x, weft_oracle_input(b, WEFT_I32, WEFT_SCALAR, 4, 5), SIX, 0);
}
static weft_value rope_slower(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(SEQ, SIX));
    return weft_rope_with(x, weft_iota(b->graph, WEFT_I32, SEQ), SIX,
                          &(weft_rope_options){.base = 50, .factor = 4});
}
/* In 20 rows pairs turn 3.2, 0.86 and 0.23 times: one of each kind. */
static weft_value rope_far(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(SEQ, SIX));
    return weft_rope_with(
        x, weft_iota(b->graph, WEFT_I32, SEQ), SIX,
        &(weft_rope_options){.base = 50, .factor = 4, .low = 0.5, .high = 2, .rows = 20});
}

static weft_value alibi_of_two(build_t *b, weft_dtype t)
{
    return weft_alibi(b->graph, t, D, SEQ, KEY);
}
static weft_value alibi_of_six(build_t *b, weft_dtype t)
{
    return weft_alibi(b->graph, t, SIX, SEQ, MEMORY);
}

CASES(rope,
      CASE(rope_rows, OP_FLOAT, 2, .with = {.feature = "feature", .other = "seq", .a = 10000}),
      CASE(rope_places, OP_FLOAT, 1, .with = {.feature = "feature", .a = 7.5}),
      CASE(rope_one, OP_FLOAT, 1, .with = {.feature = "six", .a = 10000}),
      CASE(rope_slower, OP_FLOAT, 1, .with = {.feature = "six", .other = "seq", .a = 50, .b = 4}),
      CASE(rope_far, OP_FLOAT, 1,
           .with = {.feature = "six", .other = "seq", .a = 50, .b = 4, .begin = 20}))
CASES(alibi,
      CASE(alibi_of_two, OP_FLOAT, 0, .with = {.dim = "seq", .other = "key", .feature = "d"}),
      CASE(alibi_of_six, OP_FLOAT, 0, .with = {.dim = "seq", .other = "memory", .feature = "six"}))
