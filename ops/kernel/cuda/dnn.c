/* dnn: see dnn.h. */
#include "dnn.h"

#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "mesh/cuda/library.h"

dnn_library dnn;

/* ---- the library ----------------------------------------------------------------------------- */

static bool is_loaded;

static void load(void)
{
#define ENTRY(name) {#name, offsetof(dnn_library, name)},
    static const cuda_entry entries[] = {DNN_CALLS(ENTRY)};
    char file[40];
    snprintf(file, sizeof file, "libcudnn.so.%d", CUDNN_MAJOR);
    is_loaded = cuda_library_fill(file, entries, sizeof entries / sizeof *entries, &dnn) == NULL;
}

bool cuda_dnn_load(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    return is_loaded;
}

static void open_handle(void)
{
    if (!cuda_dnn_load() || dnn.cudnnCreate(&dnn.handle) != CUDNN_STATUS_SUCCESS) dnn.handle = NULL;
}

bool cuda_dnn_open(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_handle);
    return dnn.handle != NULL;
}

/* ---- descriptors ----------------------------------------------------------------------------- */

static void check(dnn_graph *g, cudnnStatus_t status, const char *call)
{
    char more[200] = "";
    if (status == CUDNN_STATUS_SUCCESS || g->has_failed) return;
    dnn.cudnnGetLastErrorString(more, sizeof more);
    snprintf(g->why, sizeof g->why, "%s: %s: %s", call, dnn.cudnnGetErrorString(status), more);
    g->has_failed = true;
}

static cudnnBackendDescriptor_t make(dnn_graph *g, cudnnBackendDescriptorType_t type)
{
    cudnnBackendDescriptor_t made = NULL;
    if (g->n_made == DNN_DESCRIPTORS) check(g, CUDNN_STATUS_INTERNAL_ERROR, "too many descriptors");
    if (g->has_failed) return NULL;
    check(g, dnn.cudnnBackendCreateDescriptor(type, &made), "cudnnBackendCreateDescriptor");
    if (made != NULL) g->made[g->n_made++] = made;
    return made;
}

static void set(dnn_graph *g, cudnnBackendDescriptor_t of, cudnnBackendAttributeName_t name,
                cudnnBackendAttributeType_t type, int64_t n, const void *value)
{
    if (g->has_failed) return;
    check(g, dnn.cudnnBackendSetAttribute(of, name, type, n, value), "cudnnBackendSetAttribute");
}

static void set_descriptor(dnn_graph *g, cudnnBackendDescriptor_t of,
                           cudnnBackendAttributeName_t name, cudnnBackendDescriptor_t value)
{
    set(g, of, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

static cudnnBackendDescriptor_t finalize(dnn_graph *g, cudnnBackendDescriptor_t of)
{
    if (!g->has_failed) check(g, dnn.cudnnBackendFinalize(of), "cudnnBackendFinalize");
    return of;
}

static void add_operation(dnn_graph *g, cudnnBackendDescriptor_t operation)
{
    if (g->n_operations == DNN_OPERATIONS)
        check(g, CUDNN_STATUS_INTERNAL_ERROR, "too many operations");
    finalize(g, operation);
    if (!g->has_failed) g->operation[g->n_operations++] = operation;
}

/* ---- tensors --------------------------------------------------------------------------------- */

typedef enum tensor_kind { IN_MEMORY, BETWEEN, NUMBER } tensor_kind;

static dnn_tensor make_tensor(dnn_graph *g, int64_t id, cudnnDataType_t type,
                              const dnn_shape *shape, tensor_kind kind)
{
    enum { ALIGNMENT = 16 };
    const int64_t alignment = ALIGNMENT;
    const bool is_between = kind == BETWEEN, is_number = kind == NUMBER;
    dnn_tensor t = make(g, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    set(g, t, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    set(g, t, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, DNN_DIMS, shape->size);
    set(g, t, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, DNN_DIMS, shape->stride);
    set(g, t, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id);
    set(g, t, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
    set(g, t, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_between);
    if (is_number) set(g, t, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &is_number);
    return finalize(g, t);
}

dnn_tensor cuda_dnn_tensor(dnn_graph *g, int64_t id, cudnnDataType_t type, const dnn_shape *shape)
{
    return make_tensor(g, id, type, shape, IN_MEMORY);
}

dnn_tensor cuda_dnn_number(dnn_graph *g, int64_t id)
{
    static const dnn_shape one = {{1, 1, 1, 1}, {1, 1, 1, 1}};
    return make_tensor(g, id, CUDNN_DATA_FLOAT, &one, NUMBER);
}

dnn_tensor cuda_dnn_between(dnn_graph *g, cudnnDataType_t type, const dnn_shape *shape)
{
    enum { FIRST = 100 };
    return make_tensor(g, FIRST + g->n_between++, type, shape, BETWEEN);
}

/* ---- operations ------------------------------------------------------------------------------ */

dnn_tensor cuda_dnn_pointwise(dnn_graph *g, const dnn_pointwise *f, dnn_tensor to)
{
    const cudnnDataType_t math = f->gives_truth ? CUDNN_DATA_BOOLEAN : CUDNN_DATA_FLOAT;
    cudnnBackendDescriptor_t how = make(g, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    set(g, how, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &f->mode);
    set(g, how, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &math);
    if (f->mode == CUDNN_POINTWISE_GEN_INDEX)
        set(g, how, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, &f->axis);
    finalize(g, how);
    cudnnBackendDescriptor_t o = make(g, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    set_descriptor(g, o, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
    set_descriptor(g, o, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, f->x);
    if (f->y != NULL) set_descriptor(g, o, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, f->y);
    if (f->truth != NULL) set_descriptor(g, o, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, f->truth);
    set_descriptor(g, o, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, to);
    add_operation(g, o);
    return to;
}

dnn_tensor cuda_dnn_product(dnn_graph *g, dnn_tensor x, dnn_tensor y, dnn_tensor to)
{
    const cudnnDataType_t computes = CUDNN_DATA_FLOAT;
    cudnnBackendDescriptor_t how = make(g, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    set(g, how, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &computes);
    finalize(g, how);
    cudnnBackendDescriptor_t o = make(g, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    set_descriptor(g, o, CUDNN_ATTR_OPERATION_MATMUL_ADESC, x);
    set_descriptor(g, o, CUDNN_ATTR_OPERATION_MATMUL_BDESC, y);
    set_descriptor(g, o, CUDNN_ATTR_OPERATION_MATMUL_CDESC, to);
    set_descriptor(g, o, CUDNN_ATTR_OPERATION_MATMUL_DESC, how);
    add_operation(g, o);
    return to;
}

dnn_tensor cuda_dnn_reduce(dnn_graph *g, cudnnReduceTensorOp_t by, dnn_tensor x, dnn_tensor to)
{
    const cudnnDataType_t computes = CUDNN_DATA_FLOAT;
    cudnnBackendDescriptor_t how = make(g, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    set(g, how, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &by);
    set(g, how, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &computes);
    finalize(g, how);
    cudnnBackendDescriptor_t o = make(g, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    set_descriptor(g, o, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
    set_descriptor(g, o, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, to);
    set_descriptor(g, o, CUDNN_ATTR_OPERATION_REDUCTION_DESC, how);
    add_operation(g, o);
    return to;
}

dnn_tensor cuda_dnn_reshape(dnn_graph *g, dnn_tensor x, dnn_tensor to)
{
    cudnnBackendDescriptor_t o = make(g, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
    set_descriptor(g, o, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x);
    set_descriptor(g, o, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, to);
    add_operation(g, o);
    return to;
}

/* ---- plans ----------------------------------------------------------------------------------- */

enum { MOST_CHOICES = 16 };

static cudnnBackendDescriptor_t describe_device(dnn_graph *g, const char *device)
{
    cudnnBackendDescriptor_t d = make(g, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    set(g, d, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, (int64_t)strlen(device),
        device);
    return finalize(g, d);
}

static cudnnBackendDescriptor_t make_graph(dnn_graph *g)
{
    cudnnBackendDescriptor_t all = make(g, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    if (dnn.handle != NULL)
        set(g, all, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &dnn.handle);
    set(g, all, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, g->n_operations,
        g->operation);
    return finalize(g, all);
}

/* The library's choice of engines, the best first; returns how many. */
static int64_t choose(dnn_graph *g, cudnnBackendDescriptor_t device,
                      cudnnBackendDescriptor_t choice[MOST_CHOICES])
{
    const cudnnBackendHeurMode_t mode = CUDNN_HEUR_MODE_A;
    int64_t n = 0;
    cudnnBackendDescriptor_t all = make_graph(g);
    cudnnBackendDescriptor_t chooser = make(g, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    set_descriptor(g, chooser, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, all);
    set(g, chooser, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (device != NULL) set_descriptor(g, chooser, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, device);
    finalize(g, chooser);
    for (int i = 0; i < MOST_CHOICES; i++)
        choice[i] = make(g, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    if (g->has_failed) return 0;
    check(g,
          dnn.cudnnBackendGetAttribute(chooser, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                       CUDNN_TYPE_BACKEND_DESCRIPTOR, MOST_CHOICES, &n, choice),
          "cudnnBackendGetAttribute");
    return g->has_failed ? 0 : n;
}

/* A choice that cannot be is no failure of the graph. */
static dnn_plan try_choice(dnn_graph *g, cudnnBackendDescriptor_t device,
                           cudnnBackendDescriptor_t choice)
{
    dnn_plan p = {.plan = make(g, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)};
    int64_t n = 0;
    if (dnn.handle != NULL)
        set(g, p.plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &dnn.handle);
    set_descriptor(g, p.plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, choice);
    if (device != NULL) set_descriptor(g, p.plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, device);
    if (g->has_failed) return p;
    p.is_there =
        dnn.cudnnBackendFinalize(p.plan) == CUDNN_STATUS_SUCCESS &&
        dnn.cudnnBackendGetAttribute(p.plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                     CUDNN_TYPE_INT64, 1, &n, &p.workspace) == CUDNN_STATUS_SUCCESS;
    return p;
}

dnn_plan cuda_dnn_plan(dnn_graph *g, const char *device)
{
    cudnnBackendDescriptor_t choice[MOST_CHOICES];
    cudnnBackendDescriptor_t described = device != NULL ? describe_device(g, device) : NULL;
    const int64_t n = choose(g, described, choice);
    dnn_plan plan = {0};
    for (int64_t i = 0; i < n && !plan.is_there && !g->has_failed; i++)
        plan = try_choice(g, described, choice[i]);
    return plan;
}

void cuda_dnn_forget(dnn_graph *g)
{
    while (g->n_made > 0)
        dnn.cudnnBackendDestroyDescriptor(g->made[--g->n_made]);
}
