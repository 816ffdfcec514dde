/* dnn.h: NVIDIA's cuDNN, which is loaded where it is first asked for and never linked, by its backend API: a graph of operations on
 * tensors becomes a plan, which is one or a few kernels.
 *
 *     dnn_graph g = {.handle = cuda_dnn_handle(gpu)};
 *     dnn_tensor x = cuda_dnn_tensor(&g, X, CUDNN_DATA_BFLOAT16, &shape), y = ...;
 *     cuda_dnn_product(&g, x, y, z);
 *     dnn_plan plan = cuda_dnn_plan(&g, NULL);                 plan.is_there: an engine does it
 *
 * The first failure stays in the graph, and every call after it does nothing. Descriptors live as long as the process.
 */
#ifndef WEFT_CUDA_DNN_H
#define WEFT_CUDA_DNN_H

#include <cudnn.h>
#include <stdbool.h>
#include <stdint.h>

#include "mesh/cuda/library.h"
#include "mesh/cuda/parts.h"

#define DNN_CALLS(CALL)                                                                            \
    CALL(cudnnCreate)                                                                              \
    CALL(cudnnSetStream)                                                                           \
    CALL(cudnnGetVersion)                                                                          \
    CALL(cudnnGetErrorString)                                                                      \
    CALL(cudnnGetLastErrorString)                                                                  \
    CALL(cudnnBackendCreateDescriptor)                                                             \
    CALL(cudnnBackendDestroyDescriptor)                                                            \
    CALL(cudnnBackendSetAttribute)                                                                 \
    CALL(cudnnBackendGetAttribute)                                                                 \
    CALL(cudnnBackendFinalize)                                                                     \
    CALL(cudnnBackendExecute)
#define DNN_MEMBER(name) __typeof__(name) *name;
typedef struct dnn_library {
    DNN_CALLS(DNN_MEMBER)
} dnn_library;
extern dnn_library dnn;

/* cuda_dnn_load - the library alone. cuda_dnn_handle - its handle for a GPU, whose context the thread has; it and plans made with it
 * are that GPU's. false, NULL: it cannot be loaded, or not begin. Each does it once in the process; any thread. */
bool cuda_dnn_load(void);
/* What is told of it. */
cuda_library_fact cuda_dnn_look(void);
cudnnHandle_t cuda_dnn_handle(const cuda_gpu *gpu);

/* ---- graphs ---------------------------------------------------------------------------------- */

typedef cudnnBackendDescriptor_t dnn_tensor;

enum { DNN_DIMS = 4, DNN_DESCRIPTORS = 240, DNN_OPERATIONS = 32 };
/* Strides in elements. */
typedef struct dnn_shape {
    int64_t size[DNN_DIMS], stride[DNN_DIMS];
} dnn_shape;

typedef struct dnn_graph {
    cudnnHandle_t handle; /* NULL: there is none, and plans are for a GPU that is described */
    /* engines with any of these notes, by number, of cudnnBackendNumericalNote_t */
    uint32_t refused;
    cudnnBackendDescriptor_t made[DNN_DESCRIPTORS], operation[DNN_OPERATIONS];
    int n_made, n_operations;
    int64_t n_between; /* tensors that are never in memory */
    bool has_failed;
    char why[300];
} dnn_graph;

/* A tensor in memory, known by its id, from 1 to 99; a number that is handed over as a float on the host; one that is never in
 * memory. */
dnn_tensor cuda_dnn_tensor(dnn_graph *g, int64_t id, cudnnDataType_t type, const dnn_shape *shape);
dnn_tensor cuda_dnn_number(dnn_graph *g, int64_t id);
dnn_tensor cuda_dnn_between(dnn_graph *g, cudnnDataType_t type, const dnn_shape *shape);

/* to = f(x), f(x, y) or f(x, y, z), in f32; y, z: NULL where there is none. Returns `to`. */
typedef struct dnn_pointwise {
    cudnnPointwiseMode_t mode;
    int64_t axis;           /* GEN_INDEX's */
    bool gives_truth;       /* of comparisons */
    dnn_tensor x, y, truth; /* what BINARY_SELECT goes by */
} dnn_pointwise;
dnn_tensor cuda_dnn_pointwise(dnn_graph *g, const dnn_pointwise *f, dnn_tensor to);
/* to = x y, matrices of the last two dims, added up in f32. to = x reduced along dims of which `to` has one. to = x with other
 * strides. Each returns `to`. */
dnn_tensor cuda_dnn_product(dnn_graph *g, dnn_tensor x, dnn_tensor y, dnn_tensor to);
dnn_tensor cuda_dnn_reduce(dnn_graph *g, cudnnReduceTensorOp_t by, dnn_tensor x, dnn_tensor to);
dnn_tensor cuda_dnn_reshape(dnn_graph *g, dnn_tensor x, dnn_tensor to);

/* What of x, w and y is made is what `type` says; added up in f32. Along each dim of space x's element is stride y's + dilation w's
 * - before; behind x are `after` zeros more. */
typedef struct dnn_convolution {
    cudnnBackendDescriptorType_t type;
    dnn_tensor x, w, y;
    int64_t n_space;
    const int64_t *stride, *dilation, *before, *after;
} dnn_convolution;
void cuda_dnn_convolve(dnn_graph *g, const dnn_convolution *c);

/* ---- plans ----------------------------------------------------------------------------------- */

typedef struct dnn_plan {
    bool is_there;
    cudnnBackendDescriptor_t plan;
    int64_t workspace; /* bytes */
    cudnnHandle_t handle;
} dnn_plan;

/* cuda_dnn_plan - by the first engine of the library's choice that can.
 *
 * device  NULL: the handle's GPU; else one that is described, as JSON, and need not be there
 */
dnn_plan cuda_dnn_plan(dnn_graph *g, const char *device);
/* cuda_dnn_forget - a graph of which no plan came. */
void cuda_dnn_forget(dnn_graph *g);

/* cuda_dnn_find - the plan of a graph that is made of so many bytes, for a GPU whose context the thread has: made once in the process;
 * NULL: no engine does it, or cuDNN is not there. Any thread; takes up to a second the first time. */
typedef void (*dnn_build)(dnn_graph *g, const void *problem);
const dnn_plan *cuda_dnn_find(const cuda_gpu *gpu, dnn_build build, const void *problem,
                              size_t bytes);

/* ---- running ----------------------------------------------------------------------------------- */

/* Where tensors are, by their ids, and numbers, which are the host's. */
enum { DNN_POINTERS = 24 };
typedef struct dnn_pointers {
    int n;
    int64_t id[DNN_POINTERS];
    void *at[DNN_POINTERS], *workspace;
} dnn_pointers;

/* A GPU that does not do what the first does: a sentence of both. */
weft_status cuda_dnn_fail_unlike(const cuda_gpu *gpu, weft_error *error);
/* cuda_dnn_tell - them as the library takes them; cudnnBackendDestroyDescriptor gives it back; NULL where it fails. cuda_dnn_run - put onto the stream's
 * queue of kernels; `what` is named where it fails. */
weft_status cuda_dnn_tell(const dnn_pointers *pointers, cudnnBackendDescriptor_t *to,
                          weft_error *error);
void cuda_dnn_run(weft_stream *stream, const dnn_plan *plan, cudnnBackendDescriptor_t pointers,
                  const char *what);

#endif
