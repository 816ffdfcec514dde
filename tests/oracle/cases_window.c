/* cases_window.c: ops that read of a dim what a window shows: elements at other coordinates. */
#include "cases.h"
#include <string.h>

#include "op/pool.h"

/* ---- one op ---------------------------------------------------------------------------------- */

static weft_value reindexed(build_t *b, weft_dtype t, weft_dim to, int64_t stride, int64_t offset,
                            int64_t over)
{
    weft_value x = in(b, t, WEFT_DIMS(A, B, D));
    return weft_reindex(x, B, to, stride, offset, over);
}
static weft_value reindex_behind(build_t *b, weft_dtype t) /* zeros on both sides */
{
    return reindexed(b, t, TEN, 1, -2, 1);
}
static weft_value reindex_steps(build_t *b, weft_dtype t)
{
    return reindexed(b, t, C, 3, 1, 1);
}
static weft_value reindex_between(build_t *b, weft_dtype t) /* two zeros between, and around */
{
    return reindexed(b, t, LATER, 1, -5, 3);
}
static weft_value reindex_back(build_t *b, weft_dtype t)
{
    return reindexed(b, t, OTHER, -1, 6, 1);
}
static weft_value reindex_drifts(build_t *b, weft_dtype t) /* of seven five, at slope 2/3 */
{
    return reindexed(b, t, TEN, 2, -1, 3);
}
static weft_value reindex_back_steps(build_t *b, weft_dtype t)
{
    return reindexed(b, t, TEN, -3, 18, 2);
}
static weft_value reindex_far(build_t *b,
                              weft_dtype t) /* what most ranks' windows have nothing of */
{
    return reindexed(b, t, (weft_dim){B.name, 9}, 1, 5, 1);
}
static weft_value reindex_outer(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(B, A));
    return weft_reindex(x, B, TEN, -2, 13, 1);
}

/* ---- compositions ---------------------------------------------------------------------------- */

static weft_value slice_step_x(build_t *b, weft_dtype t)
{
    return weft_slice_step(in(b, t, WEFT_DIMS(A, B)), B, 1, 2, C);
}
static weft_value slice_step_back(build_t *b, weft_dtype t)
{
    return weft_slice_step(in(b, t, WEFT_DIMS(B, D)), B, 6, -3, C);
}
static weft_value split_x(build_t *b, weft_dtype t)
{
    return weft_split(in(b, t, WEFT_DIMS(MERGED, C)), MERGED, 2, PART);
}
static weft_value unstack_x(build_t *b, weft_dtype t)
{
    return weft_unstack(in(b, t, WEFT_DIMS(A, B, D)), B, 3);
}
static weft_value stack_x(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A, D)), y = in(b, t, WEFT_DIMS(A, D)),
               z = in(b, t, WEFT_DIMS(D, A));
    return weft_stack(WEFT_VALUES(x, y, weft_transpose(z, WEFT_DIMS(A, D))), C);
}
static weft_value pad_zeros(build_t *b, weft_dtype t)
{
    return weft_pad(in(b, t, WEFT_DIMS(A, B)), B, 2, TEN, 0);
}
static weft_value pad_value(build_t *b, weft_dtype t)
{
    return weft_pad(in(b, t, WEFT_DIMS(B, A)), B, 1, TEN, 3);
}
static weft_value pad_reflect_x(build_t *b, weft_dtype t)
{
    return weft_pad_reflect(in(b, t, WEFT_DIMS(B, D)), B, 1, TEN);
}
static weft_value dilate_x(build_t *b, weft_dtype t)
{
    return weft_dilate(in(b, t, WEFT_DIMS(C, A)), C, 3, B);
}
static weft_value flip_x(build_t *b, weft_dtype t)
{
    return weft_flip(in(b, t, WEFT_DIMS(A, B)), B);
}
static weft_value roll_x(build_t *b, weft_dtype t)
{
    return weft_roll(in(b, t, WEFT_DIMS(A, B)), B, -9); /* as by 5 */
}
static weft_value shift_along_x(build_t *b, weft_dtype t)
{
    return weft_shift_along(in(b, t, WEFT_DIMS(B, A)), B, 3);
}
static weft_value shift_along_back(build_t *b, weft_dtype t)
{
    return weft_shift_along(in(b, t, WEFT_DIMS(A, B)), B, -1);
}

static weft_value shift_by_rows(build_t *b, weft_dtype t) /* each its own way, some out of sight */
{
    const weft_value x = in(b, t, WEFT_DIMS(A, B, D));
    return weft_shift_by(x, B, ids_of(b, WEFT_DIMS(D, A), B.size), false);
}
static weft_value shift_by_back(build_t *b, weft_dtype t)
{
    const weft_value x = in(b, t, WEFT_DIMS(B, A)), ids = ids_of(b, WEFT_DIMS(A), B.size);
    return weft_shift_by(x, B, weft_oracle_made(b, weft_neg(ids)), false);
}
static weft_value shift_by_all(build_t *b, weft_dtype t) /* all rows alike */
{
    const weft_value x = in(b, t, WEFT_DIMS(A, B)), ids = ids_of(b, WEFT_SCALAR, B.size);
    return weft_shift_by(
        x, B, weft_oracle_made(b, weft_sub(ids, weft_constant(b->graph, WEFT_I32, WEFT_SCALAR, 4))),
        false);
}
static weft_value shift_by_wraps(build_t *b, weft_dtype t)
{
    const weft_value x = in(b, t, WEFT_DIMS(A, B)), ids = ids_of(b, WEFT_DIMS(A), B.size);
    return weft_shift_by(
        x, B,
        weft_oracle_made(b, weft_mul(ids, weft_constant(b->graph, WEFT_I32, WEFT_SCALAR, -3))),
        true);
}

/* ---- products -------------------------------------------------------------------------------- */

static weft_spatial along(weft_dim from, weft_dim tap, weft_dim out, int64_t stride,
                          int64_t dilation, int64_t before)
{
    return (weft_spatial){from, tap, out, stride, dilation, before};
}
static weft_value conv_valid(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(BATCH, B, D)), w = in(b, t, WEFT_DIMS(C, D, OUTER));
    weft_spatial s = weft_spatial_valid(B, C, A.name, 1, 1);
    return weft_conv(WEFT_DIMS(BATCH, s.out, OUTER), x, w, WEFT_SPATIAL(s));
}
static weft_value conv_same(build_t *b,
                            weft_dtype t) /* under its own name, of more taps than a box has rows */
{
    weft_value x = in(b, t, WEFT_DIMS(D, B)), w = in(b, t, WEFT_DIMS(FEATURE, D, A));
    weft_spatial s = weft_spatial_same(B, A, B.name, 1, 1);
    return weft_conv(WEFT_DIMS(FEATURE, s.out), x, w, WEFT_SPATIAL(s));
}
static weft_value conv_strided(build_t *b, weft_dtype t) /* one filter for each channel */
{
    weft_value x = in(b, t, WEFT_DIMS(TEN, D)), w = in(b, t, WEFT_DIMS(C, D));
    return weft_conv(WEFT_DIMS(A, D), x, w, WEFT_SPATIAL(along(TEN, C, A, 2, 1, 1)));
}
static weft_value conv_groups(build_t *b, weft_dtype t) /* of space two dims */
{
    weft_value x = in(b, t, WEFT_DIMS(BATCH, B, TEN, HEADS, D)),
               w = in(b, t, WEFT_DIMS(C, PART, HEADS, D, OTHER));
    return weft_conv(WEFT_DIMS(BATCH, A, OUTER, HEADS, OTHER), x, w,
                     WEFT_SPATIAL(along(B, C, A, 1, 1, 0), along(TEN, PART, OUTER, 1, 2, 0)));
}
static weft_value conv_space(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(D, B, SEQ, SIX)),
               w = in(b, t, WEFT_DIMS(KEY, D, C, HEADS, BATCH));
    return weft_conv(WEFT_DIMS(KEY, A, FEATURE, OUTER), x, w,
                     WEFT_SPATIAL(along(B, C, A, 1, 1, 0), along(SEQ, HEADS, FEATURE, 1, 1, 0),
                                  along(SIX, BATCH, OUTER, 2, 1, 2)));
}
static weft_value conv_far(build_t *b, weft_dtype t) /* begins within x and ends behind it */
{
    weft_value x = in(b, t, WEFT_DIMS(B, D)), w = in(b, t, WEFT_DIMS(OUTER, C, D));
    return weft_conv(WEFT_DIMS(SIX, OUTER), x, w, WEFT_SPATIAL(along(B, C, SIX, 1, 1, -3)));
}
static weft_value conv_long(build_t *b, weft_dtype t) /* matrices */
{
    weft_value x = in(b, t, WEFT_DIMS(LONG, D)), w = in(b, t, WEFT_DIMS(C, D, OTHER));
    return weft_conv(WEFT_DIMS(LATER, OTHER), x, w, WEFT_SPATIAL(along(LONG, C, LATER, 1, 2, 11)));
}
static weft_value conv_lone(build_t *b, weft_dtype t) /* a dim that only the filter has is summed */
{
    weft_value x = in(b, t, WEFT_DIMS(B)), w = in(b, t, WEFT_DIMS(C, D));
    return weft_conv(WEFT_DIMS(A), x, w, WEFT_SPATIAL(along(B, C, A, 1, 1, 0)));
}
static weft_value conv_transpose_x(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(BATCH, A, OUTER)), w = in(b, t, WEFT_DIMS(C, D, OUTER));
    return weft_conv_transpose(WEFT_DIMS(BATCH, TEN, D), x, w,
                               WEFT_SPATIAL(along(TEN, C, A, 2, 1, 1)));
}

/* ---- pooling --------------------------------------------------------------------------------- */

static weft_value max_pool_x(build_t *b, weft_dtype t) /* of space two dims, windows that overlap */
{
    weft_value x = in(b, t, WEFT_DIMS(BATCH, B, TEN, D));
    return weft_max_pool(x,
                         WEFT_SPATIAL(along(B, C, OUTER, 2, 1, 1), along(TEN, C, PART, 3, 2, 1)));
}
static weft_value max_pool_last(build_t *b, weft_dtype t) /* of the last dim, under its own name */
{
    weft_value x = in(b, t, WEFT_DIMS(A, B));
    return weft_max_pool(x, WEFT_SPATIAL(along(B, A, B, 1, 1, 2)));
}
static weft_value average_pool_x(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(BATCH, B, D));
    return weft_average_pool(x, WEFT_SPATIAL(along(B, C, OUTER, 2, 1, 1)), true);
}
static weft_value average_pool_within(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(B, TEN));
    return weft_average_pool(
        x, WEFT_SPATIAL(along(B, C, OUTER, 2, 1, 1), along(TEN, D, A, 2, 1, 0)), false);
}
static weft_pool_attributes pooled(const char *x, const char *y)
{
    weft_pool_attributes a;
    memset(&a, 0, sizeof a);
    a.n_windows = 1;
    a.window[0] = (weft_pool_window){.x = x,
                                     .y = y,
                                     .x_size = 7,
                                     .y_size = 4,
                                     .taps = 3,
                                     .stride = 2,
                                     .dilation = 1,
                                     .offset = -1};
    return a;
}
static weft_value unpool_x(build_t *b, weft_dtype t)
{
    weft_value y = in(b, t, WEFT_DIMS(A, OUTER, D)), which = ids_of(b, WEFT_DIMS(A, OUTER, D), 3);
    const weft_pool_attributes a = pooled(B.name, OUTER.name);
    return weft_unpool(y, which, &a);
}
static weft_value pool_pick_x(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A, B, D)), which = ids_of(b, WEFT_DIMS(A, OUTER, D), 3);
    const weft_pool_attributes a = pooled(B.name, OUTER.name);
    return weft_pool_pick(x, which, &a);
}

/* ---- sums and products on the way ------------------------------------------------------------- */

static weft_value cumsum_x(build_t *b, weft_dtype t)
{
    return weft_cumsum(in(b, t, WEFT_DIMS(A, B, D)), B, false, false);
}
static weft_value cumsum_back(build_t *b, weft_dtype t)
{
    return weft_cumsum(in(b, t, WEFT_DIMS(A, B)), B, true, true);
}
static weft_value cumsum_blocks(build_t *b, weft_dtype t)
{
    return weft_cumsum(in(b, t, WEFT_DIMS(LONG, D)), LONG, false, false);
}
static weft_value cumsum_blocks_back(build_t *b, weft_dtype t)
{
    return weft_cumsum(in(b, t, WEFT_DIMS(D, LONG)), LONG, true, true);
}
static weft_value cumprod_x(build_t *b, weft_dtype t)
{
    return weft_cumprod(positive(b, t, WEFT_DIMS(B, D)), B, false, false);
}
static weft_value cumprod_back(build_t *b, weft_dtype t)
{
    return weft_cumprod(in(b, t, WEFT_DIMS(A, B)), A, true, true);
}
static weft_value cumprod_blocks(build_t *b, weft_dtype t) /* of numbers near 1 */
{
    weft_value x = weft_oracle_input(b, t, WEFT_DIMS(LONG, D), 0.95, 1.05);
    return weft_cumprod(x, LONG, false, false);
}

#define TO(name, stride, offset, over)                                                             \
    .with = {.dim = "b", .other = name, .a = stride, .begin = offset, .b = over}
CASES(reindex, CASE(reindex_behind, OP_FLOAT | OP_INT, 1, TO("ten", 1, -2, 1)),
      CASE(reindex_steps, OP_FLOAT | OP_INT, 1, TO("c", 3, 1, 1)),
      CASE(reindex_between, OP_FLOAT, 1, TO("later", 1, -5, 3)),
      CASE(reindex_back, OP_FLOAT | OP_INT, 1, TO("other", -1, 6, 1)),
      CASE(reindex_drifts, OP_FLOAT, 1, TO("ten", 2, -1, 3)),
      CASE(reindex_back_steps, OP_FLOAT | OP_INT, 1, TO("ten", -3, 18, 2)),
      CASE(reindex_far, OP_FLOAT, 1, TO("b", 1, 5, 1)),
      CASE(reindex_outer, OP_FLOAT | OP_INT, 1, TO("ten", -2, 13, 1)))
CASES(slice_step,
      CASE(slice_step_x, OP_FLOAT | OP_INT, 1,
           .with = {.dim = "b", .other = "c", .a = 2, .begin = 1}),
      CASE(slice_step_back, OP_FLOAT, 1, .with = {.dim = "b", .other = "c", .a = -3, .begin = 6}))
CASES(split, CASE(split_x, OP_FLOAT | OP_INT, 1,
                  .with = {.dim = "merged", .other = "part_of_b", .begin = 2}))
CASES(unstack, CASE(unstack_x, OP_FLOAT | OP_INT, 1, .with = {.dim = "b", .begin = 3}))
CASES(stack, CASE(stack_x, OP_FLOAT | OP_INT, 1, .with = {.dim = "c"}))
CASES(pad, CASE(pad_zeros, OP_FLOAT | OP_INT, 1, .with = {.dim = "b", .other = "ten", .begin = 2}),
      CASE(pad_value, OP_FLOAT | OP_INT, 1,
           .with = {.dim = "b", .other = "ten", .begin = 1, .a = 3}))
CASES(pad_reflect,
      CASE(pad_reflect_x, OP_FLOAT | OP_INT, 1, .with = {.dim = "b", .other = "ten", .begin = 1}))
CASES(dilate, CASE(dilate_x, OP_FLOAT | OP_INT, 1, .with = {.dim = "c", .other = "b", .a = 3}))
CASES(flip, CASE(flip_x, OP_FLOAT | OP_INT, 1, .with = {.dim = "b"}))
CASES(roll, CASE(roll_x, OP_FLOAT | OP_INT, 1, .with = {.dim = "b", .begin = -9}))
CASES(shift_along, CASE(shift_along_x, OP_FLOAT | OP_INT, 1, .with = {.dim = "b", .begin = 3}),
      CASE(shift_along_back, OP_FLOAT | OP_INT, 1, .with = {.dim = "b", .begin = -1}))
CASES(shift_by, CASE(shift_by_rows, OP_FLOAT | OP_INT, 1, .with = {.dim = "b"}),
      CASE(shift_by_back, OP_FLOAT, 1, .with = {.dim = "b"}),
      CASE(shift_by_all, OP_FLOAT, 1, .with = {.dim = "b"}),
      CASE(shift_by_wraps, OP_FLOAT, 1, .with = {.dim = "b", .a = 1}))
#define ONE_WINDOW(...) .n_windows = 1, .windows = {{__VA_ARGS__}}
CASES(conv, CASE(conv_valid, OP_FLOAT | OP_INT, 2, .with = {ONE_WINDOW("b", "c", "a", 1, 1, 0, 1)}),
      CASE(conv_same, OP_FLOAT, 2, .with = {ONE_WINDOW("b", "a", "b", 1, 1, -2, 1)}),
      CASE(conv_strided, OP_FLOAT | OP_INT, 2, .with = {ONE_WINDOW("ten", "c", "a", 2, 1, -1, 1)}),
      CASE(conv_groups, OP_FLOAT, 1,
           .with = {.n_windows = 2,
                    .windows = {{"b", "c", "a", 1, 1, 0, 1},
                                {"ten", "part_of_b", "outer", 1, 2, 0, 1}}}),
      CASE(conv_space, OP_FLOAT, 1,
           .with = {.n_windows = 3,
                    .windows = {{"b", "c", "a", 1, 1, 0, 1},
                                {"seq", "heads", "feature", 1, 1, 0, 1},
                                {"six", "batch", "outer", 2, 1, -2, 1}}}),
      CASE(conv_far, OP_FLOAT, 1, .with = {ONE_WINDOW("b", "c", "six", 1, 1, 3, 1)}),
      CASE(conv_long, OP_WIDE, 1, .with = {ONE_WINDOW("long", "c", "later", 1, 2, -11, 1)}),
      CASE(conv_lone, OP_FLOAT, 1, .with = {ONE_WINDOW("b", "c", "a", 1, 1, 0, 1)}))
CASES(conv_transpose, CASE(conv_transpose_x, OP_FLOAT | OP_INT, 2,
                           .with = {ONE_WINDOW("a", "c", "ten", 1, -1, 1, 2)}))
#define POOLED .n_windows = 1, .windows = {{"b", NULL, "outer", 2, 1, -1, 1, 3}}
CASES(max_pool,
      CASE(max_pool_x, OP_FLOAT | OP_INT, 1,
           .with = {.n_windows = 2,
                    .windows = {{"b", NULL, "outer", 2, 1, -1, 1, 3},
                                {"ten", NULL, "part_of_b", 3, 2, -1, 1, 3}}}),
      CASE(max_pool_last, OP_FLOAT | OP_INT, 1,
           .with = {.n_windows = 1, .windows = {{"b", NULL, "b", 1, 1, -2, 1, 5}}}))
CASES(average_pool, CASE(average_pool_x, OP_FLOAT, 1, .with = {POOLED, .causal = true}),
      CASE(average_pool_within, OP_FLOAT, 1,
           .with = {.n_windows = 2,
                    .windows = {{"b", NULL, "outer", 2, 1, -1, 1, 3},
                                {"ten", NULL, "a", 2, 1, 0, 1, 2}}}))
CASES(unpool, CASE(unpool_x, OP_FLOAT | OP_INT, 1, .with = {POOLED}))
CASES(pool_pick, CASE(pool_pick_x, OP_FLOAT | OP_INT, 1, .with = {POOLED}))
CASES(cumsum, CASE(cumsum_x, OP_FLOAT | OP_INT, 1, .with = {.dim = "b"}),
      CASE(cumsum_back, OP_FLOAT | OP_INT, 1, .with = {.dim = "b", .a = 1, .b = 1}),
      CASE(cumsum_blocks, OP_FLOAT | OP_INT, 1, .with = {.dim = "long"}),
      CASE(cumsum_blocks_back, OP_FLOAT | OP_INT, 1, .with = {.dim = "long", .a = 1, .b = 1}))
CASES(cumprod, CASE(cumprod_x, OP_FLOAT, 1, .with = {.dim = "b"}),
      CASE(cumprod_back, OP_FLOAT | OP_I32, 1, .with = {.dim = "a", .a = 1, .b = 1}),
      CASE(cumprod_blocks, OP_WIDE, 1, .with = {.dim = "long"}))
