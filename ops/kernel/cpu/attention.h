/* attention.h: what attention and its gradient share: the tensors as many [rows, feature] matrices,
 * and the tiles. */
#ifndef WEFT_ATTENTION_H
#define WEFT_ATTENTION_H

#include "cpu/matrix.h"

enum { WEFT_Q, WEFT_K, WEFT_V, WEFT_O, WEFT_DQ, WEFT_DK, WEFT_DV, WEFT_HEAD_TENSORS };

/* Query rows per task; most of them are worth one call of BLAS each. */
enum { WEFT_QUERY_BLOCK = 64 };

/* O is the result, or in the gradient its incoming gradient. Dims other than rows and feature
 * number the heads. */
typedef struct weft_heads {
    weft_dtype dtype;
    size_t bytes;
    int n_dims; /* that number the heads */
    int64_t size[WEFT_MAX_DIMS], stride[WEFT_HEAD_TENSORS][WEFT_MAX_DIMS];
    char *data[WEFT_HEAD_TENSORS];
    int64_t row[WEFT_HEAD_TENSORS], column[WEFT_HEAD_TENSORS]; /* strides of rows and feature */
    int64_t n_heads, n_query, n_memory, n_feature;             /* local */
    int64_t first_query, first_memory;                         /* global row numbers */
    double scale;
    bool causal;
    weft_stream *stream;
} weft_heads;

/* How many memory rows, from the first, the query row i (local) sees. */
static inline int64_t weft_heads_seen(const weft_heads *h, int64_t i)
{
    const int64_t seen = h->first_query + i + 1 - h->first_memory;
    if (!h->causal || seen > h->n_memory) return h->n_memory;
    return seen < 0 ? 0 : seen;
}

/* The softmax of a block of query rows as it grows tile by tile, each [WEFT_QUERY_BLOCK]: the
 * running max, the sum of exp(score - max), and in the gradient the sum of exp(score - max) * dP.
 */
typedef struct weft_softmax {
    double max[WEFT_QUERY_BLOCK], sum[WEFT_QUERY_BLOCK], dot[WEFT_QUERY_BLOCK];
} weft_softmax;

/* Loops over one row of a tile, for an element type. */
typedef struct weft_row_math {
    /* n scores enter row i of `state`; they become exp(score - max). Returns what older sums and
     * weights must be multiplied by. n is at least 1. */
    double (*enter)(weft_softmax *state, int i, void *scores, int64_t n);
    double (*dot)(const void *a, const void *b, int64_t n);
    void (*probabilities)(void *scores, int64_t n, double max,
                          double over_sum); /* exp(s - max) * over_sum */
    void (*score_gradient)(const void *p, void *dp, int64_t n, double dot,
                           double scale); /* p (dp - dot) scale */
    void (*multiply)(void *x, int64_t n, double by);
    void (*store)(void *to, int64_t stride, const void *from, int64_t n, double by);
} weft_row_math;
extern const weft_row_math weft_row_maths[WEFT_I32]; /* f32, f64 */

/* Fill `heads`; extra: dq, dk, dv of the gradient or NULL. */
void weft_heads_open(weft_heads *heads, const weft_call *call, const weft_view *o,
                     const weft_view *extra);
/* Every matrix of it has a unit stride, and blocks of this feature size fit a lane's scratch. */
bool weft_heads_fit_tiles(const weft_heads *heads);
/* The matrix of one head of one tensor, from local row `first`. */
weft_matrix weft_heads_matrix(const weft_heads *heads, int tensor, int64_t head, int64_t first);

/* The same by loops over whole rows, for any strides; the oracle of the tiled kernels. */
void weft_attention_plain(const weft_call *call);
void weft_attention_grad_plain(const weft_call *call);

#endif
