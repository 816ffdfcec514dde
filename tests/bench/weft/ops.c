/* ops: single ops at the shapes of GPT-2, an optimizer's step, and a chain of ops too small to matter. */
#include "rows.h"

/* ---- linear: sizes are rows, in, out --------------------------------------------------------- */

static weft_value product(bench *b, weft_dim *out)
{
    const int64_t *n = b->row->sizes;
    const weft_dim rows = {"rows", n[0]}, in = {"in", n[1]};
    *out = (weft_dim){"out", n[2]};
    weft_value x = bench_input(b, WEFT_DIMS(rows, in));
    weft_value w = bench_variable(b, "w", WEFT_DIMS(in, *out), weft_normal(0.0, 0.02));
    return weft_einsum(WEFT_DIMS(rows, *out), x, w);
}

static void build_linear(bench *b)
{
    weft_dim out;
    b->values[0] = product(b, &out);
}

static void build_linear_gelu(bench *b)
{
    weft_dim out;
    weft_value y = product(b, &out);
    weft_value bias = bench_variable(b, "bias", WEFT_DIMS(out), weft_constant_of(0.0));
    b->values[0] = weft_gelu(weft_add(y, bias));
}

/* ---- ops that memory bounds: sizes are rows, columns ----------------------------------------- */

static weft_value matrix(bench *b, weft_dim *columns)
{
    const weft_dim rows = {"rows", b->row->sizes[0]};
    *columns = (weft_dim){"columns", b->row->sizes[1]};
    return bench_input(b, WEFT_DIMS(rows, *columns));
}

static void build_softmax(bench *b)
{
    weft_dim columns;
    weft_value x = matrix(b, &columns);
    b->values[0] = weft_softmax(x, columns);
}

static void build_layer_norm(bench *b)
{
    weft_dim columns;
    weft_value x = matrix(b, &columns);
    weft_value gain = bench_variable(b, "gain", WEFT_DIMS(columns), weft_constant_of(1.0));
    weft_value bias = bench_variable(b, "bias", WEFT_DIMS(columns), weft_constant_of(0.0));
    b->values[0] = weft_layer_norm(x, gain, bias, columns);
}

static void build_gelu(bench *b)
{
    weft_dim columns;
    b->values[0] = weft_gelu(matrix(b, &columns));
}

static void build_add(bench *b)
{
    weft_dim columns;
    weft_value x = matrix(b, &columns);
    b->values[0] = weft_add(x, matrix(b, &columns));
}

/* Gradients are handed in, so that the optimizer is all there is. */
static void build_adamw(bench *b)
{
    weft_dim columns;
    weft_value gradient = matrix(b, &columns);
    const weft_dim rows = {"rows", b->row->sizes[0]};
    weft_value w = bench_variable(b, "w", WEFT_DIMS(rows, columns), weft_normal(0.0, 0.02));
    b->values[0] = w;
    b->values[1] =
        weft_adamw((weft_value){0}, &(weft_optimizer_options){.rate = 1e-3,
                                                              .beta1 = 0.9,
                                                              .beta2 = 0.95,
                                                              .epsilon = 1e-8,
                                                              .weight_decay = 0.1,
                                                              .variables = WEFT_VALUES(w),
                                                              .gradients = WEFT_VALUES(gradient)});
}

/* ---- the executor: sizes[0] times a product of 2 x 2 and a softmax, which no pass joins -------- */

static void build_executor(bench *b)
{
    const weft_dim a = {"a", 2}, in = {"in", 2}, out = {"out", 2};
    weft_value x = bench_input(b, WEFT_DIMS(a, in)), w = bench_input(b, WEFT_DIMS(in, out));
    for (int64_t i = 0; i < b->row->sizes[0]; i++)
        x = weft_rename(weft_softmax(weft_einsum(WEFT_DIMS(a, out), x, w), out), out, in);
    b->values[0] = x;
}

const bench_row bench_op_rows[] = {
    {"linear_256_768_768", &bench_op, build_linear, {256, 768, 768}},
    {"linear_256_768_2304", &bench_op, build_linear, {256, 768, 2304}},
    {"linear_256_768_3072", &bench_op, build_linear, {256, 768, 3072}},
    {"linear_256_3072_768", &bench_op, build_linear, {256, 3072, 768}},
    {"linear_1024_768_768", &bench_op, build_linear, {1024, 768, 768}},
    {"linear_1024_768_2304", &bench_op, build_linear, {1024, 768, 2304}},
    {"linear_1024_768_3072", &bench_op, build_linear, {1024, 768, 3072}},
    {"linear_1024_3072_768", &bench_op, build_linear, {1024, 3072, 768}},
    {"linear_gelu_256", &bench_op, build_linear_gelu, {256, 768, 3072}},
    {"linear_gelu_1024", &bench_op, build_linear_gelu, {1024, 768, 3072}},
    {"softmax", &bench_op, build_softmax, {1024, 3072}},
    {"layer_norm", &bench_op, build_layer_norm, {1024, 3072}},
    {"gelu", &bench_op, build_gelu, {1024, 3072}},
    {"add", &bench_op, build_add, {1024, 3072}},
    {"adamw", &bench_op, build_adamw, {768, 3072}},
    {"large_product", &bench_op, build_linear, {8192, 8192, 8192}},
    {"large_gelu", &bench_op, build_gelu, {32768, 3072}},
    {"large_softmax", &bench_op, build_softmax, {32768, 3072}},
    {"large_layer_norm", &bench_op, build_layer_norm, {32768, 3072}},
    {"large_adamw", &bench_op, build_adamw, {32768, 3072}},
    {"executor", &bench_op, build_executor, {500}},
    {0},
};
