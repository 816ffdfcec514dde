/* cudnn: a libcudnn.so of the emulated driver: the functions that Weft calls. A graph is kept as it is described, and done operation by
 * operation, some time, on the stream: tensors lie as their strides say, in memory or in between, and are rounded to their types. What
 * it was told that it may work in is full of ones behind it.
 *
 * The environment: TEST_CUDNN_FAULT: what of a description is misread: "stride", "scale", "mask", for tests of what comparing finds.
 */
#include <cuda.h>
#include <cudnn.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "mesh/cuda/kernel_source.h"
#include "weft/extend/half.h"

#define EXPORT __attribute__((visibility("default")))
enum { DIMS = 4, MOST_ATTRIBUTES = 8, MOST_TENSORS = 64, MOST_POINTERS = 24, WORKSPACE = 256 };

typedef struct attribute {
    int name;
    int64_t n;
    void *value;
} attribute;
typedef struct descriptor {
    cudnnBackendDescriptorType_t type;
    attribute attributes[MOST_ATTRIBUTES];
    int n_attributes;
} descriptor;

static bool has_fault(const char *name)
{
    const char *fault = getenv("TEST_CUDNN_FAULT");
    return fault != NULL && strcmp(fault, name) == 0;
}

/* ---- descriptors ----------------------------------------------------------------------------- */

/* Enumerators where nothing is said. */
static size_t bytes_of(cudnnBackendAttributeType_t type)
{
    static const size_t bytes[] = {
        [CUDNN_TYPE_BOOLEAN] = sizeof(bool),    [CUDNN_TYPE_CHAR] = 1,
        [CUDNN_TYPE_INT64] = sizeof(int64_t),   [CUDNN_TYPE_HANDLE] = sizeof(void *),
        [CUDNN_TYPE_VOID_PTR] = sizeof(void *), [CUDNN_TYPE_BACKEND_DESCRIPTOR] = sizeof(void *)};
    const size_t n = sizeof bytes / sizeof *bytes;
    return (size_t)type < n && bytes[type] > 0 ? bytes[type] : sizeof(int);
}

static const attribute *find(const descriptor *d, int name)
{
    for (int i = 0; i < d->n_attributes; i++)
        if (d->attributes[i].name == name) return &d->attributes[i];
    return NULL;
}

static int64_t number_of(const descriptor *d, int name)
{
    const attribute *a = find(d, name);
    return a != NULL ? *(const int64_t *)a->value : 0;
}

static int enumerator_of(const descriptor *d, int name)
{
    const attribute *a = find(d, name);
    return a != NULL ? *(const int *)a->value : 0;
}

static bool is_true(const descriptor *d, int name)
{
    const attribute *a = find(d, name);
    return a != NULL && *(const bool *)a->value;
}

static const descriptor *descriptor_of(const descriptor *d, int name)
{
    const attribute *a = find(d, name);
    return a != NULL ? *(const descriptor *const *)a->value : NULL;
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

/* A choice is the graph itself, and so is a plan. */
EXPORT cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t of,
                                              cudnnBackendAttributeName_t name,
                                              cudnnBackendAttributeType_t type, int64_t most,
                                              int64_t *n, void *to)
{
    if (most < 1) return CUDNN_STATUS_BAD_PARAM;
    *n = 1;
    if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS) {
        const descriptor *graph = descriptor_of(of, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
        return cudnnBackendSetAttribute(*(cudnnBackendDescriptor_t *)to,
                                        CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, type, 1, &graph);
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
    return CUDNN_VERSION;
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

/* ---- tensors ----------------------------------------------------------------------------------- */

typedef struct tensor {
    const descriptor *of;
    int64_t size[DIMS], stride[DIMS], id, count; /* numbers in memory, gaps too */
    int type;
    bool is_between, is_number;
    float *numbers;
} tensor;

typedef struct graph_work {
    const descriptor *graph;
    int n;
    int64_t id[MOST_POINTERS];
    void *at[MOST_POINTERS];
    float number[MOST_POINTERS]; /* of those that are the host's, as they were */
    void *space;
} graph_work;

typedef struct graph_run {
    const graph_work *work;
    tensor tensors[MOST_TENSORS];
    int n_tensors;
} graph_run;

static void *memory_of(const graph_work *work, int64_t id, float *number)
{
    for (int i = 0; i < work->n; i++)
        if (work->id[i] == id) {
            *number = work->number[i];
            return work->at[i];
        }
    fprintf(stderr, "emulated cuDNN: nobody says where tensor %lld is\n", (long long)id);
    abort();
}

static void read_tensor(const graph_run *run, tensor *t)
{
    float number = 0;
    void *handed = t->is_between ? NULL : memory_of(run->work, t->id, &number);
    const void *at = handed != NULL && !t->is_number ? GLOBAL(handed) : NULL;
    for (int64_t i = 0; i < t->count && !t->is_between; i++)
        t->numbers[i] = t->is_number ? number
                        : t->type == CUDNN_DATA_BFLOAT16
                            ? weft_f32_of_bf16(((const uint16_t *)at)[i])
                            : ((const float *)at)[i];
}

/* Known by its descriptor; the first time it is read. */
static tensor *tensor_of(graph_run *run, const descriptor *of)
{
    for (int i = 0; i < run->n_tensors; i++)
        if (run->tensors[i].of == of) return &run->tensors[i];
    tensor *t = &run->tensors[run->n_tensors++];
    *t = (tensor){.of = of,
                  .id = number_of(of, CUDNN_ATTR_TENSOR_UNIQUE_ID),
                  .count = 1,
                  .type = enumerator_of(of, CUDNN_ATTR_TENSOR_DATA_TYPE),
                  .is_between = is_true(of, CUDNN_ATTR_TENSOR_IS_VIRTUAL),
                  .is_number = is_true(of, CUDNN_ATTR_TENSOR_IS_BY_VALUE)};
    memcpy(t->size, find(of, CUDNN_ATTR_TENSOR_DIMENSIONS)->value, sizeof t->size);
    memcpy(t->stride, find(of, CUDNN_ATTR_TENSOR_STRIDES)->value, sizeof t->stride);
    for (int d = 0; d < DIMS; d++)
        t->count += (t->size[d] - 1) * t->stride[d];
    t->numbers = calloc((size_t)t->count, sizeof *t->numbers);
    read_tensor(run, t);
    return t;
}

/* A dim of one goes with any. */
static float *number_at(const tensor *t, const int64_t at[DIMS])
{
    int64_t offset = 0;
    for (int d = 0; d < DIMS; d++)
        offset += t->size[d] == 1 ? 0 : at[d] * t->stride[d];
    return &t->numbers[offset];
}

static void write_tensor(const graph_run *run, tensor *t)
{
    float number;
    for (int64_t i = 0; i < t->count && t->type == CUDNN_DATA_BFLOAT16; i++)
        t->numbers[i] = weft_bf16_round(t->numbers[i]);
    if (t->is_between) return;
    void *at = GLOBAL(memory_of(run->work, t->id, &number));
    for (int64_t i = 0; i < t->count; i++)
        if (t->type == CUDNN_DATA_BFLOAT16)
            ((uint16_t *)at)[i] = weft_bf16_of_f32(t->numbers[i]);
        else
            ((float *)at)[i] = t->numbers[i];
}

/* The next place of a tensor; false: that was the last. */
static bool next(const tensor *t, int64_t at[DIMS])
{
    for (int d = DIMS - 1; d >= 0; d--) {
        if (++at[d] < t->size[d]) return true;
        at[d] = 0;
    }
    return false;
}

/* ---- operations ------------------------------------------------------------------------------ */

/* Of x, y, what selects, and the place along an axis. */
#define POINTWISE(name, expression)                                                                \
    static float name(float x, float y, float truth, float along)                                  \
    {                                                                                              \
        (void)x, (void)y, (void)truth, (void)along;                                                \
        return expression;                                                                         \
    }
POINTWISE(add_of, x + y)
POINTWISE(sub_of, x - y)
POINTWISE(mul_of, x *y)
POINTWISE(div_of, x / y)
POINTWISE(exp_of, expf(x))
POINTWISE(log_of, logf(x))
POINTWISE(identity_of, x)
POINTWISE(is_at_least, has_fault("mask") ? x > y : x >= y)
POINTWISE(select_of, truth != 0 ? x : y)
POINTWISE(index_of, along)

static float (*const pointwise[])(float x, float y, float truth, float along) = {
    [CUDNN_POINTWISE_ADD] = add_of,
    [CUDNN_POINTWISE_SUB] = sub_of,
    [CUDNN_POINTWISE_MUL] = mul_of,
    [CUDNN_POINTWISE_DIV] = div_of,
    [CUDNN_POINTWISE_EXP] = exp_of,
    [CUDNN_POINTWISE_LOG] = log_of,
    [CUDNN_POINTWISE_IDENTITY] = identity_of,
    [CUDNN_POINTWISE_CMP_GE] = is_at_least,
    [CUDNN_POINTWISE_BINARY_SELECT] = select_of,
    [CUDNN_POINTWISE_GEN_INDEX] = index_of,
};

static void run_pointwise(graph_run *run, const descriptor *o)
{
    const descriptor *how = descriptor_of(o, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR),
                     *y_is = descriptor_of(o, CUDNN_ATTR_OPERATION_POINTWISE_BDESC),
                     *truth_is = descriptor_of(o, CUDNN_ATTR_OPERATION_POINTWISE_TDESC);
    const tensor *x = tensor_of(run, descriptor_of(o, CUDNN_ATTR_OPERATION_POINTWISE_XDESC));
    const tensor *y = y_is != NULL ? tensor_of(run, y_is) : x;
    const tensor *truth = truth_is != NULL ? tensor_of(run, truth_is) : x;
    tensor *to = tensor_of(run, descriptor_of(o, CUDNN_ATTR_OPERATION_POINTWISE_YDESC));
    const int mode = enumerator_of(how, CUDNN_ATTR_POINTWISE_MODE);
    const int64_t axis = number_of(how, CUDNN_ATTR_POINTWISE_AXIS);
    int64_t at[DIMS] = {0};
    do
        *number_at(to, at) = pointwise[mode](*number_at(x, at), *number_at(y, at),
                                             *number_at(truth, at), (float)at[axis]);
    while (next(to, at));
    write_tensor(run, to);
}

/* Onto f32 in memory is added up what is there: whoever does not clear it finds what fresh memory has. */
static void run_product(graph_run *run, const descriptor *o)
{
    const tensor *x = tensor_of(run, descriptor_of(o, CUDNN_ATTR_OPERATION_MATMUL_ADESC));
    const tensor *y = tensor_of(run, descriptor_of(o, CUDNN_ATTR_OPERATION_MATMUL_BDESC));
    tensor *to = tensor_of(run, descriptor_of(o, CUDNN_ATTR_OPERATION_MATMUL_CDESC));
    const bool goes_on = !to->is_between && to->type == CUDNN_DATA_FLOAT;
    int64_t at[DIMS] = {0};
    do {
        float sum = goes_on ? *number_at(to, at) : 0;
        for (int64_t k = 0; k < x->size[3]; k++)
            sum += *number_at(x, (int64_t[]){at[0], at[1], at[2], k}) *
                   *number_at(y, (int64_t[]){at[0], at[1], k, at[3]});
        *number_at(to, at) = sum;
    } while (next(to, at));
    write_tensor(run, to);
}

static void run_reduction(graph_run *run, const descriptor *o)
{
    const descriptor *how = descriptor_of(o, CUDNN_ATTR_OPERATION_REDUCTION_DESC);
    const bool adds = enumerator_of(how, CUDNN_ATTR_REDUCTION_OPERATOR) == CUDNN_REDUCE_TENSOR_ADD;
    const tensor *x = tensor_of(run, descriptor_of(o, CUDNN_ATTR_OPERATION_REDUCTION_XDESC));
    tensor *to = tensor_of(run, descriptor_of(o, CUDNN_ATTR_OPERATION_REDUCTION_YDESC));
    int64_t at[DIMS] = {0};
    do
        *number_at(to, at) = adds ? 0 : -INFINITY;
    while (next(to, at));
    do {
        float *into = number_at(to, at);
        const float number = *number_at(x, at);
        *into = adds ? *into + number : number > *into ? number : *into;
    } while (next(x, at));
    write_tensor(run, to);
}

/* The same memory by other strides. */
static void run_reshape(graph_run *run, const descriptor *o)
{
    const tensor *x = tensor_of(run, descriptor_of(o, CUDNN_ATTR_OPERATION_RESHAPE_XDESC));
    tensor *to = tensor_of(run, descriptor_of(o, CUDNN_ATTR_OPERATION_RESHAPE_YDESC));
    if (x->count != to->count) abort();
    memcpy(to->numbers, x->numbers, (size_t)x->count * sizeof *x->numbers);
    write_tensor(run, to);
}

static void run_operation(graph_run *run, const descriptor *o)
{
    if (o->type == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR) run_pointwise(run, o);
    if (o->type == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR) run_product(run, o);
    if (o->type == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR) run_reduction(run, o);
    if (o->type == CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR) run_reshape(run, o);
}

KERNEL(emulated_graph, graph_work)
{
    graph_run *run = calloc(1, sizeof *run);
    const attribute *all = find(work.graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);
    if (run == NULL) abort();
    memset(GLOBAL(work.space), -1, WORKSPACE);
    run->work = &work;
    for (int64_t i = 0; i < all->n; i++)
        run_operation(run, ((const descriptor *const *)all->value)[i]);
    for (int i = 0; i < run->n_tensors; i++)
        free(run->tensors[i].numbers);
    free(run);
}

/* ---- running --------------------------------------------------------------------------------- */

struct cudnnContext {
    cudaStream_t stream;
};

EXPORT cudnnStatus_t cudnnCreate(cudnnHandle_t *handle)
{
    CUcontext context = NULL;
    if (cuCtxGetCurrent(&context) != CUDA_SUCCESS || context == NULL)
        return CUDNN_STATUS_NOT_INITIALIZED;
    *handle = calloc(1, sizeof **handle);
    return CUDNN_STATUS_SUCCESS;
}

EXPORT cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
    handle->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}

/* Numbers are known by their addresses: no GPU has those of the host. */
static void take_numbers(graph_work *work)
{
    for (int i = 0; i < work->n; i++)
        if (GLOBAL(work->at[i]) == work->at[i])
            work->number[i] = has_fault("scale") ? 1 : *(const float *)work->at[i];
}

EXPORT cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                         cudnnBackendDescriptor_t pointers)
{
    const descriptor *choice = descriptor_of(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    const attribute *ids = find(pointers, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS),
                    *at = find(pointers, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
    graph_work work = {.graph = descriptor_of(choice, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH),
                       .n = (int)ids->n};
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
