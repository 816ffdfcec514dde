/* cublaslt: a libcublasLt.so of the emulated driver: the functions that Weft calls. It believes descriptions alone,
 * refuses those that contradict themselves, and multiplies as they say, some time, on the stream. Its workspace is
 * full of ones afterwards. An algorithm does for what it was asked for alone, and for memory so aligned.
 *
 * The environment: TEST_CUBLASLT_FAULT: what of a description is misread: "turn", "ld", "stride", "batch", "depth", "begin",
 * "precision", for tests of what comparing finds.
 */
#include <cublasLt.h>
#include <cuda.h>

#include <stdbool.h>
#include <stdlib.h>

#include "mesh/cuda/kernel_source.h"
#include "parts.h"
#include "weft/extend/half.h"

enum { A, B, C, D, MATRICES };

/* Behind the library's pointers. */
typedef struct layout {
    int64_t type, rows, columns, ld, batch, stride;
} layout;
typedef struct description {
    int64_t computes, scale, is_turned[2];
} description;
typedef struct preference {
    uint64_t workspace;
    uint32_t alignment[MATRICES];
} preference;
typedef struct algorithm { /* of the 64 bytes of a cublasLtMatmulAlgo_t */
    uint64_t hash, workspace;
    uint32_t alignment[MATRICES];
} algorithm;
_Static_assert(sizeof(algorithm) <= sizeof(cublasLtMatmulAlgo_t), "it is copied as one");

static bool has_fault(const char *name)
{
    const char *fault = getenv("TEST_CUBLASLT_FAULT");
    return fault != NULL && strcmp(fault, name) == 0;
}

/* ---- descriptions ---------------------------------------------------------------------------- */

EXPORT cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    CUcontext context = NULL;
    emulated_refuse_capture("cublasLtCreate");
    if (cuCtxGetCurrent(&context) != CUDA_SUCCESS || context == NULL)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    int *device = calloc(1, sizeof *device);
    *handle = (cublasLtHandle_t)(void *)device;
    if (device == NULL) return CUBLAS_STATUS_ALLOC_FAILED;
    *device = emulated_device();
    return CUBLAS_STATUS_SUCCESS;
}

/* It is of the context in which it was made. */
static void check_handle(cublasLtHandle_t handle)
{
    if (handle != NULL && *(const int *)(const void *)handle != emulated_device())
        emulated_die("a handle of cuBLASLt is used in the context of another GPU");
}

EXPORT size_t cublasLtGetVersion(void)
{
    return CUBLAS_VERSION;
}

EXPORT const char *cublasLtGetStatusName(cublasStatus_t status)
{
    return status == CUBLAS_STATUS_EXECUTION_FAILED ? "CUBLAS_STATUS_EXECUTION_FAILED"
           : status == CUBLAS_STATUS_NOT_SUPPORTED  ? "CUBLAS_STATUS_NOT_SUPPORTED"
                                                    : "CUBLAS_STATUS_INVALID_VALUE";
}

EXPORT const char *cublasLtGetStatusString(cublasStatus_t status)
{
    return status == CUBLAS_STATUS_EXECUTION_FAILED ? "the function failed to launch on the GPU"
           : status == CUBLAS_STATUS_NOT_SUPPORTED
               ? "the functionality requested is not supported"
               : "an unsupported value or parameter was passed to the function";
}

EXPORT cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *to,
                                               cublasComputeType_t computes, cudaDataType_t scale)
{
    description *d = calloc(1, sizeof *d);
    *to = (cublasLtMatmulDesc_t)(void *)d;
    if (d == NULL) return CUBLAS_STATUS_ALLOC_FAILED;
    *d = (description){.computes = computes, .scale = scale};
    return CUBLAS_STATUS_SUCCESS;
}

EXPORT cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t to,
                                                     cublasLtMatmulDescAttributes_t what,
                                                     const void *from, size_t bytes)
{
    const int which = what - CUBLASLT_MATMUL_DESC_TRANSA;
    cublasOperation_t operation;
    if (which < 0 || which > 1 || bytes != sizeof operation) return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(&operation, from, sizeof operation);
    ((description *)(void *)to)->is_turned[which] =
        (operation == CUBLAS_OP_T) != (which == 1 && has_fault("turn"));
    return CUBLAS_STATUS_SUCCESS;
}

EXPORT cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *to, cudaDataType type,
                                                 uint64_t rows, uint64_t columns, int64_t ld)
{
    layout *l = calloc(1, sizeof *l);
    *to = (cublasLtMatrixLayout_t)(void *)l;
    if (l == NULL) return CUBLAS_STATUS_ALLOC_FAILED;
    *l = (layout){type, (int64_t)rows, (int64_t)columns, ld + has_fault("ld"), 1, 0};
    return CUBLAS_STATUS_SUCCESS;
}

EXPORT cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t to,
                                                       cublasLtMatrixLayoutAttribute_t what,
                                                       const void *from, size_t bytes)
{
    layout *l = (layout *)(void *)to;
    int32_t batch;
    if (what == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT && bytes == sizeof batch) {
        memcpy(&batch, from, sizeof batch);
        l->batch = has_fault("batch") ? 1 : batch;
    } else if (what == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET && bytes == sizeof l->stride) {
        memcpy(&l->stride, from, sizeof l->stride);
        if (has_fault("stride")) l->stride = l->ld * l->columns;
    } else
        return CUBLAS_STATUS_INVALID_VALUE;
    return CUBLAS_STATUS_SUCCESS;
}

EXPORT cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *to)
{
    preference *p = calloc(1, sizeof *p);
    *to = (cublasLtMatmulPreference_t)(void *)p;
    if (p == NULL) return CUBLAS_STATUS_ALLOC_FAILED;
    for (int i = 0; i < MATRICES; i++)
        p->alignment[i] = 256; /* where nothing is said */
    return CUBLAS_STATUS_SUCCESS;
}

EXPORT cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p)
{
    free(p);
    return CUBLAS_STATUS_SUCCESS;
}

EXPORT cublasStatus_t cublasLtMatmulPreferenceSetAttribute(
    cublasLtMatmulPreference_t to, cublasLtMatmulPreferenceAttributes_t what, const void *from,
    size_t bytes)
{
    preference *p = (preference *)(void *)to;
    const int which = what - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES;
    if (what == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES && bytes == sizeof p->workspace)
        memcpy(&p->workspace, from, bytes);
    else if (which >= 0 && which < MATRICES && bytes == sizeof p->alignment[which])
        memcpy(&p->alignment[which], from, bytes);
    else
        return CUBLAS_STATUS_INVALID_VALUE;
    return CUBLAS_STATUS_SUCCESS;
}

/* ---- what they say together ------------------------------------------------------------------ */

typedef struct product {
    description how;
    layout matrix[MATRICES];
} product;

static product product_of(cublasLtMatmulDesc_t how, cublasLtMatrixLayout_t a,
                          cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                          cublasLtMatrixLayout_t d)
{
    return (product){*(const description *)(const void *)how,
                     {*(const layout *)(const void *)a, *(const layout *)(const void *)b,
                      *(const layout *)(const void *)c, *(const layout *)(const void *)d}};
}

static int64_t rows_of(const product *p, int which)
{
    const layout *l = &p->matrix[which];
    return which < C && p->how.is_turned[which] ? l->columns : l->rows;
}

static int64_t columns_of(const product *p, int which)
{
    const layout *l = &p->matrix[which];
    return which < C && p->how.is_turned[which] ? l->rows : l->columns;
}

/* Of operands, of the result, of what numbers between are: as the library's table of them has it, so far as Weft's dtypes go. */
static bool has_types(const product *p)
{
    static const struct {
        cublasComputeType_t computes;
        cudaDataType_t scale, reads, makes;
    } there[] = {
        {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F},
        {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16BF, CUDA_R_32F},
        {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16F, CUDA_R_32F},
        {CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F},
        {CUBLAS_COMPUTE_32F_FAST_16BF, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F},
        {CUBLAS_COMPUTE_64F, CUDA_R_64F, CUDA_R_64F, CUDA_R_64F},
    };
    for (size_t i = 0; i < sizeof there / sizeof *there; i++)
        if (there[i].computes == p->how.computes && there[i].scale == p->how.scale &&
            there[i].reads == p->matrix[A].type && there[i].reads == p->matrix[B].type &&
            there[i].makes == p->matrix[C].type && there[i].makes == p->matrix[D].type)
            return true;
    return false;
}

static bool is_sound(const product *p)
{
    bool is = has_types(p) && rows_of(p, A) == rows_of(p, D) && columns_of(p, A) == rows_of(p, B) &&
              columns_of(p, B) == columns_of(p, D) && rows_of(p, C) == rows_of(p, D) &&
              columns_of(p, C) == columns_of(p, D);
    for (int i = 0; i < MATRICES; i++) {
        const layout *l = &p->matrix[i];
        is = is && l->rows > 0 && l->columns > 0 && l->ld >= l->rows && l->batch > 0 &&
             l->batch == p->matrix[D].batch;
    }
    return is;
}

static uint64_t hash_of(const product *p)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < sizeof *p; i++)
        hash = (hash ^ ((const unsigned char *)p)[i]) * UINT64_C(0x100000001b3);
    return hash;
}

EXPORT cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t how, cublasLtMatrixLayout_t a,
    cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
    cublasLtMatmulPreference_t by, int n, cublasLtMatmulHeuristicResult_t found[], int *n_found)
{
    const preference *p = (const preference *)(const void *)by;
    const product all = product_of(how, a, b, c, d);
    *n_found = 0;
    check_handle(handle);
    if (handle == NULL || n < 1) return CUBLAS_STATUS_INVALID_VALUE;
    if (!is_sound(&all)) return CUBLAS_STATUS_NOT_SUPPORTED;
    algorithm chosen = {.hash = hash_of(&all)};
    chosen.workspace = 64 * (chosen.hash >> 32) % 5; /* sometimes none */
    if (chosen.workspace > p->workspace) chosen.workspace = 0;
    memcpy(chosen.alignment, p->alignment, sizeof chosen.alignment);
    memcpy(&found[0].algo, &chosen, sizeof chosen);
    found[0].workspaceSize = (size_t)chosen.workspace;
    found[0].state = CUBLAS_STATUS_SUCCESS;
    *n_found = 1;
    return CUBLAS_STATUS_SUCCESS;
}

/* ---- multiplying ----------------------------------------------------------------------------- */

typedef struct matmul_work {
    product all;
    const void *in[C + 1];
    void *out, *space;
    int64_t space_bytes;
    double alpha, beta;
} matmul_work;

static float tf32_round(float x)
{
    const uint32_t bits = weft_bits_of_f32(x);
    const uint32_t rounded = (bits + 0xFFFu + (bits >> 13 & 1u)) & 0xFFFFE000u;
    return x != x ? x : weft_f32_of_bits(rounded);
}

static float read_f32(const void *from, int64_t type, int64_t at)
{
    const uint16_t *half = (const uint16_t *)from;
    return type == CUDA_R_32F    ? ((const float *)from)[at]
           : type == CUDA_R_16BF ? weft_f32_of_bf16(half[at])
                                 : weft_f32_of_f16(half[at]);
}

static float operand_of(const product *p, const void *from, int which, int64_t at)
{
    const float x = read_f32(from, p->matrix[which].type, at);
    return p->how.computes == CUBLAS_COMPUTE_32F_FAST_TF32   ? tf32_round(x)
           : p->how.computes == CUBLAS_COMPUTE_32F_FAST_16BF ? weft_bf16_round(x)
                                                             : x;
}

static int64_t place_of(const product *p, int which, int64_t batch, int64_t row, int64_t column)
{
    const layout *l = &p->matrix[which];
    const bool is_turned = which < C && p->how.is_turned[which];
    return batch * l->stride + (is_turned ? row * l->ld + column : row + column * l->ld);
}

static void multiply_f32(const matmul_work *work, int64_t batch, int64_t row, int64_t column)
{
    const product *p = &work->all;
    const void *a = GLOBAL(work->in[A]), *b = GLOBAL(work->in[B]);
    const int64_t at = place_of(p, D, batch, row, column), depth = columns_of(p, A);
    float sum = 0;
    for (int64_t k = 0; k < depth - has_fault("depth"); k++)
        sum += operand_of(p, a, A, place_of(p, A, batch, row, k)) *
               operand_of(p, b, B, place_of(p, B, batch, k, column));
    sum *= (float)work->alpha;
    if (work->beta != 0)
        sum += (float)work->beta *
               ((const float *)GLOBAL(work->in[C]))[place_of(p, C, batch, row, column)];
    ((float *)GLOBAL(work->out))[at] = sum;
}

static void multiply_f64(const matmul_work *work, int64_t batch, int64_t row, int64_t column)
{
    const product *p = &work->all;
    const double *a = (const double *)GLOBAL(work->in[A]), *b = (const double *)GLOBAL(work->in[B]);
    double sum = 0;
    for (int64_t k = 0; k < columns_of(p, A); k++)
        sum += a[place_of(p, A, batch, row, k)] * b[place_of(p, B, batch, k, column)];
    sum *= work->alpha;
    if (work->beta != 0)
        sum +=
            work->beta * ((const double *)GLOBAL(work->in[C]))[place_of(p, C, batch, row, column)];
    ((double *)GLOBAL(work->out))[place_of(p, D, batch, row, column)] = sum;
}

KERNEL(emulated_matmul, matmul_work)
{
    const layout *d = &work.all.matrix[D];
    char *space = (char *)GLOBAL(work.space);
    for (int64_t i = THREAD; i < work.space_bytes; i += THREADS)
        space[i] = -1;
    for (int64_t i = THREAD; i < d->rows * d->columns * d->batch; i += THREADS) {
        const int64_t row = i % d->rows, column = i / d->rows % d->columns,
                      batch = i / d->rows / d->columns;
        if (work.all.how.scale == CUDA_R_64F)
            multiply_f64(&work, batch, row, column);
        else
            multiply_f32(&work, batch, row, column);
    }
}

static double number_of(const void *from, int64_t type)
{
    return type == CUDA_R_64F ? *(const double *)from : *(const float *)from;
}

static bool is_aligned(const void *at, uint64_t bytes)
{
    return (uintptr_t)at % bytes == 0;
}

EXPORT cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t how,
                                     const void *alpha, const void *a, cublasLtMatrixLayout_t a_is,
                                     const void *b, cublasLtMatrixLayout_t b_is, const void *beta,
                                     const void *c, cublasLtMatrixLayout_t c_is, void *d,
                                     cublasLtMatrixLayout_t d_is, const cublasLtMatmulAlgo_t *by,
                                     void *space, size_t space_bytes, cudaStream_t stream)
{
    enum { THREADS_OF_BLOCK = 64 };
    algorithm chosen;
    matmul_work work = {.all = product_of(how, a_is, b_is, c_is, d_is)};
    memcpy(&chosen, by, sizeof chosen);
    check_handle(handle);
    if (handle == NULL || chosen.hash != hash_of(&work.all)) return CUBLAS_STATUS_INVALID_VALUE;
    if (space_bytes < chosen.workspace || (chosen.workspace > 0 && !is_aligned(space, 16)) ||
        !is_aligned(a, chosen.alignment[A]) || !is_aligned(b, chosen.alignment[B]) ||
        !is_aligned(c, chosen.alignment[C]) || !is_aligned(d, chosen.alignment[D]))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    work.in[A] = a, work.in[B] = b, work.in[C] = c, work.out = d;
    work.space = space, work.space_bytes = (int64_t)chosen.workspace;
    work.alpha = number_of(alpha, work.all.how.scale);
    work.beta = has_fault("begin") ? 0 : number_of(beta, work.all.how.scale);
    if (has_fault("precision") && work.all.how.computes == CUBLAS_COMPUTE_32F)
        work.all.how.computes = CUBLAS_COMPUTE_32F_FAST_TF32;
    void *arguments[] = {&work};
    CUkernel kernel = NULL;
    CUresult result = cuLibraryGetKernel(&kernel, NULL, "emulated_matmul");
    if (result == CUDA_SUCCESS)
        result = cuLaunchKernel((CUfunction)kernel, 1, 1, 1, THREADS_OF_BLOCK, 1, 1, 0,
                                (CUstream)stream, arguments, NULL);
    return result == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}
