/* dnn: see dnn.h. */
#include "dnn.h"

#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mesh/cuda/library.h"

dnn_library dnn;

/* ---- the library ----------------------------------------------------------------------------- */

static bool is_loaded;
static int version; /* 0: it cannot be loaded */
static struct seat {
    pthread_mutex_t lock; /* a handle's kernels go where it was told last */
    cudnnHandle_t handle;
    bool is_tried;
} seats[CUDA_MOST_GPUS];

static char file[40];

/* What an older minor version does not know it has no engine for. */
static void load(void)
{
#define ENTRY(name) {#name, offsetof(dnn_library, name)},
    static const cuda_entry entries[] = {DNN_CALLS(ENTRY)};
    snprintf(file, sizeof file, "libcudnn.so.%d", CUDNN_MAJOR);
    for (int g = 0; g < CUDA_MOST_GPUS; g++)
        pthread_mutex_init(&seats[g].lock, NULL);
    if (cuda_library_fill(file, entries, sizeof entries / sizeof *entries, &dnn) == NULL)
        version = (int)dnn.cudnnGetVersion();
    is_loaded = cuda_library_fits(version, CUDNN_VERSION);
}

bool cuda_dnn_load(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    return is_loaded;
}

cuda_library_fact cuda_dnn_look(void)
{
    (void)cuda_dnn_load();
    return (cuda_library_fact){"cuDNN", file, version, CUDNN_VERSION, "attention, convolutions"};
}

cudnnHandle_t cuda_dnn_handle(const cuda_gpu *gpu)
{
    if (gpu == NULL || !cuda_dnn_load()) return NULL;
    struct seat *seat = &seats[gpu->ordinal];
    pthread_mutex_lock(&seat->lock);
    if (!seat->is_tried && dnn.cudnnCreate(&seat->handle) != CUDNN_STATUS_SUCCESS)
        seat->handle = NULL;
    seat->is_tried = true;
    cudnnHandle_t handle = seat->handle;
    pthread_mutex_unlock(&seat->lock);
    return handle;
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

/* The same attributes of each kind, by other names. */
static const struct {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t how, x, w, y, alpha, beta;
} convolutions[] = {
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA}};

static cudnnBackendDescriptor_t describe_windows(dnn_graph *g, const dnn_convolution *c)
{
    const cudnnDataType_t computes = CUDNN_DATA_FLOAT;
    const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    const int64_t n = c->n_space;
    cudnnBackendDescriptor_t how = make(g, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    set(g, how, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &computes);
    set(g, how, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    set(g, how, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &n);
    set(g, how, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, n, c->before);
    set(g, how, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, n, c->after);
    set(g, how, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, n, c->stride);
    set(g, how, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, n, c->dilation);
    return finalize(g, how);
}

void cuda_dnn_convolve(dnn_graph *g, const dnn_convolution *c)
{
    const double one = 1, zero = 0;
    int k = 0;
    while (convolutions[k].type != c->type)
        k++;
    cudnnBackendDescriptor_t how = describe_windows(g, c), o = make(g, c->type);
    set_descriptor(g, o, convolutions[k].how, how);
    set_descriptor(g, o, convolutions[k].x, c->x);
    set_descriptor(g, o, convolutions[k].w, c->w);
    set_descriptor(g, o, convolutions[k].y, c->y);
    set(g, o, convolutions[k].alpha, CUDNN_TYPE_DOUBLE, 1, &one);
    set(g, o, convolutions[k].beta, CUDNN_TYPE_DOUBLE, 1, &zero);
    add_operation(g, o);
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
    if (g->handle != NULL)
        set(g, all, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &g->handle);
    set(g, all, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, g->n_operations,
        g->operation);
    return finalize(g, all);
}

/* The library's choice of engines, the best first; returns how many. */
static int64_t choose(dnn_graph *g, cudnnBackendDescriptor_t all, cudnnBackendHeurMode_t mode,
                      cudnnBackendDescriptor_t device,
                      cudnnBackendDescriptor_t choice[MOST_CHOICES])
{
    int64_t n = 0;
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

/* By what its engine says of itself. */
static bool is_refused(dnn_graph *g, cudnnBackendDescriptor_t choice)
{
    cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
    int64_t n = 0, n_engines = 0;
    bool is = false;
    if (g->refused == 0) return false;
    cudnnBackendDescriptor_t engine = make(g, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    if (g->has_failed ||
        dnn.cudnnBackendGetAttribute(choice, CUDNN_ATTR_ENGINECFG_ENGINE,
                                     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &n_engines,
                                     &engine) != CUDNN_STATUS_SUCCESS ||
        dnn.cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                     CUDNN_TYPE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &n,
                                     notes) != CUDNN_STATUS_SUCCESS)
        return true;
    for (int64_t i = 0; i < n; i++)
        is = is || (g->refused >> notes[i] & 1) != 0;
    return is;
}

/* A choice that cannot be is no failure of the graph. */
static dnn_plan try_choice(dnn_graph *g, cudnnBackendDescriptor_t device,
                           cudnnBackendDescriptor_t choice)
{
    dnn_plan p = {.plan = make(g, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)};
    int64_t n = 0;
    if (g->handle != NULL)
        set(g, p.plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &g->handle);
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
    /* what is fast, then what does anything */
    static const cudnnBackendHeurMode_t modes[] = {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK};
    cudnnBackendDescriptor_t choice[MOST_CHOICES];
    cudnnBackendDescriptor_t described = device != NULL ? describe_device(g, device) : NULL;
    cudnnBackendDescriptor_t all = make_graph(g);
    dnn_plan plan = {0};
    for (int m = 0; m < 2 && !plan.is_there; m++) {
        const int64_t n = choose(g, all, modes[m], described, choice);
        for (int64_t i = 0; i < n && !plan.is_there && !g->has_failed; i++)
            if (!is_refused(g, choice[i])) plan = try_choice(g, described, choice[i]);
    }
    return plan;
}

void cuda_dnn_forget(dnn_graph *g)
{
    while (g->n_made > 0)
        dnn.cudnnBackendDestroyDescriptor(g->made[--g->n_made]);
}

/* ---- plans that are kept ----------------------------------------------------------------------- */

typedef struct kept_plan kept_plan;
struct kept_plan {
    const kept_plan *next;
    int ordinal; /* of the GPU */
    dnn_build build;
    dnn_graph graph;
    dnn_plan plan;
    size_t bytes;
    char problem[];
};

/* The handle is the seat's, whose kernels may be put meanwhile. */
static kept_plan *make_plan(const cuda_gpu *gpu, dnn_build build, const void *problem, size_t bytes)
{
    kept_plan *kept = calloc(1, sizeof *kept + bytes);
    if (kept == NULL) return NULL;
    kept->ordinal = gpu->ordinal, kept->build = build, kept->bytes = bytes;
    memcpy(kept->problem, problem, bytes);
    kept->graph.handle = cuda_dnn_handle(gpu);
    pthread_mutex_lock(&seats[gpu->ordinal].lock);
    build(&kept->graph, problem);
    kept->plan = cuda_dnn_plan(&kept->graph, NULL);
    pthread_mutex_unlock(&seats[gpu->ordinal].lock);
    kept->plan.handle = kept->graph.handle;
    if (!kept->plan.is_there) cuda_dnn_forget(&kept->graph);
    return kept;
}

static bool is_of(const kept_plan *kept, const cuda_gpu *gpu, dnn_build build, const void *problem,
                  size_t bytes)
{
    return kept->ordinal == gpu->ordinal && kept->build == build && kept->bytes == bytes &&
           memcmp(kept->problem, problem, bytes) == 0;
}

const dnn_plan *cuda_dnn_find(const cuda_gpu *gpu, dnn_build build, const void *problem,
                              size_t bytes)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static const kept_plan *all;
    if (cuda_dnn_handle(gpu) == NULL) return NULL;
    pthread_mutex_lock(&lock);
    const kept_plan *found = all;
    while (found != NULL && !is_of(found, gpu, build, problem, bytes))
        found = found->next;
    kept_plan *made = found == NULL ? make_plan(gpu, build, problem, bytes) : NULL;
    if (made != NULL) {
        made->next = all;
        all = found = made;
    }
    pthread_mutex_unlock(&lock);
    return found != NULL && found->plan.is_there ? &found->plan : NULL;
}

/* ---- running ----------------------------------------------------------------------------------- */

static weft_status fail(const char *call, cudnnStatus_t status, const cuda_gpu *gpu,
                        weft_error *error)
{
    char more[200] = "";
    dnn.cudnnGetLastErrorString(more, sizeof more);
    return weft_fail(error, WEFT_INTERNAL, "device cuda %d (%.60s): cuDNN: %s: %s: %.200s",
                     gpu->ordinal, gpu->name, call, dnn.cudnnGetErrorString(status), more);
}

weft_status cuda_dnn_fail_unlike(const cuda_gpu *gpu, weft_error *error)
{
    return weft_fail(error, WEFT_INTERNAL,
                     "cuDNN does not do on GPU %d, %.60s, what it does on GPU %d, %.60s; name GPUs "
                     "that are alike in CUDA_VISIBLE_DEVICES",
                     gpu->ordinal, gpu->name, cuda_gpu_here.ordinal, cuda_gpu_here.name);
}

weft_status cuda_dnn_tell(const dnn_pointers *pointers, cudnnBackendDescriptor_t *to,
                          weft_error *error)
{
    const int n = pointers->n;
    const struct {
        cudnnBackendAttributeName_t name;
        cudnnBackendAttributeType_t type;
        int64_t n;
        const void *value;
    } facts[] = {{CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, n, pointers->id},
                 {CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, n, pointers->at},
                 {CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &pointers->workspace}};
    *to = NULL;
    cudnnStatus_t status =
        dnn.cudnnBackendCreateDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, to);
    for (int i = 0; i < 3 && status == CUDNN_STATUS_SUCCESS; i++)
        status = dnn.cudnnBackendSetAttribute(*to, facts[i].name, facts[i].type, facts[i].n,
                                              facts[i].value);
    if (status == CUDNN_STATUS_SUCCESS) status = dnn.cudnnBackendFinalize(*to);
    if (status == CUDNN_STATUS_SUCCESS) return WEFT_OK;
    (void)fail("a variant pack", status, &cuda_gpu_here, error);
    if (*to != NULL) (void)dnn.cudnnBackendDestroyDescriptor(*to);
    *to = NULL;
    return WEFT_INTERNAL;
}

void cuda_dnn_run(weft_stream *stream, const dnn_plan *plan, cudnnBackendDescriptor_t pointers,
                  const char *what)
{
    const cuda_gpu *gpu = cuda_stream_of(stream)->gpu;
    struct seat *seat = &seats[gpu->ordinal];
    weft_error error = {WEFT_OK, -1, ""};
    cuda_queue *q = cuda_queue_for(stream, WEFT_COMPUTE);
    if (q == NULL) return;
    pthread_mutex_lock(&seat->lock);
    cudnnStatus_t status = dnn.cudnnSetStream(plan->handle, q->stream);
    if (status == CUDNN_STATUS_SUCCESS)
        status = dnn.cudnnBackendExecute(plan->handle, plan->plan, pointers);
    if (status != CUDNN_STATUS_SUCCESS) (void)fail(what, status, gpu, &error);
    pthread_mutex_unlock(&seat->lock);
    cuda_put(stream, q, CUDA_SUCCESS, "cudnnBackendExecute");
    if (error.status != WEFT_OK) cuda_fail(stream, &error);
}
