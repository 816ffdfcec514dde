/* nets: a step of small trainings, from layers: a perceptron, a convolutional net, a language model on an LSTM. AdamW; activations in f32 or bf16.
 *
 * Sizes: of the perceptron batch, pixels, hidden; of the convolutional net batch, channels, hidden; of the language model batch,
 * steps, letters, embedding, hidden.
 */
#include <math.h>

#include "rows.h"

static void train(bench *b, weft_value logits, weft_value label, weft_dim classes)
{
    b->values[0] = weft_mean(weft_cross_entropy(weft_cast(logits, WEFT_F32), label, classes));
    b->values[1] = weft_adamw(
        b->values[0],
        &(weft_optimizer_options){
            .rate = 3e-4, .beta1 = 0.9, .beta2 = 0.95, .epsilon = 1e-8, .weight_decay = 0.1});
}

static weft_value dense(weft_value x, const char *name, weft_shape in, weft_dim out,
                        const char *activation)
{
    return weft_dense(x,
                      &(weft_dense_options){
                          .name = name, .in = in, .out = WEFT_DIMS(out), .activation = activation});
}

static void build_mlp(bench *b)
{
    const int64_t *n = b->row->sizes;
    const weft_dim batch = {"batch", n[0]}, pixel = {"pixel", n[1]}, hidden = {"hidden", n[2]},
                   wide = {"wide", n[2]}, digit = {"digit", 10};
    weft_value x = weft_cast(bench_input(b, WEFT_DIMS(batch, pixel)), b->computes);
    weft_value label = bench_indices(b, WEFT_DIMS(batch), 10);
    x = dense(x, "first", WEFT_DIMS(pixel), hidden, "relu");
    x = dense(x, "second", WEFT_DIMS(hidden), wide, "relu");
    train(b, dense(x, "last", WEFT_DIMS(wide), digit, NULL), label, digit);
    bench_layer(b, "first", 0.05);
    bench_layer(b, "second", 0.05);
    bench_layer(b, "last", 0.05);
}

/* A filter of 3 x 3, relu, and the largest of 2 x 2. */
static weft_value filtered(weft_value x, const char *name, weft_dim channel, weft_dim features)
{
    const weft_dim taps[] = {{"tap_row", 3}, {"tap_column", 3}}, pool = {"pool", 2};
    const weft_spatial rows = weft_spatial_same(weft_dim_of(x, "row"), taps[0], "row", 1, 1),
                       columns =
                           weft_spatial_same(weft_dim_of(x, "column"), taps[1], "column", 1, 1);
    const weft_value y =
        weft_convolution(x, &(weft_convolution_options){.name = name,
                                                        .spatial = WEFT_SPATIAL(rows, columns),
                                                        .channel = channel,
                                                        .features = features,
                                                        .activation = "relu"});
    return weft_max_pool(y, WEFT_SPATIAL(weft_spatial_valid(rows.out, pool, "row", 2, 1),
                                         weft_spatial_valid(columns.out, pool, "column", 2, 1)));
}

static void build_cnn(bench *b)
{
    const int64_t *n = b->row->sizes;
    const weft_dim batch = {"batch", n[0]}, row = {"row", 28}, column = {"column", 28};
    const weft_dim color = {"color", 1}, channel = {"channel", n[1]},
                   feature = {"feature", 2 * n[1]};
    const weft_dim hidden = {"hidden", n[2]}, digit = {"digit", 10};
    weft_value x = weft_cast(bench_input(b, WEFT_DIMS(batch, row, column, color)), b->computes);
    weft_value label = bench_indices(b, WEFT_DIMS(batch), 10);
    x = filtered(filtered(x, "conv1", color, channel), "conv2", channel, feature);
    x = dense(x, "first",
              WEFT_DIMS(weft_dim_of(x, "row"), weft_dim_of(x, "column"), weft_dim_of(x, "feature")),
              hidden, "relu");
    train(b, dense(x, "last", WEFT_DIMS(hidden), digit, NULL), label, digit);
    bench_layer(b, "conv1", 0.1);
    bench_layer(b, "conv2", 0.1);
    bench_layer(b, "first", 0.05);
    bench_layer(b, "last", 0.05);
}

static void build_lstm_lm(bench *b)
{
    const int64_t *n = b->row->sizes;
    const weft_dim batch = {"batch", n[0]}, time = {"time", n[1]}, letter = {"letter", n[2]};
    const weft_dim embed = {"embed", n[3]}, hidden = {"hidden", n[4]};
    const weft_value tokens = bench_indices(b, WEFT_DIMS(time, batch), letter.size);
    const weft_value targets = bench_indices(b, WEFT_DIMS(time, batch), letter.size);
    const weft_value table =
        bench_variable(b, "table", WEFT_DIMS(letter, embed), weft_normal(0.0, 0.1));
    const weft_recurrent_options options = {
        .name = "lstm", .over = time, .feature = embed, .hidden = hidden};
    const weft_value x =
        weft_lstm(weft_cast(weft_gather(table, tokens, letter), b->computes), &options, NULL);
    train(b, dense(x, "last", WEFT_DIMS(hidden), letter, NULL), targets, letter);
    bench_begins(b, "lstm/state", 0.0, 0.05);
    bench_begins(b, "lstm/input", 0.0, 0.05);
    bench_begins(b, "lstm/bias", 0.0, 0.05);
    bench_layer(b, "last", 0.05);
}

const bench_row bench_net_rows[] = {
    {"mlp", &bench_training, build_mlp, {256, 784, 512}},
    {"cnn", &bench_training, build_cnn, {64, 16, 128}},
    {"lstm_lm", &bench_training, build_lstm_lm, {32, 64, 65, 128, 256}},
    {0},
};
