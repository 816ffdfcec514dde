/* conv_graph.h: a convolution, and what its gradients are, as cuDNN's graphs (dnn.h). */
#ifndef WEFT_CUDA_CONV_GRAPH_H
#define WEFT_CUDA_CONV_GRAPH_H

#include "dnn.h"
#include "kernel.h"

/* What is made of the other two: y, x of y and the filter, the filter of x and y. */
typedef enum conv_kind { CONV_FORWARD, CONV_TO_DATA, CONV_TO_FILTER, CONV_KINDS } conv_kind;

/* Tensors by what the library has them as, [batch, channel, row, column] of x and y, [of y, of x, row, column] of the filter; their ids
 * are one more. */
enum { CONV_X, CONV_W, CONV_Y, CONV_TENSORS };
enum { CONV_SPACE = 2 };

/* No gaps: plans are found again by these bytes. x's element is stride y's + dilation w's - before. */
typedef struct conv_problem {
    int64_t kind, is_bf16,
        precision; /* is_bf16: of what is in memory, else f32; a weft_precision */
    dnn_shape shape[CONV_TENSORS];
    int64_t stride[CONV_SPACE], dilation[CONV_SPACE], before[CONV_SPACE], after[CONV_SPACE];
} conv_problem;

/* cuda_conv_build - the graph of a conv_problem. */
void cuda_conv_build(dnn_graph *g, const void *problem);

/* cuda_conv_find - what a call is to the library; false: no such thing.
 *
 * plays  for each of the library's tensors, which of the call it is: 0, 1: operands, 2: the result
 */
bool cuda_conv_find(const weft_call *call, conv_problem *problem, int plays[CONV_TENSORS]);

#endif
