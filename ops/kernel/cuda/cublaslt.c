/* cublaslt: see cublaslt.h. A handle for each GPU, and a list of what was asked for, which is all GPUs'; both stay. */
#include "cublaslt.h"

#include <cublasLt.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mesh/cuda/library.h"
#include "mesh/cuda/parts.h"

/* ---- the library ----------------------------------------------------------------------------- */

#define CUBLASLT_CALLS(CALL)                                                                       \
    CALL(cublasLtCreate)                                                                           \
    CALL(cublasLtGetVersion)                                                                       \
    CALL(cublasLtGetStatusString)                                                                  \
    CALL(cublasLtGetStatusName)                                                                    \
    CALL(cublasLtMatmulDescCreate)                                                                 \
    CALL(cublasLtMatmulDescSetAttribute)                                                           \
    CALL(cublasLtMatrixLayoutCreate)                                                               \
    CALL(cublasLtMatrixLayoutSetAttribute)                                                         \
    CALL(cublasLtMatmulPreferenceCreate)                                                           \
    CALL(cublasLtMatmulPreferenceSetAttribute)                                                     \
    CALL(cublasLtMatmulPreferenceDestroy)                                                          \
    CALL(cublasLtMatmulAlgoGetHeuristic)                                                           \
    CALL(cublasLtMatmul)
#define MEMBER(name) __typeof__(name) *name;
static struct cublaslt {
    CUBLASLT_CALLS(MEMBER)
} lt;
static bool is_loaded;
static int version; /* 0: it cannot be loaded */
static char file[40];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load(void)
{
#define ENTRY(name) {#name, offsetof(struct cublaslt, name)},
    static const cuda_entry entries[] = {CUBLASLT_CALLS(ENTRY)};
    snprintf(file, sizeof file, "libcublasLt.so.%d", CUBLAS_VER_MAJOR);
    if (cuda_library_fill(file, entries, sizeof entries / sizeof *entries, &lt) == NULL)
        version = (int)lt.cublasLtGetVersion();
    is_loaded = cuda_library_fits(version, CUBLAS_VERSION);
}

cuda_library_fact cuda_cublaslt_look(void)
{
    pthread_once(&once, load);
    return (cuda_library_fact){"cuBLASLt", file, version, CUBLAS_VERSION, "products"};
}

/* A handle is of the context in which it was made. One that cannot begin, as on a machine whose driver is too old for it, is as if it
 * were not there. The thread has the GPU's context. */
static cublasLtHandle_t handle_of(const cuda_gpu *gpu)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct {
        cublasLtHandle_t handle;
        bool is_tried;
    } of[CUDA_MOST_GPUS];
    pthread_once(&once, load);
    if (!is_loaded || gpu == NULL) return NULL;
    const int at = gpu->ordinal;
    pthread_mutex_lock(&lock);
    if (!of[at].is_tried && lt.cublasLtCreate(&of[at].handle) != CUBLAS_STATUS_SUCCESS)
        of[at].handle = NULL;
    of[at].is_tried = true;
    cublasLtHandle_t handle = of[at].handle;
    pthread_mutex_unlock(&lock);
    return handle;
}

/* ---- what was asked for ------------------------------------------------------------------------ */

struct cublaslt_product {
    const cublaslt_product *next;
    cublaslt_problem problem;
    cublasLtMatmulDesc_t description;
    cublasLtMatrixLayout_t layout[3];
    cublasLtMatmulAlgo_t algorithm;
    size_t workspace;
    bool is_double, is_possible;
};

/* What operands are, what the result is, and what is computed with, for each precision. A number between is of the result's type. */
static const struct {
    bool is_there;
    cudaDataType_t reads, makes;
    cublasComputeType_t computes[WEFT_PRECISIONS];
} types[WEFT_DTYPES] = {
    [WEFT_F32] = {true,
                  CUDA_R_32F,
                  CUDA_R_32F,
                  {CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_FAST_TF32, CUBLAS_COMPUTE_32F_FAST_16BF}},
    [WEFT_F64] = {true,
                  CUDA_R_64F,
                  CUDA_R_64F,
                  {CUBLAS_COMPUTE_64F, CUBLAS_COMPUTE_64F, CUBLAS_COMPUTE_64F}},
    [WEFT_BF16] = {true,
                   CUDA_R_16BF,
                   CUDA_R_32F,
                   {CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F}},
    [WEFT_F16] = {true,
                  CUDA_R_16F,
                  CUDA_R_32F,
                  {CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F}},
};

static bool describe(cublaslt_product *p)
{
    static const cublasLtMatmulDescAttributes_t turn[] = {CUBLASLT_MATMUL_DESC_TRANSA,
                                                          CUBLASLT_MATMUL_DESC_TRANSB};
    const cublaslt_problem *problem = &p->problem;
    const cublasComputeType_t computes = types[problem->dtype].computes[problem->precision];
    bool is_good =
        lt.cublasLtMatmulDescCreate(&p->description, computes, types[problem->dtype].makes) == 0;
    for (int i = 0; i < 2 && is_good; i++) {
        const cublasOperation_t operation = problem->is_turned[i] ? CUBLAS_OP_T : CUBLAS_OP_N;
        is_good = lt.cublasLtMatmulDescSetAttribute(p->description, turn[i], &operation,
                                                    sizeof operation) == 0;
    }
    return is_good;
}

static bool describe_matrix(cublaslt_product *p, int which)
{
    const matrices_matrix *m = &p->problem.matrix[which];
    const int32_t batch = (int32_t)p->problem.batch;
    const cudaDataType_t type =
        which == 2 ? types[p->problem.dtype].makes : types[p->problem.dtype].reads;
    cublasLtMatrixLayout_t *layout = &p->layout[which];
    return lt.cublasLtMatrixLayoutCreate(layout, type, (uint64_t)m->rows, (uint64_t)m->columns,
                                         m->ld) == 0 &&
           lt.cublasLtMatrixLayoutSetAttribute(*layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch,
                                               sizeof batch) == 0 &&
           lt.cublasLtMatrixLayoutSetAttribute(*layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                               &m->stride, sizeof m->stride) == 0;
}

/* NVIDIA's advice on how much it may work in. */
static uint64_t most_workspace(void)
{
    return (uint64_t)(cuda_gpu_here.major >= 9 ? 32 : 4) << 20;
}

static bool prefer(cublasLtMatmulPreference_t preference, int64_t alignment)
{
    static const cublasLtMatmulPreferenceAttributes_t aligned[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    const uint64_t most = most_workspace();
    const uint32_t bytes = (uint32_t)alignment;
    bool is_good = lt.cublasLtMatmulPreferenceSetAttribute(preference,
                                                           CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                           &most, sizeof most) == 0;
    for (size_t i = 0; i < sizeof aligned / sizeof *aligned && is_good; i++)
        is_good = lt.cublasLtMatmulPreferenceSetAttribute(preference, aligned[i], &bytes,
                                                          sizeof bytes) == 0;
    return is_good;
}

static bool choose(cublaslt_product *p, cublasLtHandle_t handle)
{
    cublasLtMatmulHeuristicResult_t found = {.state = CUBLAS_STATUS_NOT_SUPPORTED};
    cublasLtMatmulPreference_t preference = NULL;
    int n = 0;
    if (lt.cublasLtMatmulPreferenceCreate(&preference) != 0) return false;
    const bool is_good = prefer(preference, p->problem.alignment) &&
                         lt.cublasLtMatmulAlgoGetHeuristic(handle, p->description, p->layout[0],
                                                           p->layout[1], p->layout[2], p->layout[2],
                                                           preference, 1, &found, &n) == 0;
    (void)lt.cublasLtMatmulPreferenceDestroy(preference);
    p->algorithm = found.algo;
    p->workspace = found.workspaceSize;
    return is_good && n == 1 && found.state == CUBLAS_STATUS_SUCCESS;
}

static cublaslt_product *make(const cublaslt_problem *problem, cublasLtHandle_t handle)
{
    cublaslt_product *p = calloc(1, sizeof *p);
    if (p == NULL) return NULL;
    p->problem = *problem;
    p->is_double = types[problem->dtype].makes == CUDA_R_64F;
    p->is_possible = describe(p) && describe_matrix(p, 0) && describe_matrix(p, 1) &&
                     describe_matrix(p, 2) && choose(p, handle);
    return p;
}

const cublaslt_product *cuda_cublaslt_find(const cublaslt_problem *problem)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static const cublaslt_product *all;
    if (!types[problem->dtype].is_there) return NULL;
    cublasLtHandle_t handle = handle_of(cuda_enter_first());
    if (handle == NULL) return NULL;
    pthread_mutex_lock(&lock);
    const cublaslt_product *found = all;
    while (found != NULL && memcmp(&found->problem, problem, sizeof *problem) != 0)
        found = found->next;
    cublaslt_product *made = found == NULL ? make(problem, handle) : NULL;
    if (made != NULL) {
        made->next = all;
        all = found = made;
    }
    pthread_mutex_unlock(&lock);
    return found != NULL && found->is_possible ? found : NULL;
}

bool cuda_cublaslt_begin(const cuda_gpu *gpu)
{
    return handle_of(cuda_enter_gpu(gpu)) != NULL;
}

int64_t cuda_cublaslt_workspace(const cublaslt_product *product)
{
    return (int64_t)product->workspace;
}

/* ---- running --------------------------------------------------------------------------------- */

static void fail(weft_stream *stream, cublasStatus_t status)
{
    const cuda_gpu *gpu = cuda_stream_of(stream)->gpu;
    weft_error error = {WEFT_OK, -1, ""};
    (void)weft_fail(&error, WEFT_INTERNAL, "device cuda %d (%.60s): cublasLtMatmul: %s (%s)",
                    gpu->ordinal, gpu->name, lt.cublasLtGetStatusString(status),
                    lt.cublasLtGetStatusName(status));
    cuda_fail(stream, &error);
}

void cuda_cublaslt_run(weft_stream *stream, const cublaslt_product *p, const cublaslt_pointers *at,
                       void *workspace)
{
    static const float numbers[] = {0, 1};
    static const double doubles[] = {0, 1};
    const int adds = at->begin != NULL;
    const void *one = p->is_double ? (const void *)&doubles[1] : &numbers[1];
    const void *beta = p->is_double ? (const void *)&doubles[adds] : &numbers[adds];
    cuda_queue *q = cuda_queue_for(stream, WEFT_COMPUTE);
    if (q == NULL) return;
    const cublasStatus_t status = lt.cublasLtMatmul(
        handle_of(cuda_stream_of(stream)->gpu), p->description, one, at->left, p->layout[0],
        at->right, p->layout[1], beta, adds ? at->begin : at->out, p->layout[2], at->out,
        p->layout[2], &p->algorithm, workspace, p->workspace, q->stream);
    cuda_put(stream, q, CUDA_SUCCESS, "cublasLtMatmul");
    if (status != CUBLAS_STATUS_SUCCESS) fail(stream, status);
}
