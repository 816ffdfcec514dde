/* model.h: nets that tell digits apart: a perceptron and a convolutional one, out of layers. */
#ifndef WEFT_APPS_MNIST_MODEL_H
#define WEFT_APPS_MNIST_MODEL_H

#include "weft/ops.h"

typedef struct mnist_shape {
    bool is_cnn;
    int64_t batch, channels,
        hidden;     /* channels: of the first filters; those behind make twice as many */
    double dropout; /* of the hidden layer; 0: none */
    weft_dtype dtype;
    int64_t classes; /* labels are 0 to classes - 1 */
    /* images of bytes with these sizes; rows 0: of 784 numbers from 0 to 1, 28 x 28 */
    int64_t rows, columns, colours;
} mnist_shape;

typedef struct mnist_model {
    weft_value image,
        label;        /* inputs: [batch, pixel:784] or [batch, row, column, channel], i32 [batch] */
    weft_value loss;  /* mean cross-entropy */
    weft_value right; /* how many labels have the highest score, a scalar */
} mnist_model;

/* mnist_build - the model in a graph; errors stay there. Local. Dims: batch pixel hidden digit, of the convolutional net row column
 * channel feature too. */
mnist_model mnist_build(weft_graph *graph, const mnist_shape *shape);

#endif
