/* attend.h: attention as its kernels are told it (attend.cu), and which memory rows a query row sees. */
#ifndef WEFT_CUDA_ATTEND_H
#define WEFT_CUDA_ATTEND_H

#include <stdint.h>

/* Operands and results, by what they are; dq, dk, dv and dbias of the gradient, whose `o` is the gradient of the result, and `y` the
 * result. stats: of each query row's scores the maximum, and the sum of exp(score - maximum); -inf and 0: it sees nothing. */
enum {
    ATTEND_Q,
    ATTEND_K,
    ATTEND_V,
    ATTEND_O,
    ATTEND_DQ,
    ATTEND_DK,
    ATTEND_DV,
    ATTEND_Y,
    ATTEND_BIAS,
    ATTEND_MASK,
    ATTEND_DBIAS,
    ATTEND_STATS,
    ATTEND_TENSORS
};
enum { ATTEND_DIMS = 8, ATTEND_THREADS = 128 };

/* Strides in elements; 0 for a dim that a tensor lacks. Row and column: of the first eight [rows, feature], of the others
 * [query, memory], of stats [query, 2]. Heads are numbered by the dims that are neither, as heads.h says. */
typedef struct cuda_attention {
    void *data[ATTEND_TENSORS]; /* NULL: not there */
    int64_t row[ATTEND_TENSORS], column[ATTEND_TENSORS];
    int n_dims;
    int64_t size[ATTEND_DIMS], stride[ATTEND_TENSORS][ATTEND_DIMS];
    int64_t n_heads, n_keys, n_grouped, n_outer, n_shared, n_apart, member, n_query, n_memory,
        n_feature;
    int64_t first_query, first_memory; /* global */
    int64_t back, ahead;               /* query row i sees memory rows i - back to i + ahead */
    double scale;
    /* gradient: of each head's query rows the mean of dP, which is o.y; the maximum, infinite where it sees nothing; 1 / sum */
    void *of_rows;
} cuda_attention;

/* Rows as a library numbers them, [batch, heads, query], and as they lie in ours; is_ours: from there. */
typedef struct cuda_attend_kept {
    void *ours, *theirs;
    int64_t n, size[3], stride[3], plane;
    int is_ours;
} cuda_attend_kept;

#endif
