/* resnet: a step of ResNet-18 as it is for images of 32 x 32: a filter of 3 x 3, four stages of two blocks, the mean of all places, a
 * dense layer. Norms go by what the batch has; no averages are kept. AdamW; activations in f32 or bf16.
 *
 * Sizes: batch.
 * source  He et al. 2016, "Deep residual learning for image recognition", with the first layer of its nets for CIFAR-10
 */
#include <math.h>
#include <stdio.h>

#include "rows.h"

enum { STAGES = 4, BLOCKS = 2, NARROWEST = 64, SIDE = 32 };

typedef struct filter {
    const char *of, *part; /* its name: of/part */
    weft_dim channel, features;
    int64_t taps, stride;
} filter;

/* As many zeros before as behind. */
static weft_spatial space(weft_value x, const char *name, const char *tap, const filter *f)
{
    const weft_dim in = weft_dim_of(x, name);
    const int64_t before = (f->taps - 1) / 2;
    return (weft_spatial){.in = in,
                          .tap = {tap, f->taps},
                          .out = {name, (in.size + 2 * before - f->taps) / f->stride + 1},
                          .stride = f->stride,
                          .before = before};
}

/* Filtered and normalized. */
static weft_value filtered(bench *b, weft_value x, filter f)
{
    char name[32], norm[64], weight[64];
    snprintf(name, sizeof name, "%s/%s", f.of, f.part);
    snprintf(norm, sizeof norm, "%s/norm", name);
    snprintf(weight, sizeof weight, "%s/weight", name);
    const weft_spatial rows = space(x, "row", "tap_row", &f),
                       columns = space(x, "column", "tap_column", &f);
    x = weft_convolution(x, &(weft_convolution_options){.name = name,
                                                        .spatial = WEFT_SPATIAL(rows, columns),
                                                        .channel = f.channel,
                                                        .features = f.features,
                                                        .lacks_bias = true});
    bench_begins(b, weight, 0.0, sqrt(2.0 / (double)(f.taps * f.taps * f.channel.size)));
    return weft_batch_norm(x, &(weft_batch_norm_options){.name = norm, .channel = f.features},
                           NULL);
}

/* relu(x + two filters of x); where the features change, x is filtered too. */
static weft_value block(bench *b, weft_value x, const char *name, weft_dim from, weft_dim to)
{
    const weft_dim between = {"between", to.size};
    const bool changes = from.size != to.size;
    const int64_t stride = changes ? 2 : 1;
    weft_value y = weft_relu(filtered(b, x, (filter){name, "first", from, between, 3, stride}));
    y = filtered(b, y, (filter){name, "second", between, to, 3, 1});
    if (changes) x = filtered(b, x, (filter){name, "past", from, to, 1, stride});
    return weft_relu(weft_add(x, y));
}

static void build_resnet(bench *b)
{
    static const char *const features[STAGES] = {"features0", "features1", "features2",
                                                 "features3"};
    const weft_dim batch = {"batch", b->row->sizes[0]}, row = {"row", SIDE},
                   column = {"column", SIDE}, color = {"color", 3}, kind = {"kind", 10};
    weft_dim wide = {features[0], NARROWEST};
    weft_value x = weft_cast(bench_input(b, WEFT_DIMS(batch, row, column, color)), b->computes);
    const weft_value label = bench_indices(b, WEFT_DIMS(batch), kind.size);
    x = weft_relu(filtered(b, x, (filter){"stem", "first", color, wide, 3, 1}));
    for (int i = 0; i < STAGES * BLOCKS; i++) {
        char name[16];
        snprintf(name, sizeof name, "block%d", i);
        const weft_dim to = {features[i / BLOCKS], NARROWEST << i / BLOCKS};
        x = block(b, x, name, wide, to);
        wide = to;
    }
    x = weft_mean_over(WEFT_DIMS(batch, wide), x);
    x = weft_dense(
        x, &(weft_dense_options){.name = "last", .in = WEFT_DIMS(wide), .out = WEFT_DIMS(kind)});
    bench_layer(b, "last", 0.05);
    b->values[0] = weft_mean(weft_cross_entropy(weft_cast(x, WEFT_F32), label, kind));
    b->values[1] = weft_adamw(
        b->values[0],
        &(weft_optimizer_options){
            .rate = 3e-4, .beta1 = 0.9, .beta2 = 0.95, .epsilon = 1e-8, .weight_decay = 0.1});
}

const bench_row bench_resnet_rows[] = {{"resnet18", &bench_training, build_resnet, {16}}, {0}};
