/* matrices.h: an einsum as products of matrices, as BLAS has them: which dims are rows, columns, what is summed, and the batch, and
 * what has to be copied first where strides do not allow it.
 *
 *     matrices plan;
 *     if (!cuda_matrices_plan(&call, &plan)) ...                     it is no such product
 *
 * Dims that both operands and the result have are the batch. Dims of a group that lie as one walk, in both tensors
 * that have them, are one index; outer dims of the batch that do not are loops. A tensor with dims that are no such
 * walks, or without an index of neighbours, is in scratch instead, its dims in the plan's order. Of all ways the one
 * that moves least.
 */
#ifndef WEFT_CUDA_MATRICES_H
#define WEFT_CUDA_MATRICES_H

#include "kernel.h"

enum { MATRICES_A, MATRICES_B, MATRICES_OUT, MATRICES_TENSORS };
enum { MATRICES_M, MATRICES_N, MATRICES_K, MATRICES_BATCH, MATRICES_GROUPS };

/* Strides in elements; 0: the tensor has it not. */
typedef struct matrices_dim {
    int64_t count, stride[MATRICES_TENSORS];
} matrices_dim;

/* Column-major, as BLAS has it: rows are neighbours. */
typedef struct matrices_matrix {
    int64_t rows, columns, ld, stride; /* from a matrix of the batch to the next */
} matrices_matrix;

typedef struct matrices {
    matrices_dim group[MATRICES_GROUPS];
    int n_loops;
    matrices_dim loop[WEFT_MAX_DIMS]; /* outermost first */
    bool is_copied[MATRICES_TENSORS];
    weft_box_copy copy[MATRICES_TENSORS]; /* into scratch; of the result out of it */
    /* out = left' right', each of them turned or not. `left` says which operand that is. */
    int left;
    bool is_turned[2];
    matrices_matrix matrix[3]; /* left, right, out */
} matrices;

/* cuda_matrices_plan - false: a dim that one operand alone has, nothing to compute, or nothing to sum. Local; pure: of the call
 * it sees shapes and boxes alone. */
bool cuda_matrices_plan(const weft_call *call, matrices *plan);

/* How many products there are, and where the tensors of one begin, in elements. */
int64_t cuda_matrices_products(const matrices *plan);
void cuda_matrices_offset(const matrices *plan, int64_t product, int64_t offset[MATRICES_TENSORS]);

#endif
