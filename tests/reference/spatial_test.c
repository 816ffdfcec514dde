/* RANKS: 3 */
/* spatial_test: convolution, pooling, cumsum and cumprod, and their gradients, against PyTorch in float64, on one rank and with the rows over three.
 *
 * The table spatial.txt comes from torch_spatial.py, which tells what its lines mean and has the same cases and formulas.
 */
#include "oracle.h"
#include "weft/autodiff.h"

#include "test.h"
#include "torch_table.h"

static const weft_dim batch = {"batch", 2};

static weft_value formula(weft_oracle_build *b, const char *name, weft_shape shape,
                          double frequency)
{
    return weft_variable(b->graph, name, WEFT_F64, shape, weft_formula(1.0, frequency));
}

/* y, and half the sum of its squares taken back. */
static void give(weft_oracle_build *b, weft_value y, weft_value x, weft_value w)
{
    const weft_values of = {(const weft_value[]){x, w}, w.id != 0 ? 2 : 1};
    weft_value gradients[2];
    weft_gradients(weft_scale(weft_sum(WEFT_SCALAR, weft_square(y)), 0.5), of, gradients, 0);
    weft_oracle_output(b, y);
    for (int i = 0; i < of.n_values; i++)
        weft_oracle_output(b, gradients[i]);
}

static weft_spatial along(const char *name, int64_t size, int64_t taps, int64_t out, int64_t stride,
                          int64_t dilation, int64_t before)
{
    static const char *const tap[] = {"tap_row", "tap_column", "tap_plane"};
    const int which = name[0] == 'r' ? 0 : name[0] == 'c' ? 1 : 2;
    return (weft_spatial){{name, size}, {tap[which], taps}, {name, out}, stride, dilation, before};
}

static void build_conv1d(weft_oracle_build *b)
{
    const weft_dim channel = {"channel", 3}, feature = {"feature", 4};
    const weft_spatial r = along("row", 11, 3, 6, 2, 1, 1);
    weft_value x = formula(b, "x", WEFT_DIMS(batch, channel, r.in), 0.7),
               w = formula(b, "w", WEFT_DIMS(feature, channel, r.tap), 1.3);
    give(b, weft_conv(WEFT_DIMS(batch, feature, r.out), x, w, WEFT_SPATIAL(r)), x, w);
}

/* PyTorch's channels of two groups are a dim of groups and one of channels. */
static void build_conv2d(weft_oracle_build *b)
{
    const weft_dim group = {"group", 2}, channel = {"channel", 2}, feature = {"feature", 3};
    const weft_spatial r = along("row", 9, 3, 5, 2, 1, 1), c = along("column", 8, 2, 6, 1, 2, 0);
    weft_value x = formula(b, "x", WEFT_DIMS(batch, group, channel, r.in, c.in), 0.7),
               w = formula(b, "w", WEFT_DIMS(group, feature, channel, r.tap, c.tap), 1.3);
    give(b, weft_conv(WEFT_DIMS(batch, group, feature, r.out, c.out), x, w, WEFT_SPATIAL(r, c)), x,
         w);
}

static void build_conv3d(weft_oracle_build *b)
{
    const weft_dim one = {"batch", 1}, channel = {"channel", 2}, feature = {"feature", 3};
    const weft_spatial p = along("plane", 5, 2, 6, 1, 1, 1), r = along("row", 6, 3, 6, 1, 1, 1),
                       c = along("column", 7, 3, 7, 1, 1, 1);
    weft_value x = formula(b, "x", WEFT_DIMS(one, channel, p.in, r.in, c.in), 0.7),
               w = formula(b, "w", WEFT_DIMS(feature, channel, p.tap, r.tap, c.tap), 1.3);
    give(b, weft_conv(WEFT_DIMS(one, feature, p.out, r.out, c.out), x, w, WEFT_SPATIAL(p, r, c)), x,
         w);
}

static void build_transposed(weft_oracle_build *b)
{
    const weft_dim channel = {"channel", 4}, feature = {"feature", 3};
    const weft_spatial r = along("row", 9, 3, 5, 2, 1, 1), c = along("column", 7, 3, 4, 2, 1, 1);
    weft_value x = formula(b, "x", WEFT_DIMS(batch, channel, r.out, c.out), 0.7),
               w = formula(b, "w", WEFT_DIMS(channel, feature, r.tap, c.tap), 1.3);
    give(b, weft_conv_transpose(WEFT_DIMS(batch, feature, r.in, c.in), x, w, WEFT_SPATIAL(r, c)), x,
         w);
}

static void build_pool(weft_oracle_build *b, int way)
{
    const weft_dim channel = {"channel", 3};
    const weft_spatial r = along("row", 9, 3, 5, 2, 1, 1), c = along("column", 8, 2, 5, 2, 1, 1);
    weft_value x = formula(b, "x", WEFT_DIMS(batch, channel, r.in, c.in), 0.7);
    weft_value y = way == 0 ? weft_max_pool(x, WEFT_SPATIAL(r, c))
                            : weft_average_pool(x, WEFT_SPATIAL(r, c), way == 1);
    give(b, y, x, (weft_value){b->graph, 0});
}
static void build_max_pool(weft_oracle_build *b)
{
    build_pool(b, 0);
}
static void build_average_pool(weft_oracle_build *b)
{
    build_pool(b, 1);
}
static void build_average_within(weft_oracle_build *b)
{
    build_pool(b, 2);
}

static void build_cumsum(weft_oracle_build *b)
{
    const weft_dim many = {"many", 3}, row = {"row", 100}, two = {"two", 2};
    weft_value x = formula(b, "x", WEFT_DIMS(many, row, two), 0.7);
    give(b, weft_cumsum(x, row, false, false), x, (weft_value){b->graph, 0});
}
static void build_cumsum_back(weft_oracle_build *b)
{
    const weft_dim many = {"many", 3}, row = {"row", 100}, two = {"two", 2};
    weft_value x = formula(b, "x", WEFT_DIMS(many, row, two), 0.7);
    give(b, weft_cumsum(x, row, false, true), x, (weft_value){b->graph, 0});
}
static void build_cumprod(weft_oracle_build *b)
{
    const weft_dim many = {"many", 2}, row = {"row", 120};
    weft_value x = formula(b, "x", WEFT_DIMS(many, row), 0.7);
    give(b, weft_cumprod(weft_shift(weft_scale(x, 0.1), 1), row, false, false), x,
         (weft_value){b->graph, 0});
}
static void build_cumprod_zeros(weft_oracle_build *b)
{
    const weft_dim many = {"many", 3}, row = {"row", 10};
    weft_value x = formula(b, "x", WEFT_DIMS(many, row), 0.7),
               zeros = weft_variable(b->graph, "w", WEFT_F64, WEFT_DIMS(many, row),
                                     weft_constant_of(0));
    weft_value at = weft_iota(b->graph, WEFT_I32, row),
               three = weft_constant(b->graph, WEFT_I32, WEFT_SCALAR, 3),
               seven = weft_constant(b->graph, WEFT_I32, WEFT_SCALAR, 7);
    weft_value is_zero = weft_add(weft_equal(at, three), weft_equal(at, seven));
    give(b, weft_cumprod(weft_where(is_zero, zeros, x), row, false, false), x, zeros);
}

static const weft_oracle_case cases[] = {
    {.name = "conv1d", .build = build_conv1d},
    {.name = "conv2d", .build = build_conv2d},
    {.name = "conv3d", .build = build_conv3d},
    {.name = "transposed", .build = build_transposed},
    {.name = "max_pool", .build = build_max_pool},
    {.name = "average_pool", .build = build_average_pool},
    {.name = "average_within", .build = build_average_within},
    {.name = "cumsum", .build = build_cumsum},
    {.name = "cumsum_back", .build = build_cumsum_back},
    {.name = "cumprod", .build = build_cumprod},
    {.name = "cumprod_zeros", .build = build_cumprod_zeros},
};
enum { N_CASES = sizeof cases / sizeof cases[0] };
static const char *const outputs[] = {"y", "x", "w"};
static weft_oracle oracle;

static void check_on(weft_mesh *mesh, const char *layout)
{
    for (int i = 0; i < N_CASES; i++) {
        weft_oracle_case one = cases[i];
        weft_oracle_result result = {0};
        weft_error error = {0};
        one.layout = layout;
        if (CHECK_OK(weft_oracle_run(mesh, &one, NULL, &result, &error), error))
            check_torch_table("spatial.txt", one.name, outputs, &result);
        weft_oracle_free(&result);
    }
}

static void test_one_rank_equals_pytorch(void)
{
    check_on(oracle.alone, NULL);
}
static void test_rows_over_ranks_equal_pytorch(void)
{
    for (int m = 0; m < oracle.n_meshes; m++)
        check_on(oracle.meshes[m], "row:d");
}

int main(void)
{
    static const char *const meshes[] = {"d:2", "d:3", "d:4"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 3, &error), error)) {
        RUN(test_one_rank_equals_pytorch);
        RUN(test_rows_over_ranks_equal_pytorch);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
