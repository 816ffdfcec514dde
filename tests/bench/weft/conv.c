/* conv: convolutions and pooling, each a step: the result, and the gradients of filter and input for a given one of the result. */
#include "rows.h"

/* Sizes of a row: batch, elements of each dim of space, channels and features of a group, taps, stride. */
enum { BATCH, SIDE, CHANNELS, FEATURES, TAPS, STRIDE };

static weft_spatial space(const bench *b, int s, int64_t size)
{
    static const char *const names[3][3] = {{"x", "dx", "x"}, {"y", "dy", "y"}, {"z", "dz", "z"}};
    const int64_t *n = b->row->sizes, before = (n[TAPS] - 1) / 2;
    return (weft_spatial){.in = {names[s][0], size},
                          .tap = {names[s][1], n[TAPS]},
                          .out = {names[s][2], (size + 2 * before - n[TAPS]) / n[STRIDE] + 1},
                          .stride = n[STRIDE],
                          .before = before};
}

/* Looked at: the result, the filter's gradient, and the input's, if it is wanted. */
static void step(bench *b, weft_value y, weft_value w, weft_value x, bool wants_x)
{
    weft_value seed = bench_input(b, *weft_shape_of(y)), of[2];
    weft_gradients_seeded(WEFT_VALUES(y), WEFT_VALUES(seed),
                          (weft_values){(const weft_value[]){w, x}, wants_x ? 2 : 1}, of, 0);
    b->values[0] = y, b->values[1] = of[0];
    if (wants_x) b->values[2] = of[1];
    b->n_looked = wants_x ? 3 : 2;
}

static weft_value filter(bench *b, weft_shape shape)
{
    return bench_variable(b, "w", shape, weft_normal(0.0, 0.02));
}

static void build_flat(bench *b, bool wants_x)
{
    const int64_t *n = b->row->sizes;
    const weft_spatial rows = space(b, 0, n[SIDE]), columns = space(b, 1, n[SIDE]);
    const weft_dim batch = {"batch", n[BATCH]}, channel = {"channel", n[CHANNELS]},
                   feature = {"feature", n[FEATURES]};
    weft_value x = bench_input(b, WEFT_DIMS(batch, rows.in, columns.in, channel));
    weft_value w = filter(b, WEFT_DIMS(rows.tap, columns.tap, channel, feature));
    weft_value y = weft_conv(WEFT_DIMS(batch, rows.out, columns.out, feature), x, w,
                             WEFT_SPATIAL(rows, columns));
    step(b, y, w, x, wants_x);
}

static void build_conv(bench *b)
{
    build_flat(b, true);
}

/* A first layer: nobody wants the gradient of what it reads. */
static void build_first(bench *b)
{
    build_flat(b, false);
}

static void build_depthwise(bench *b)
{
    const int64_t *n = b->row->sizes;
    const weft_spatial rows = space(b, 0, n[SIDE]), columns = space(b, 1, n[SIDE]);
    const weft_dim batch = {"batch", n[BATCH]}, channel = {"channel", n[CHANNELS]};
    weft_value x = bench_input(b, WEFT_DIMS(batch, rows.in, columns.in, channel));
    weft_value w = filter(b, WEFT_DIMS(rows.tap, columns.tap, channel));
    weft_value y = weft_conv(WEFT_DIMS(batch, rows.out, columns.out, channel), x, w,
                             WEFT_SPATIAL(rows, columns));
    step(b, y, w, x, true);
}

static void build_grouped(bench *b)
{
    const int64_t *n = b->row->sizes;
    const weft_spatial rows = space(b, 0, n[SIDE]), columns = space(b, 1, n[SIDE]);
    const weft_dim batch = {"batch", n[BATCH]}, group = {"group", 32},
                   channel = {"channel", n[CHANNELS]}, feature = {"feature", n[FEATURES]};
    weft_value x = bench_input(b, WEFT_DIMS(batch, rows.in, columns.in, group, channel));
    weft_value w = filter(b, WEFT_DIMS(rows.tap, columns.tap, group, channel, feature));
    weft_value y = weft_conv(WEFT_DIMS(batch, rows.out, columns.out, group, feature), x, w,
                             WEFT_SPATIAL(rows, columns));
    step(b, y, w, x, true);
}

/* SIDE is that of what is read; the result has STRIDE times as many. */
static void build_transposed(bench *b)
{
    const int64_t *n = b->row->sizes;
    const weft_spatial rows = space(b, 0, n[SIDE] * n[STRIDE]),
                       columns = space(b, 1, n[SIDE] * n[STRIDE]);
    const weft_dim batch = {"batch", n[BATCH]}, channel = {"channel", n[CHANNELS]},
                   feature = {"feature", n[FEATURES]};
    weft_value x = bench_input(b, WEFT_DIMS(batch, rows.out, columns.out, channel));
    weft_value w = filter(b, WEFT_DIMS(rows.tap, columns.tap, channel, feature));
    weft_value y = weft_conv_transpose(WEFT_DIMS(batch, rows.in, columns.in, feature), x, w,
                                       WEFT_SPATIAL(rows, columns));
    step(b, y, w, x, true);
}

static void build_deep(bench *b)
{
    const int64_t *n = b->row->sizes;
    const weft_spatial rows = space(b, 0, 16), columns = space(b, 1, n[SIDE]),
                       planes = space(b, 2, n[SIDE]);
    const weft_dim batch = {"batch", n[BATCH]}, channel = {"channel", n[CHANNELS]},
                   feature = {"feature", n[FEATURES]};
    weft_value x = bench_input(b, WEFT_DIMS(batch, rows.in, columns.in, planes.in, channel));
    weft_value w = filter(b, WEFT_DIMS(rows.tap, columns.tap, planes.tap, channel, feature));
    weft_value y = weft_conv(WEFT_DIMS(batch, rows.out, columns.out, planes.out, feature), x, w,
                             WEFT_SPATIAL(rows, columns, planes));
    step(b, y, w, x, true);
}

static weft_value pooled(bench *b, weft_spatial *rows, weft_spatial *columns)
{
    const int64_t *n = b->row->sizes;
    const weft_dim batch = {"batch", n[BATCH]}, channel = {"channel", n[CHANNELS]};
    *rows = space(b, 0, n[SIDE]), *columns = space(b, 1, n[SIDE]);
    return bench_input(b, WEFT_DIMS(batch, rows->in, columns->in, channel));
}

static void step_of_pool(bench *b, weft_value y, weft_value x)
{
    weft_value seed = bench_input(b, *weft_shape_of(y));
    b->values[0] = y;
    weft_gradients_seeded(WEFT_VALUES(y), WEFT_VALUES(seed), WEFT_VALUES(x), &b->values[1], 0);
    b->n_looked = 2;
}

static void build_max_pool(bench *b)
{
    weft_spatial rows, columns;
    weft_value x = pooled(b, &rows, &columns);
    step_of_pool(b, weft_max_pool(x, WEFT_SPATIAL(rows, columns)), x);
}

static void build_average_pool(bench *b)
{
    weft_spatial rows, columns;
    weft_value x = pooled(b, &rows, &columns);
    step_of_pool(b, weft_average_pool(x, WEFT_SPATIAL(rows, columns), true), x);
}

const bench_row bench_conv_rows[] = {
    {"conv_7x7_3_64", &bench_op, build_first, {8, 112, 3, 64, 7, 2}},
    {"conv_3x3_3_32", &bench_op, build_first, {16, 32, 3, 32, 3, 1}},
    {"conv_3x3_64", &bench_op, build_conv, {8, 56, 64, 64, 3, 1}},
    {"conv_3x3_128", &bench_op, build_conv, {8, 28, 128, 128, 3, 1}},
    {"conv_3x3_256", &bench_op, build_conv, {8, 14, 256, 256, 3, 1}},
    {"conv_3x3_512", &bench_op, build_conv, {8, 7, 512, 512, 3, 1}},
    {"conv_3x3_128_by_2", &bench_op, build_conv, {8, 56, 128, 128, 3, 2}},
    {"conv_1x1_256_64", &bench_op, build_conv, {8, 56, 256, 64, 1, 1}},
    {"conv_1x1_64_256", &bench_op, build_conv, {8, 56, 64, 256, 1, 1}},
    {"conv_1x1_256_512_by_2", &bench_op, build_conv, {8, 56, 256, 512, 1, 2}},
    {"conv_depthwise", &bench_op, build_depthwise, {8, 56, 128, 1, 3, 1}},
    {"conv_grouped", &bench_op, build_grouped, {8, 56, 4, 4, 3, 1}},
    {"conv_transpose", &bench_op, build_transposed, {8, 28, 64, 64, 4, 2}},
    {"conv_deep", &bench_op, build_deep, {2, 28, 32, 32, 3, 1}},
    {"max_pool_2x2", &bench_op, build_max_pool, {16, 56, 64, 1, 2, 2}},
    {"max_pool_3x3", &bench_op, build_max_pool, {8, 56, 64, 1, 3, 2}},
    {"average_pool_2x2", &bench_op, build_average_pool, {16, 56, 64, 1, 2, 2}},
    {0},
};
