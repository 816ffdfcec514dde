/* families: a few rows of each family of ops: reductions, what is cumulated, orders, rows taken and added, norms, casts, updates.
 *
 * family_rows.py has the same rows with the same sizes. Inputs are numbered in the order of their calls here, as there.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rows.h"

static weft_value once(bench *b, weft_value value)
{
    return b->values[0] = value;
}

static weft_dim dim_of(const bench *b, int size, const char *name)
{
    return (weft_dim){name, b->row->sizes[size]};
}

/* ---- along one of three dims: sizes are those, and its number --------------------------------- */

static weft_shape all_three(const bench *b)
{
    static const char *const names[] = {"first", "middle", "last"};
    weft_shape shape = {.n_dims = 3};
    for (int d = 0; d < 3; d++)
        shape.dims[d] = dim_of(b, d, names[d]);
    return shape;
}

static weft_shape three(const bench *b, weft_dim *along)
{
    const weft_shape shape = all_three(b);
    *along = shape.dims[b->row->sizes[3]];
    return shape;
}

static weft_shape without(weft_shape shape, weft_dim dim)
{
    weft_shape rest = {0};
    for (int d = 0; d < shape.n_dims; d++)
        if (strcmp(shape.dims[d].name, dim.name) != 0) rest.dims[rest.n_dims++] = shape.dims[d];
    return rest;
}

static void build_sum(bench *b)
{
    weft_dim dim;
    const weft_shape shape = three(b, &dim);
    once(b, weft_sum(without(shape, dim), bench_input(b, shape)));
}

static void build_max(bench *b)
{
    weft_dim dim;
    const weft_shape shape = three(b, &dim);
    once(b, weft_max(without(shape, dim), bench_input(b, shape)));
}

static void build_logsumexp(bench *b)
{
    weft_dim dim;
    const weft_shape shape = three(b, &dim);
    once(b, weft_logsumexp(bench_input(b, shape), dim));
}

static void build_argmax(bench *b)
{
    weft_dim dim;
    const weft_shape shape = three(b, &dim);
    once(b, weft_argmax(bench_input(b, shape), dim));
}

static void build_cumsum(bench *b)
{
    weft_dim dim;
    const weft_shape shape = three(b, &dim);
    once(b, weft_cumsum(bench_input(b, shape), dim, false, false));
}

static void build_cummax(bench *b)
{
    weft_dim dim;
    const weft_shape shape = three(b, &dim);
    once(b, weft_cummax(bench_input(b, shape), dim, false, false));
}

/* Of numbers near 1, so that products neither vanish nor overflow. */
static void build_cumprod(bench *b)
{
    weft_dim dim;
    const weft_shape shape = three(b, &dim);
    weft_value x = bench_variable(b, "x", shape, weft_constant_of(1.0));
    once(b, weft_cumprod(x, dim, false, false));
}

/* [first, middle, last] as [first, last, middle], [last, middle, first] or [middle, first, last]: sizes[3] is which. */
static void build_transpose(bench *b)
{
    static const int orders[][3] = {{0, 2, 1}, {2, 1, 0}, {1, 0, 2}};
    const int *order = orders[b->row->sizes[3]];
    const weft_shape in = all_three(b);
    weft_shape out = {.n_dims = 3};
    for (int d = 0; d < 3; d++)
        out.dims[d] = in.dims[order[d]];
    once(b, weft_transpose(bench_input(b, in), out));
}

/* ---- orders: sizes are rows, columns, how many ------------------------------------------------ */

static weft_value rows_of(bench *b, weft_dim *columns)
{
    *columns = dim_of(b, 1, "columns");
    return bench_input(b, WEFT_DIMS(dim_of(b, 0, "rows"), *columns));
}

static void build_top_k(bench *b)
{
    weft_dim columns;
    weft_value x = rows_of(b, &columns);
    b->values[0] = weft_top_k(x, columns, dim_of(b, 2, "best"), &b->values[1]);
}

static void build_sort(bench *b)
{
    weft_dim columns;
    weft_value x = rows_of(b, &columns);
    b->values[0] = weft_sort(x, columns, false, &b->values[1]);
}

static void build_argsort(bench *b)
{
    weft_dim columns;
    weft_value x = rows_of(b, &columns);
    once(b, weft_argsort(x, columns, false));
}

static void build_median(bench *b)
{
    weft_dim columns;
    weft_value x = rows_of(b, &columns);
    once(b, weft_median(x, columns));
}

/* ---- rows of a table: sizes are the table's rows, columns, and ids ----------------------------- */

static void build_gather(bench *b)
{
    const weft_dim table = dim_of(b, 0, "table"), columns = dim_of(b, 1, "columns");
    weft_value x = bench_input(b, WEFT_DIMS(table, columns));
    weft_value ids = bench_indices(b, WEFT_DIMS(dim_of(b, 2, "ids")), table.size);
    once(b, weft_gather(x, ids, table));
}

static weft_value given_rows(bench *b, weft_value *ids, weft_dim *table)
{
    const weft_dim columns = dim_of(b, 1, "columns"), given = dim_of(b, 2, "ids");
    *table = dim_of(b, 0, "table");
    weft_value x = bench_input(b, WEFT_DIMS(given, columns));
    *ids = bench_indices(b, WEFT_DIMS(given), table->size);
    return x;
}

static void build_scatter_add(bench *b)
{
    weft_value ids;
    weft_dim table;
    weft_value x = given_rows(b, &ids, &table);
    once(b, weft_scatter_add(x, ids, table));
}

/* Where a row is given no id the least is 0, so that all results are finite. */
static void build_scatter_max(bench *b)
{
    weft_value ids;
    weft_dim table;
    weft_value x = given_rows(b, &ids, &table);
    weft_value zero = weft_constant(b->graph, WEFT_F32, WEFT_SCALAR, 0.0);
    once(b, weft_maximum(weft_scatter_max(x, ids, table), zero));
}

static void build_segment_mean(bench *b)
{
    weft_value ids;
    weft_dim table;
    weft_value x = given_rows(b, &ids, &table);
    once(b, weft_segment_mean(x, ids, table));
}

/* x [rows, columns] at ids [rows, some]: sizes are rows, columns, some */
static void build_pick(bench *b)
{
    weft_dim columns;
    weft_value x = rows_of(b, &columns);
    const weft_shape shape = WEFT_DIMS(dim_of(b, 0, "rows"), dim_of(b, 2, "some"));
    once(b, weft_pick(x, bench_indices(b, shape, columns.size), columns));
}

/* ---- norms ------------------------------------------------------------------------------------ */

static weft_value channelwise(bench *b, const char *name, weft_dim dim, double mean)
{
    return bench_variable(b, name, WEFT_DIMS(dim), weft_constant_of(mean));
}

static void build_rms_norm(bench *b)
{
    weft_dim columns;
    weft_value x = rows_of(b, &columns);
    once(b, weft_rms_norm(x, channelwise(b, "gain", columns, 1.0), columns));
}

/* x [batch, channel, place], sizes so; sizes[3]: groups */
static void build_group_norm(bench *b)
{
    const weft_dim batch = dim_of(b, 0, "batch"), channel = dim_of(b, 1, "channel"),
                   place = dim_of(b, 2, "place");
    weft_value x = bench_input(b, WEFT_DIMS(batch, channel, place));
    weft_value gain = channelwise(b, "gain", channel, 1.0);
    weft_value bias = channelwise(b, "bias", channel, 0.0);
    once(b, weft_group_norm(x, gain, bias, channel, b->row->sizes[3], WEFT_DIMS(place), 1e-5));
}

/* As it trains, without the averages: of x [batch, channel, place]. */
static weft_value batch_norm(weft_value x, weft_value gain, weft_value bias)
{
    const weft_shape *shape = weft_shape_of(x);
    const weft_shape over = WEFT_DIMS(shape->dims[0], shape->dims[2]);
    return weft_add(weft_mul(weft_normalize(x, over, 1e-5), gain), bias);
}

static weft_value images(bench *b)
{
    return bench_input(
        b, WEFT_DIMS(dim_of(b, 0, "batch"), dim_of(b, 1, "channel"), dim_of(b, 2, "place")));
}

static void build_batch_norm(bench *b)
{
    const weft_dim channel = dim_of(b, 1, "channel");
    weft_value x = images(b);
    weft_value gain = channelwise(b, "gain", channel, 1.0);
    weft_value bias = channelwise(b, "bias", channel, 0.0);
    once(b, batch_norm(x, gain, bias));
}

/* The gradients of x, and of what a norm has besides, where those of y are given; y is not read. */
static void back(bench *b, weft_value y, weft_value dy, weft_values of)
{
    (void)weft_gradients_seeded(WEFT_VALUES(y), WEFT_VALUES(dy), of, b->values, 0);
}

static void build_softmax_back(bench *b)
{
    weft_dim columns;
    weft_value x = rows_of(b, &columns), dy = rows_of(b, &columns);
    back(b, weft_softmax(x, columns), dy, WEFT_VALUES(x));
}

static void build_layer_norm_back(bench *b)
{
    weft_dim columns;
    weft_value x = rows_of(b, &columns), dy = rows_of(b, &columns);
    weft_value gain = channelwise(b, "gain", columns, 1.0);
    weft_value bias = channelwise(b, "bias", columns, 0.0);
    back(b, weft_layer_norm(x, gain, bias, columns), dy, WEFT_VALUES(x, gain, bias));
    b->values[3] = bias; /* which no gradient reads */
}

static void build_batch_norm_back(bench *b)
{
    const weft_dim channel = dim_of(b, 1, "channel");
    weft_value x = images(b), dy = images(b);
    weft_value gain = channelwise(b, "gain", channel, 1.0);
    weft_value bias = channelwise(b, "bias", channel, 0.0);
    back(b, batch_norm(x, gain, bias), dy, WEFT_VALUES(x, gain, bias));
    b->values[3] = bias; /* which no gradient reads */
}

static void build_rms_norm_back(bench *b)
{
    weft_dim columns;
    weft_value x = rows_of(b, &columns), dy = rows_of(b, &columns);
    weft_value gain = channelwise(b, "gain", columns, 1.0);
    back(b, weft_rms_norm(x, gain, columns), dy, WEFT_VALUES(x, gain));
}

/* The mean loss's gradient, and the loss. */
static void build_cross_entropy(bench *b)
{
    weft_dim columns;
    weft_value x = rows_of(b, &columns);
    weft_value labels = bench_indices(b, WEFT_DIMS(dim_of(b, 0, "rows")), columns.size);
    weft_value loss = weft_mean(weft_cross_entropy(x, labels, columns));
    (void)weft_gradients(loss, WEFT_VALUES(x), b->values, 0);
    b->values[1] = loss;
}

/* ---- element by element ------------------------------------------------------------------------ */

static void build_to_bf16(bench *b)
{
    weft_dim columns;
    once(b, weft_cast(rows_of(b, &columns), WEFT_BF16));
}

static void build_from_bf16(bench *b)
{
    const weft_shape shape = WEFT_DIMS(dim_of(b, 0, "rows"), dim_of(b, 1, "columns"));
    once(b, weft_cast(bench_input_of(b, WEFT_BF16, shape), WEFT_F32));
}

static void build_to_i32(bench *b)
{
    weft_dim columns;
    once(b, weft_cast(rows_of(b, &columns), WEFT_I32));
    b->filled[0].scale = 1000.0; /* below 1 all of them would be 0 */
}

static void build_gelu_bf16(bench *b)
{
    const weft_shape shape = WEFT_DIMS(dim_of(b, 0, "rows"), dim_of(b, 1, "columns"));
    once(b, weft_gelu(bench_input_of(b, WEFT_BF16, shape)));
}

static void build_softmax_bf16(bench *b)
{
    const weft_dim columns = dim_of(b, 1, "columns");
    const weft_shape shape = WEFT_DIMS(dim_of(b, 0, "rows"), columns);
    once(b, weft_softmax(bench_input_of(b, WEFT_BF16, shape), columns));
}

/* Of ones, half of which go: so each result is 0 or 2, and both are there, whatever was drawn. */
static void build_dropout(bench *b)
{
    const weft_shape shape = WEFT_DIMS(dim_of(b, 0, "rows"), dim_of(b, 1, "columns"));
    weft_value x = bench_variable(b, "x", shape, weft_normal(1.0, 0.0));
    once(b, weft_dropout(x, 0.5));
}

static weft_status open_op(bench *b, weft_error *error)
{
    return bench_op.open(b, error);
}

static weft_status run_op(bench *b, int64_t calls, weft_error *error)
{
    return bench_op.run(b, calls, error);
}

static void close_op(bench *b)
{
    bench_op.close(b);
}

/* The least and the largest. */
static weft_status look_at_range(bench *b, int64_t steps, double *numbers, int *n,
                                 weft_error *error)
{
    WEFT_TRY(run_op(b, steps, error));
    const int64_t count = b->row->sizes[0] * b->row->sizes[1], bytes = 4 * count;
    float *data = malloc((size_t)bytes);
    if (data == NULL) return WEFT_MEMORY;
    weft_status status = weft_read(b->program, b->values[0], WEFT_F32, data, bytes, error);
    numbers[0] = (double)INFINITY, numbers[1] = (double)-INFINITY;
    for (int64_t i = 0; i < count && status == WEFT_OK; i++) {
        if ((double)data[i] < numbers[0]) numbers[0] = (double)data[i];
        if ((double)data[i] > numbers[1]) numbers[1] = (double)data[i];
    }
    *n = 2;
    free(data);
    return status;
}

static const bench_kind drawn = {open_op, run_op, look_at_range, close_op};

/* ---- updates: sizes are rows, columns; gradients are handed in --------------------------------- */

typedef weft_value (*rule)(weft_value loss, const weft_optimizer_options *options);

static void update(bench *b, rule by, weft_optimizer_options options)
{
    weft_dim columns;
    weft_value gradient = rows_of(b, &columns);
    const weft_shape shape = WEFT_DIMS(dim_of(b, 0, "rows"), columns);
    weft_value w = bench_variable(b, "w", shape, weft_normal(0.0, 0.02));
    options.variables = WEFT_VALUES(w), options.gradients = WEFT_VALUES(gradient);
    options.rate = 1e-3;
    b->values[0] = w;
    b->values[1] = by((weft_value){0}, &options);
}

static void build_sgd(bench *b)
{
    update(b, weft_sgd, (weft_optimizer_options){0});
}
static void build_momentum(bench *b)
{
    update(b, weft_momentum, (weft_optimizer_options){.momentum = 0.9});
}
static void build_adam(bench *b)
{
    update(b, weft_adam, (weft_optimizer_options){.beta1 = 0.9, .beta2 = 0.95, .epsilon = 1e-8});
}
static void build_adafactor(bench *b)
{
    update(b, weft_adafactor, (weft_optimizer_options){.weight_decay = -1});
}
static void build_lion(bench *b)
{
    update(b, weft_lion, (weft_optimizer_options){.beta1 = 0.9, .beta2 = 0.99, .weight_decay = -1});
}

const bench_row bench_family_rows[] = {
    {"sum_first", &bench_op, build_sum, {128, 64, 512, 0}},
    {"sum_middle", &bench_op, build_sum, {128, 64, 512, 1}},
    {"sum_last", &bench_op, build_sum, {128, 64, 512, 2}},
    {"max_first", &bench_op, build_max, {128, 64, 512, 0}},
    {"max_middle", &bench_op, build_max, {128, 64, 512, 1}},
    {"max_last", &bench_op, build_max, {128, 64, 512, 2}},
    {"logsumexp_first", &bench_op, build_logsumexp, {128, 64, 512, 0}},
    {"logsumexp_middle", &bench_op, build_logsumexp, {128, 64, 512, 1}},
    {"logsumexp_last", &bench_op, build_logsumexp, {128, 64, 512, 2}},
    {"argmax_first", &bench_op, build_argmax, {128, 64, 512, 0}},
    {"argmax_middle", &bench_op, build_argmax, {128, 64, 512, 1}},
    {"argmax_last", &bench_op, build_argmax, {128, 64, 512, 2}},
    {"cumsum_first", &bench_op, build_cumsum, {64, 256, 64, 0}},
    {"cumsum_middle", &bench_op, build_cumsum, {64, 256, 64, 1}},
    {"cumsum_last", &bench_op, build_cumsum, {64, 256, 64, 2}},
    {"cumprod_first", &bench_op, build_cumprod, {64, 256, 64, 0}},
    {"cumprod_middle", &bench_op, build_cumprod, {64, 256, 64, 1}},
    {"cumprod_last", &bench_op, build_cumprod, {64, 256, 64, 2}},
    {"cummax_first", &bench_op, build_cummax, {64, 256, 64, 0}},
    {"cummax_middle", &bench_op, build_cummax, {64, 256, 64, 1}},
    {"cummax_last", &bench_op, build_cummax, {64, 256, 64, 2}},
    {"cumsum_rows", &bench_op, build_cumsum, {1, 256, 4096, 2}},
    {"cumprod_rows", &bench_op, build_cumprod, {1, 256, 4096, 2}},
    {"cummax_rows", &bench_op, build_cummax, {1, 256, 4096, 2}},
    {"cumsum_columns", &bench_op, build_cumsum, {1, 4096, 256, 1}},
    {"cumsum_one", &bench_op, build_cumsum, {1, 1, 1 << 20, 2}},
    {"transpose_inner", &bench_op, build_transpose, {16, 512, 256, 0}},
    {"transpose_ends", &bench_op, build_transpose, {256, 32, 256, 1}},
    {"transpose_outer", &bench_op, build_transpose, {256, 128, 64, 2}},
    {"top_8", &bench_op, build_top_k, {256, 4096, 8}},
    {"top_64", &bench_op, build_top_k, {256, 4096, 64}},
    {"top_1000", &bench_op, build_top_k, {64, 50304, 1000}},
    {"sort_rows", &bench_op, build_sort, {256, 4096}},
    {"sort_one", &bench_op, build_sort, {1, 1 << 20}},
    {"sort_short", &bench_op, build_sort, {16384, 64}},
    {"argsort_rows", &bench_op, build_argsort, {256, 4096}},
    {"median_rows", &bench_op, build_median, {256, 4096}},
    {"gather_rows", &bench_op, build_gather, {8192, 768, 4096}},
    {"pick_some", &bench_op, build_pick, {4096, 1024, 256}},
    {"scatter_add", &bench_op, build_scatter_add, {8192, 768, 4096}},
    {"scatter_max", &bench_op, build_scatter_max, {8192, 768, 4096}},
    {"segment_mean", &bench_op, build_segment_mean, {1024, 256, 16384}},
    {"rms_norm", &bench_op, build_rms_norm, {1024, 3072}},
    {"group_norm", &bench_op, build_group_norm, {16, 256, 1024, 32}},
    {"batch_norm", &bench_op, build_batch_norm, {16, 256, 1024}},
    {"batch_norm_back", &bench_op, build_batch_norm_back, {16, 256, 1024}},
    {"softmax_back", &bench_op, build_softmax_back, {1024, 3072}},
    {"layer_norm_back", &bench_op, build_layer_norm_back, {1024, 3072}},
    {"rms_norm_back", &bench_op, build_rms_norm_back, {1024, 3072}},
    {"cross_entropy", &bench_op, build_cross_entropy, {256, 50304}},
    {"dropout", &drawn, build_dropout, {1024, 3072}},
    {"to_bf16", &bench_op, build_to_bf16, {1024, 3072}},
    {"from_bf16", &bench_op, build_from_bf16, {1024, 3072}},
    {"to_i32", &bench_op, build_to_i32, {1024, 3072}},
    {"gelu_bf16", &bench_op, build_gelu_bf16, {1024, 3072}},
    {"softmax_bf16", &bench_op, build_softmax_bf16, {1024, 3072}},
    {"sgd", &bench_op, build_sgd, {768, 3072}},
    {"momentum", &bench_op, build_momentum, {768, 3072}},
    {"adam", &bench_op, build_adam, {768, 3072}},
    {"adafactor", &bench_op, build_adafactor, {768, 3072}},
    {"lion", &bench_op, build_lion, {768, 3072}},
    {0},
};
