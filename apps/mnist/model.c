/* model: two filters of 5 x 5, each with a pool of 2 x 2 behind, and two dense layers: LeCun et al. 1998 with relu; or the dense
 * layers alone. */
#include "model.h"

#include "weft/layers.h"

static const weft_dim pixel = {"pixel", 784};

static weft_value filtered(weft_value x, const char *name, weft_dim row, weft_dim column,
                           weft_dim channel, weft_dim features)
{
    const weft_dim taps[] = {{"tap_row", 5}, {"tap_column", 5}}, pool = {"pool", 2};
    const weft_spatial rows = weft_spatial_same(row, taps[0], "row", 1, 1),
                       columns = weft_spatial_same(column, taps[1], "column", 1, 1);
    const weft_value y =
        weft_convolution(x, &(weft_convolution_options){.name = name,
                                                        .spatial = WEFT_SPATIAL(rows, columns),
                                                        .channel = channel,
                                                        .features = features,
                                                        .activation = "relu",
                                                        .initializer = "he_normal"});
    return weft_max_pool(y, WEFT_SPATIAL(weft_spatial_valid(rows.out, pool, "row", 2, 1),
                                         weft_spatial_valid(columns.out, pool, "column", 2, 1)));
}

/* What the dense layers read, of images. */
static weft_value seen(weft_value image, const mnist_shape *shape)
{
    const weft_dim batch = {"batch", shape->batch}, row = {"row", 28}, column = {"column", 28};
    const weft_dim channel = {"channel", shape->channels}, none = {NULL, 0};
    const weft_dim feature = {"feature", 2 * shape->channels};
    weft_value x = weft_reshape(image, WEFT_DIMS(batch, row, column));
    x = filtered(x, "conv1", row, column, none, channel);
    return filtered(x, "conv2", weft_dim_of(x, "row"), weft_dim_of(x, "column"), channel, feature);
}

mnist_model mnist_build(weft_graph *graph, const mnist_shape *shape)
{
    mnist_model m;
    const weft_dim batch = {"batch", shape->batch}, hidden = {"hidden", shape->hidden};
    const weft_dim digit = {"digit", shape->classes};
    m.image = weft_input(graph, "image", shape->dtype, WEFT_DIMS(batch, pixel));
    m.label = weft_input(graph, "label", WEFT_I32, WEFT_DIMS(batch));
    const weft_value x = shape->is_cnn ? seen(m.image, shape) : m.image;
    weft_dense_options first = {.name = "first",
                                .in = WEFT_DIMS(pixel),
                                .out = WEFT_DIMS(hidden),
                                .activation = "relu",
                                .initializer = "he_normal"};
    if (shape->is_cnn)
        first.in =
            WEFT_DIMS(weft_dim_of(x, "row"), weft_dim_of(x, "column"), weft_dim_of(x, "feature"));
    weft_value h = weft_dense(x, &first);
    if (shape->dropout > 0) h = weft_dropout(h, shape->dropout);
    const weft_value logits = weft_dense(
        h, &(weft_dense_options){.name = "last", .in = WEFT_DIMS(hidden), .out = WEFT_DIMS(digit)});
    m.loss = weft_mean(weft_cross_entropy(logits, m.label, digit));
    const weft_value is_right = weft_equal(weft_argmax(logits, digit), m.label);
    m.right = weft_sum(WEFT_SCALAR, weft_cast(is_right, shape->dtype));
    return m;
}
