/* cudnn: a libcudnn.so of the emulated driver: the functions that Weft calls. A graph is kept as it is described, and
 * done operation by operation, some time, on the stream: tensors lie as their strides say, in memory or in between,
 * and are rounded to their types. Its workspace is full of ones afterwards.
 *
 * The environment: TEST_CUDNN_FAULT: what of a description is misread: "stride", "scale", "mask", "padding", for tests of what comparing finds.
 */
#include "cudnn_parts.h"

/* ---- descriptors ----------------------------------------------------------------------------- */

/* Enumerators where nothing is said. */
static size_t bytes_of(cudnnBackendAttributeType_t type)
{
    static const size_t bytes[] = {[CUDNN_TYPE_BOOLEAN] = sizeof(bool),
                                   [CUDNN_TYPE_CHAR] = 1,
                                   [CUDNN_TYPE_INT64] = sizeof(int64_t),
                                   [CUDNN_TYPE_HANDLE] = sizeof(void *),
                                   [CUDNN_TYPE_DOUBLE] = sizeof(double),
                                   [CUDNN_TYPE_VOID_PTR] = sizeof(void *),
                                   [CUDNN_TYPE_BACKEND_DESCRIPTOR] = sizeof(void *)};
    const size_t n = sizeof bytes / sizeof *bytes;
    return (size_t)type < n && bytes[type] > 0 ? bytes[type] : sizeof(int);
}

EXPORT cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                                  cudnnBackendDescriptor_t *to)
{
    descriptor *d = calloc(1, sizeof *d);
    *to = d;
    if (d == NULL) return CUDNN_STATUS_ALLOC_FAILED;
    d->type = type;
    return CUDNN_STATUS_SUCCESS;
}

EXPORT cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t of)
{
    descriptor *d = of;
    for (int i = 0; i < d->n_attributes; i++)
        free(d->attributes[i].value);
    free(d);
    return CUDNN_STATUS_SUCCESS;
}

EXPORT cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t of,
                                              cudnnBackendAttributeName_t name,
                                              cudnnBackendAttributeType_t type, int64_t n,
                                              const void *value)
{
    descriptor *d = of;
    if (d->n_attributes == MOST_ATTRIBUTES || n < 1) return CUDNN_STATUS_BAD_PARAM;
    attribute *a = &d->attributes[d->n_attributes++];
    *a = (attribute){name, n, calloc((size_t)n, bytes_of(type))};
    if (a->value == NULL) return CUDNN_STATUS_ALLOC_FAILED;
    memcpy(a->value, value, (size_t)n * bytes_of(type));
    if (name == CUDNN_ATTR_TENSOR_STRIDES && has_fault("stride") && n == DIMS) {
        int64_t *stride = a->value, first = stride[1];
        stride[1] = stride[2], stride[2] = first;
    }
    return CUDNN_STATUS_SUCCESS;
}

/* Not the library's: a choice that computes with tf32, as its engine says. */
enum { ON_TENSOR_CORES = -1 };

static bool is_convolution(const descriptor *graph)
{
    const descriptor *first =
        *(const descriptor *const *)find(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS)->value;
    return find(first, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X) != NULL ||
           find(first, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W) != NULL ||
           find(first, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X) != NULL;
}

/* Convolutions are done in two ways, of which that on tensor cores comes first. */
static cudnnStatus_t choose(const descriptor *chooser, int64_t most, int64_t *n,
                            cudnnBackendDescriptor_t *to)
{
    const descriptor *graph = descriptor_of(chooser, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
    const bool is_marked = true;
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
    *n = is_convolution(graph) && most > 1 ? 2 : 1;
    for (int64_t i = 0; i < *n && status == CUDNN_STATUS_SUCCESS; i++) {
        status = cudnnBackendSetAttribute(to[i], CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH,
                                          CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph);
        if (i + 1 < *n)
            (void)cudnnBackendSetAttribute(to[i], (cudnnBackendAttributeName_t)ON_TENSOR_CORES,
                                           CUDNN_TYPE_BOOLEAN, 1, &is_marked);
    }
    return status;
}

static cudnnStatus_t tell_engine(const descriptor *choice, cudnnBackendDescriptor_t engine)
{
    const bool is_marked = is_true(choice, ON_TENSOR_CORES);
    return cudnnBackendSetAttribute(engine, (cudnnBackendAttributeName_t)ON_TENSOR_CORES,
                                    CUDNN_TYPE_BOOLEAN, 1, &is_marked);
}

/* A choice is the graph itself, and so is a plan. */
EXPORT cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t of,
                                              cudnnBackendAttributeName_t name,
                                              cudnnBackendAttributeType_t type, int64_t most,
                                              int64_t *n, void *to)
{
    (void)type;
    if (most < 1) return CUDNN_STATUS_BAD_PARAM;
    *n = 1;
    if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS) return choose(of, most, n, to);
    if (name == CUDNN_ATTR_ENGINECFG_ENGINE)
        return tell_engine(of, *(cudnnBackendDescriptor_t *)to);
    if (name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE) {
        *n = is_true(of, ON_TENSOR_CORES);
        if (*n > 0) *(int *)to = CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
        return CUDNN_STATUS_SUCCESS;
    }
    if (name != CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE) return CUDNN_STATUS_NOT_SUPPORTED;
    *(int64_t *)to = WORKSPACE;
    return CUDNN_STATUS_SUCCESS;
}

EXPORT cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t of)
{
    return of != NULL ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

EXPORT size_t cudnnGetVersion(void)
{
    return (size_t)emulated_number("TEST_CUDNN_VERSION", CUDNN_VERSION);
}

EXPORT const char *cudnnGetErrorString(cudnnStatus_t status)
{
    return status == CUDNN_STATUS_SUCCESS ? "CUDNN_STATUS_SUCCESS"
                                          : "CUDNN_STATUS_EXECUTION_FAILED";
}

EXPORT void cudnnGetLastErrorString(char *to, size_t room)
{
    if (room > 0) to[0] = '\0';
}

/* ---- running --------------------------------------------------------------------------------- */

struct cudnnContext {
    cudaStream_t stream;
    int device; /* of the context in which it was made */
};

static void check_handle(cudnnHandle_t handle)
{
    if (handle->device != emulated_device())
        emulated_die("a handle of cuDNN is used in the context of another GPU");
}

EXPORT cudnnStatus_t cudnnCreate(cudnnHandle_t *handle)
{
    CUcontext context = NULL;
    emulated_refuse_capture("cudnnCreate");
    if (cuCtxGetCurrent(&context) != CUDA_SUCCESS || context == NULL)
        return CUDNN_STATUS_NOT_INITIALIZED;
    *handle = calloc(1, sizeof **handle);
    if (*handle == NULL) return CUDNN_STATUS_ALLOC_FAILED;
    (*handle)->device = emulated_device();
    return CUDNN_STATUS_SUCCESS;
}

EXPORT cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
    check_handle(handle);
    handle->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}

/* Numbers are known by their addresses: no GPU has those of the host. Under the lock no GPU is at work, whose memory alone it may be. */
static void take_numbers(graph_work *work)
{
    pthread_mutex_lock(&emulated_lock);
    for (int i = 0; i < work->n; i++)
        if (GLOBAL(work->at[i]) == work->at[i])
            work->number[i] = has_fault("scale") ? 1 : *(const float *)work->at[i];
    pthread_mutex_unlock(&emulated_lock);
}

EXPORT cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                         cudnnBackendDescriptor_t pointers)
{
    const descriptor *choice = descriptor_of(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    const attribute *ids = find(pointers, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS),
                    *at = find(pointers, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
    graph_work work = {.graph = descriptor_of(choice, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH),
                       .is_rounded = is_true(choice, ON_TENSOR_CORES),
                       .n = (int)ids->n};
    check_handle(handle);
    if (*(cudnnHandle_t *)find(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE)->value != handle)
        emulated_die("a plan of cuDNN is done by another handle");
    if (ids->n != at->n || ids->n > MOST_POINTERS) return CUDNN_STATUS_BAD_PARAM;
    memcpy(work.id, ids->value, (size_t)ids->n * sizeof *work.id);
    memcpy(work.at, at->value, (size_t)ids->n * sizeof *work.at);
    work.space = *(void **)find(pointers, CUDNN_ATTR_VARIANT_PACK_WORKSPACE)->value;
    take_numbers(&work);
    void *arguments[] = {&work};
    CUkernel kernel = NULL;
    CUresult result = cuLibraryGetKernel(&kernel, NULL, "emulated_graph");
    if (result == CUDA_SUCCESS)
        result = cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 1, 1, 1, 0, (CUstream)handle->stream,
                                arguments, NULL);
    return result == CUDA_SUCCESS ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED;
}
