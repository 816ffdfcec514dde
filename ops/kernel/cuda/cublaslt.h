/* cublaslt.h: products of matrices by NVIDIA's cuBLASLt, which is loaded where one is first asked for: never linked, so without
 * it there are the plain kernels.
 *
 *     const cublaslt_product *product = cuda_cublaslt_find(&problem);        NULL: it cannot, or is not there
 *     cuda_cublaslt_run(stream, product, pointers, workspace);
 */
#ifndef WEFT_CUDA_CUBLASLT_H
#define WEFT_CUDA_CUBLASLT_H

#include "matrices.h"
#include "mesh/cuda/driver.h"
#include "mesh/cuda/library.h"

/* What decides how it is done. No gaps: products are found again by these bytes. */
typedef struct cublaslt_problem {
    int64_t dtype;     /* of left and right; of 16 bits are added up, and written, in f32 */
    int64_t precision; /* a weft_precision */
    int64_t batch, alignment, is_turned[2];
    matrices_matrix matrix[3]; /* left, right, out */
} cublaslt_problem;

typedef struct cublaslt_product cublaslt_product; /* opaque; lives as long as the process */

/* What is told of the library. */
cuda_library_fact cuda_cublaslt_look(void);

/* cuda_cublaslt_find - the library's choice for a problem, made once in the process for all its GPUs, which are of one
 * kind: it depends on the problem, the library and that alone. Local; any thread. */
const cublaslt_product *cuda_cublaslt_find(const cublaslt_problem *problem);
/* cuda_cublaslt_begin - before products are run on a GPU, which the thread enters; false: the library cannot begin there. */
bool cuda_cublaslt_begin(const cuda_gpu *gpu);
/* Bytes that it works in. */
int64_t cuda_cublaslt_workspace(const cublaslt_product *product);

/* left, right: as the problem says. out: left right, and with `begin` that added to it, which lies as out does, and may be out. All
 * in the GPU's memory. */
typedef struct cublaslt_pointers {
    const void *left, *right, *begin;
    void *out;
} cublaslt_pointers;
/* cuda_cublaslt_run - put onto the stream's queue of kernels. Allocates nothing. */
void cuda_cublaslt_run(weft_stream *stream, const cublaslt_product *product,
                       const cublaslt_pointers *at, void *workspace);

#endif
