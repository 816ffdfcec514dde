/* model: two filters of 5 x 5, each with a pool of 2 x 2 behind, and two dense layers: LeCun et al. 1998 with relu; or the dense
 * layers alone. */
#include "model.h"

#include "weft/layers.h"

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

/* What filters make of images [batch, row, column], or with colours. */
static weft_value seen(weft_value x, weft_dim colour, const mnist_shape *shape)
{
    const weft_dim channel = {"channel", shape->channels},
                   feature = {"feature", 2 * shape->channels};
    x = filtered(x, "conv1", weft_dim_of(x, "row"), weft_dim_of(x, "column"), colour, channel);
    return filtered(x, "conv2", weft_dim_of(x, "row"), weft_dim_of(x, "column"), channel, feature);
}

/* Of numbers from 0 to 1. */
static weft_value looked_at(weft_value image, const mnist_shape *shape)
{
    const weft_dim batch = {"batch", shape->batch}, none = {NULL, 0};
    const weft_dim row = {"row", 28}, column = {"column", 28};
    if (!shape->is_cnn) return image;
    return seen(weft_reshape(image, WEFT_DIMS(batch, row, column)), none, shape);
}

/* Of bytes, with their own sizes. */
static weft_value looked_at_bytes(weft_value image, const mnist_shape *shape)
{
    const weft_dim batch = {"batch", shape->batch}, colour = {"colour", shape->colours};
    const weft_dim pixel = {"pixel", shape->rows * shape->columns * shape->colours};
    const weft_value x = weft_scale(image, 1.0 / 255);
    if (!shape->is_cnn) return weft_reshape(x, WEFT_DIMS(batch, pixel));
    return seen(weft_rename(x, weft_dim_of(x, "channel"), colour), colour, shape);
}

static weft_value image_of(weft_graph *graph, const mnist_shape *shape)
{
    const weft_dim batch = {"batch", shape->batch}, pixel = {"pixel", 784};
    const weft_dim row = {"row", shape->rows}, column = {"column", shape->columns};
    const weft_dim channel = {"channel", shape->colours};
    return shape->rows > 0
               ? weft_input(graph, "image", shape->dtype, WEFT_DIMS(batch, row, column, channel))
               : weft_input(graph, "image", shape->dtype, WEFT_DIMS(batch, pixel));
}

mnist_model mnist_build(weft_graph *graph, const mnist_shape *shape)
{
    mnist_model m;
    const weft_dim batch = {"batch", shape->batch}, hidden = {"hidden", shape->hidden};
    const weft_dim digit = {"digit", shape->classes};
    m.image = image_of(graph, shape);
    m.label = weft_input(graph, "label", WEFT_I32, WEFT_DIMS(batch));
    const weft_value x =
        shape->rows > 0 ? looked_at_bytes(m.image, shape) : looked_at(m.image, shape);
    weft_dense_options first = {.name = "first",
                                .out = WEFT_DIMS(hidden),
                                .activation = "relu",
                                .initializer = "he_normal"};
    if (shape->is_cnn)
        first.in =
            WEFT_DIMS(weft_dim_of(x, "row"), weft_dim_of(x, "column"), weft_dim_of(x, "feature"));
    else
        first.in = WEFT_DIMS(weft_dim_of(x, "pixel"));
    weft_value h = weft_dense(x, &first);
    if (shape->dropout > 0) h = weft_dropout(h, shape->dropout);
    const weft_value logits = weft_dense(
        h, &(weft_dense_options){.name = "last", .in = WEFT_DIMS(hidden), .out = WEFT_DIMS(digit)});
    m.loss = weft_mean(weft_cross_entropy(logits, m.label, digit));
    const weft_value is_right = weft_equal(weft_argmax(logits, digit), m.label);
    m.right = weft_sum(WEFT_SCALAR, weft_cast(is_right, shape->dtype));
    return m;
}
