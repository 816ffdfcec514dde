/* dnn.h: NVIDIA's cuDNN, which is loaded where it is first asked for and never linked, by its backend API: a graph of operations on
 * tensors becomes a plan, which is one or a few kernels.
 *
 *     dnn_graph g = {0};
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
    cudnnHandle_t
        handle; /* of the GPU; NULL: there is none, and plans are for one that is described */
} dnn_library;
extern dnn_library dnn;

/* cuda_dnn_load - the library alone. cuda_dnn_open - and its handle, for the GPU of the calling thread's context. false: it cannot be
 * loaded, or not begin. Each does it once in the process; any thread. */
bool cuda_dnn_load(void);
bool cuda_dnn_open(void);

/* ---- graphs ---------------------------------------------------------------------------------- */

typedef cudnnBackendDescriptor_t dnn_tensor;

enum { DNN_DIMS = 4, DNN_DESCRIPTORS = 160, DNN_OPERATIONS = 32 };
/* Strides in elements. */
typedef struct dnn_shape {
    int64_t size[DNN_DIMS], stride[DNN_DIMS];
} dnn_shape;

typedef struct dnn_graph {
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

/* ---- plans ----------------------------------------------------------------------------------- */

typedef struct dnn_plan {
    bool is_there;
    cudnnBackendDescriptor_t plan;
    int64_t workspace; /* bytes */
} dnn_plan;

/* cuda_dnn_plan - by the first engine of the library's choice that can.
 *
 * device  NULL: the handle's GPU; else one that is described, as JSON, and need not be there
 */
dnn_plan cuda_dnn_plan(dnn_graph *g, const char *device);
/* cuda_dnn_forget - a graph of which no plan came. */
void cuda_dnn_forget(dnn_graph *g);

#endif
