/* subjects: small programs whose kernels say how fast a machine computes. */
#include "calibrate.h"

#include "weft/autodiff.h"
#include "weft/layers.h"
#include "weft/ops.h"
#include "weft/optim.h"

enum { TIMES = 4 }; /* that an element op is applied */

static weft_value input(weft_graph *graph, const weft_subject *s, const char *name,
                        weft_shape shape)
{
    return weft_input(graph, name, s->dtype, shape);
}

/* ---- loops ----------------------------------------------------------------------------------------- */

static weft_value stream(weft_graph *graph, const weft_subject *s)
{
    const weft_dim n = {"n", s->size[0]};
    return weft_scale(input(graph, s, "x", WEFT_DIMS(n)), 1.5);
}

/* Several times, so that arithmetic takes longer than memory. */
static weft_value act(weft_graph *graph, const weft_subject *s)
{
    const weft_dim n = {"n", s->size[0]};
    weft_value x = input(graph, s, "x", WEFT_DIMS(n));
    for (int i = 0; i < TIMES; i++)
        x = s->act(x);
    return x;
}

static weft_value numbers(weft_graph *graph, const weft_subject *s)
{
    const weft_dim n = {"n", s->size[0]};
    return weft_random_uniform(graph, s->dtype, WEFT_DIMS(n), 0, 1);
}

/* Ops that are hardly more than an instruction. */
static weft_value plain(weft_value x)
{
    return weft_shift(weft_neg(x), 1.5);
}

static weft_value quotient(weft_value x)
{
    return weft_div(x, x);
}

static weft_value power(weft_value x)
{
    return weft_pow(x, x);
}

static weft_value dropped(weft_value x)
{
    return weft_dropout(x, 0.1);
}

static weft_value slope(weft_value x)
{
    return weft_emit_element(&weft_op_gelu_slope, &x, 1, 0, 0);
}

static weft_value normal_numbers(weft_graph *graph, const weft_subject *s)
{
    const weft_dim n = {"n", s->size[0]};
    return weft_random_normal(graph, s->dtype, WEFT_DIMS(n), 0, 1);
}

const weft_subject weft_calibrate_empty = {"a step", stream, {1}, NULL, WEFT_F32};

#define STREAM(elements)                                                                           \
    {                                                                                              \
        "memory", stream, {elements}, NULL, WEFT_F32                                               \
    }
const weft_subject weft_calibrate_streams[] = {STREAM(1 << 20), STREAM(1 << 11), STREAM(1 << 15),
                                               STREAM(1 << 24), STREAM(1 << 22), STREAM(1 << 13),
                                               STREAM(1 << 17), STREAM(1 << 18), STREAM(1 << 19),
                                               STREAM(1 << 21), STREAM(1 << 23), {NULL}};

#define ACT(function)                                                                              \
    {                                                                                              \
        "element ops", act, {1 << 17}, function, WEFT_F32                                          \
    }
const weft_subject weft_calibrate_acts[] = {
    ACT(plain),
    ACT(weft_exp),
    ACT(weft_tanh),
    ACT(weft_sigmoid),
    ACT(dropped),
    ACT(weft_gelu),
    ACT(slope),
    ACT(weft_log),
    ACT(quotient),
    ACT(weft_sqrt),
    ACT(weft_rsqrt),
    ACT(weft_erf),
    ACT(weft_relu),
    ACT(weft_softplus),
    ACT(power),
    ACT(weft_sin),
    ACT(weft_cos),
    ACT(weft_expm1),
    ACT(weft_log1p),
    ACT(weft_floor),
    {"element ops", numbers, {1 << 17}, NULL, WEFT_F32},
    {"element ops", normal_numbers, {1 << 17}, NULL, WEFT_F32},
    {NULL}};

/* ---- products -------------------------------------------------------------------------------------- */

static void dims_of(const weft_subject *s, weft_dim dims[3])
{
    dims[0] = (weft_dim){"m", s->size[0]};
    dims[1] = (weft_dim){"k", s->size[1]};
    dims[2] = (weft_dim){"n", s->size[2]};
}

static weft_value product(weft_graph *graph, const weft_subject *s)
{
    weft_dim d[3];
    dims_of(s, d);
    return weft_einsum(WEFT_DIMS(d[0], d[2]), input(graph, s, "x", WEFT_DIMS(d[0], d[1])),
                       input(graph, s, "y", WEFT_DIMS(d[1], d[2])));
}

/* As a gradient by a weight has it, and one by what was multiplied with it. */
static weft_value product_by_rows(weft_graph *graph, const weft_subject *s)
{
    weft_dim d[3];
    dims_of(s, d);
    return weft_einsum(WEFT_DIMS(d[0], d[2]), input(graph, s, "x", WEFT_DIMS(d[1], d[0])),
                       input(graph, s, "y", WEFT_DIMS(d[1], d[2])));
}

static weft_value product_by_columns(weft_graph *graph, const weft_subject *s)
{
    weft_dim d[3];
    dims_of(s, d);
    return weft_einsum(WEFT_DIMS(d[0], d[2]), input(graph, s, "x", WEFT_DIMS(d[0], d[1])),
                       input(graph, s, "y", WEFT_DIMS(d[2], d[1])));
}

#define PRODUCT(m, k, n)                                                                           \
    {                                                                                              \
        "products", product, {m, k, n}, NULL, WEFT_F32                                             \
    }
#define PRODUCT_ROWS(m, k, n)                                                                      \
    {                                                                                              \
        "products", product_by_rows, {m, k, n}, NULL, WEFT_F32                                     \
    }
#define PRODUCT_COLUMNS(m, k, n)                                                                   \
    {                                                                                              \
        "products", product_by_columns, {m, k, n}, NULL, WEFT_F32                                  \
    }
#define PRODUCT_WIDE(m, k, n)                                                                      \
    {                                                                                              \
        "products", product, {m, k, n}, NULL, WEFT_F64                                             \
    }
const weft_subject weft_calibrate_products[] = {PRODUCT(512, 512, 512),
                                                PRODUCT(64, 64, 64),
                                                PRODUCT(16, 16, 16),
                                                PRODUCT(1024, 1024, 1024),
                                                PRODUCT(256, 256, 256),
                                                PRODUCT(128, 128, 128),
                                                PRODUCT(256, 768, 3072),
                                                PRODUCT(1, 768, 768),
                                                PRODUCT(1024, 128, 512),
                                                PRODUCT_ROWS(768, 256, 3072),
                                                PRODUCT_COLUMNS(256, 3072, 768),
                                                PRODUCT_ROWS(128, 1024, 512),
                                                PRODUCT_COLUMNS(1024, 512, 128),
                                                PRODUCT(1, 4096, 4096),
                                                PRODUCT(64, 784, 128),
                                                PRODUCT(64, 128, 10),
                                                PRODUCT(32, 32, 32),
                                                PRODUCT(2048, 64, 64),
                                                PRODUCT_WIDE(512, 512, 512),
                                                PRODUCT_WIDE(64, 64, 64),
                                                PRODUCT_WIDE(256, 256, 256),
                                                PRODUCT(64, 2048, 64),
                                                PRODUCT(64, 64, 2048),
                                                PRODUCT_ROWS(64, 2048, 64),
                                                PRODUCT(512, 128, 128),
                                                PRODUCT_ROWS(128, 512, 128),
                                                PRODUCT_COLUMNS(512, 128, 128),
                                                {NULL}};

/* ---- what nets are made of ---------------------------------------------------------------------------- */

/* All gradients of the sum of the squares of y, so that they are computed. */
static weft_value with_gradients(weft_value y, weft_values x)
{
    weft_value grads[4];
    (void)weft_gradients(weft_sum(WEFT_SCALAR, weft_square(y)), x, grads, 0);
    return weft_group(y.graph, (weft_values){grads, x.n_values});
}

static weft_value attention(weft_graph *graph, const weft_subject *s)
{
    const weft_dim batch = {"batch", s->size[0]}, heads = {"heads", s->size[1]},
                   row = {"row", s->size[2]}, feature = {"feature", s->size[3]};
    const weft_shape shape = WEFT_DIMS(batch, row, heads, feature);
    const weft_value q = input(graph, s, "q", shape), k = input(graph, s, "k", shape),
                     v = input(graph, s, "v", shape);
    return with_gradients(weft_attention(q, k, v, row, row, feature, true), WEFT_VALUES(q, k, v));
}

static weft_value convolution(weft_graph *graph, const weft_subject *s)
{
    const weft_dim batch = {"batch", s->size[0]}, in = {"in", s->size[1]},
                   out = {"out", s->size[2]}, row = {"row", s->size[3]},
                   column = {"column", s->size[3]}, a = {"a", 3}, b = {"b", 3}, two = {"two", 2};
    const weft_spatial rows = weft_spatial_same(row, a, "row", 1, 1),
                       columns = weft_spatial_same(column, b, "column", 1, 1);
    const weft_value x = input(graph, s, "x", WEFT_DIMS(batch, row, column, in)),
                     w = input(graph, s, "w", WEFT_DIMS(a, b, in, out));
    const weft_value y =
        weft_conv(WEFT_DIMS(batch, rows.out, columns.out, out), x, w, WEFT_SPATIAL(rows, columns));
    const weft_spatial fewer[] = {weft_spatial_valid(rows.out, two, "row", 2, 1),
                                  weft_spatial_valid(columns.out, two, "column", 2, 1)};
    return with_gradients(weft_max_pool(weft_relu(y), (weft_spatials){fewer, 2}),
                          WEFT_VALUES(x, w));
}

/* A layer that goes along its rows trip by trip, with what its scans copy. */
static weft_value recurrent(weft_graph *graph, const weft_subject *s)
{
    const weft_dim batch = {"batch", s->size[0]}, in = {"in", s->size[1]},
                   hidden = {"hidden", s->size[1]}, time = {"time", s->size[2]};
    const weft_value x = input(graph, s, "x", WEFT_DIMS(time, batch, in));
    const weft_recurrent_options options = {
        .name = "cell", .over = time, .feature = in, .hidden = hidden};
    const weft_value loss = weft_mean(weft_square(weft_lstm(x, &options, NULL)));
    return weft_adamw(loss, &(weft_optimizer_options){.rate = 1e-3});
}

/* Rows of a table by number, normalized; and a training of two layers on them. */
static weft_value training(weft_graph *graph, const weft_subject *s)
{
    const weft_dim batch = {"batch", s->size[0]}, in = {"in", s->size[1]},
                   hidden = {"hidden", s->size[2]}, word = {"word", s->size[3]};
    const weft_value ids = weft_input(graph, "ids", WEFT_I32, WEFT_DIMS(batch));
    const weft_initial small = weft_normal(0, 0.02);
    const weft_value table = weft_variable(graph, "table", s->dtype, WEFT_DIMS(word, in), small),
                     w1 = weft_variable(graph, "w1", s->dtype, WEFT_DIMS(in, hidden), small),
                     w2 = weft_variable(graph, "w2", s->dtype, WEFT_DIMS(hidden, word), small),
                     gain =
                         weft_variable(graph, "gain", s->dtype, WEFT_DIMS(in), weft_constant_of(1)),
                     bias =
                         weft_variable(graph, "bias", s->dtype, WEFT_DIMS(in), weft_constant_of(0));
    const weft_value x = weft_layer_norm(weft_gather(table, ids, word), gain, bias, in);
    const weft_value h = weft_gelu(weft_einsum(WEFT_DIMS(batch, hidden), x, w1));
    const weft_value logits = weft_einsum(WEFT_DIMS(batch, word), h, w2);
    const weft_value loss = weft_mean(weft_cross_entropy(logits, ids, word));
    return weft_adamw(loss, &(weft_optimizer_options){.rate = 1e-3});
}

#define ATTENTION(batch, heads, rows, feature)                                                     \
    {                                                                                              \
        "attention", attention, {batch, heads, rows, feature}, NULL, WEFT_F32                      \
    }
#define CONVOLUTION(batch, in, out, size)                                                          \
    {                                                                                              \
        "convolutions", convolution, {batch, in, out, size}, NULL, WEFT_F32                        \
    }
#define RECURRENT(batch, width, time)                                                              \
    {                                                                                              \
        "a recurrent layer", recurrent, {batch, width, time}, NULL, WEFT_F32                       \
    }
#define TRAINING(batch, in, hidden, words)                                                         \
    {                                                                                              \
        "a training", training, {batch, in, hidden, words}, NULL, WEFT_F32                         \
    }
const weft_subject weft_calibrate_others[] = {
    TRAINING(256, 128, 512, 256),  ATTENTION(4, 4, 64, 32),
    CONVOLUTION(16, 16, 32, 14),   RECURRENT(32, 128, 32),
    TRAINING(512, 512, 2048, 256), ATTENTION(2, 12, 256, 64),
    CONVOLUTION(64, 1, 16, 28),    RECURRENT(16, 256, 32),
    ATTENTION(16, 4, 32, 16),      {NULL}};
