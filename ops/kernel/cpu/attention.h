/* attention.h: what attention and its gradient share: the tensors as many [rows, feature] matrices,
 * and the tiles. */
#ifndef WEFT_ATTENTION_H
#define WEFT_ATTENTION_H

#include <string.h>

#include "cpu/matrix.h"
#include "heads.h"

/* Query rows per task; most of them are worth one call of BLAS each. */
enum { WEFT_QUERY_BLOCK = 64 };

/* O is the result, or in the gradient its incoming gradient, and Y the result. Dims other than rows and feature number the heads: `n_grouped` in a
 * row have rows of k and v in common, and `n_together` add to the same of dk, dv or dbias. */
typedef struct weft_heads {
    weft_dtype dtype;
    size_t bytes;
    int n_dims; /* that number the heads */
    int64_t size[WEFT_MAX_DIMS], stride[WEFT_HEAD_TENSORS][WEFT_MAX_DIMS];
    char *data[WEFT_HEAD_TENSORS];                             /* NULL: not there */
    int64_t row[WEFT_HEAD_TENSORS], column[WEFT_HEAD_TENSORS]; /* strides; 0: a dim it lacks */
    int64_t n_heads, n_grouped, n_together;
    int64_t n_query, n_memory, n_feature; /* local */
    int64_t first_query, first_memory;    /* global row numbers */
    int64_t back, ahead;                  /* query row i sees memory rows i - back to i + ahead */
    double scale;
    weft_stream *stream;
} weft_heads;

static inline int64_t weft_clamp(int64_t x, int64_t most)
{
    return x < 0 ? 0 : x > most ? most : x;
}

/* The memory rows [seen[0], seen[1]) that causal and window let the query row i see; both local. */
static inline void weft_heads_seen(const weft_heads *h, int64_t i, int64_t seen[2])
{
    const int64_t row = h->first_query + i - h->first_memory;
    seen[0] = weft_clamp(row - h->back, h->n_memory);
    seen[1] = weft_clamp(row + h->ahead + 1, h->n_memory);
}

/* Query rows [begin, begin + n_rows) of one head by memory rows [first, first + n). */
typedef struct weft_tile {
    int64_t head, begin, n_rows, first, n;
} weft_tile;

/* The part [seen[0], seen[1]) of row i of a tile, as weft_heads_seen. */
static inline void weft_tile_seen(const weft_heads *h, const weft_tile *tile, int64_t i,
                                  int64_t seen[2])
{
    weft_heads_seen(h, tile->begin + i, seen);
    for (int k = 0; k < 2; k++)
        seen[k] = weft_clamp(seen[k] - tile->first, tile->n);
}

/* What lies outside [seen[0], seen[1]) of a row of n elements becomes 0. */
static inline void weft_row_clear_outside(char *row, const int64_t seen[2], int64_t n, size_t bytes)
{
    if (seen[0] > 0) memset(row, 0, (size_t)seen[0] * bytes);
    if (seen[1] < n) memset(row + (size_t)seen[1] * bytes, 0, (size_t)(n - seen[1]) * bytes);
}

/* The softmax of a block of query rows as it grows tile by tile, each [WEFT_QUERY_BLOCK]: the
 * running max, and the sum of exp(score - max).
 */
typedef struct weft_softmax {
    double max[WEFT_QUERY_BLOCK], sum[WEFT_QUERY_BLOCK];
} weft_softmax;

/* What the gradient makes weights of: they are exp(score - base) * over. A row that sees nothing has a base of infinity. */
typedef struct weft_row_kept {
    double base, over;
} weft_row_kept;

/* Loops over one row of a tile, for an element type. */
typedef struct weft_row_math {
    /* n scores enter row i of `state`; they become exp(score - max), 0 where -inf. Returns what older
     * sums and weights must be multiplied by. n is at least 1. */
    double (*enter)(weft_softmax *state, int i, void *scores, int64_t n);
    double (*dot)(const void *a, const void *b, int64_t n);
    void (*probabilities)(void *scores, int64_t n, weft_row_kept kept);
    void (*score_gradient)(const void *p, void *dp, int64_t n, double dot); /* p (dp - dot) */
    void (*multiply)(void *x, int64_t n, double by);
    void (*store)(void *to, int64_t stride, const void *from, int64_t n, double by);
    void (*add)(void *x, const void *y, int64_t stride, int64_t n);    /* x[j] += y[j * stride] */
    void (*add_to)(void *y, int64_t stride, const void *x, int64_t n); /* y[j * stride] += x[j] */
    void (*hide)(void *x, const int32_t *mask, int64_t stride,
                 int64_t n); /* -inf where mask is 0 */
} weft_row_math;
extern const weft_row_math weft_row_maths[WEFT_I32]; /* f32, f64 */

/* Fill `heads` from a call of attention, or of its gradient, for a block of those it has (weft_heads_n_blocks). */
void weft_heads_open(weft_heads *heads, const weft_call *call, int64_t block);
/* Every matrix of it has a unit stride, and blocks of this feature size fit a lane's scratch. */
bool weft_heads_fit_tiles(const weft_heads *heads);
/* The matrix of one head of one tensor, from local row `first`. */
weft_matrix weft_heads_matrix(const weft_heads *heads, int tensor, int64_t head, int64_t first);
/* The same of bias, mask and dbias, at a tile. */
weft_matrix weft_tile_matrix(const weft_heads *heads, int tensor, const weft_tile *tile);
/* Of a query row's scores the maximum, and the sum of exp(score - maximum); -inf and 0: it sees nothing. */
weft_row_kept weft_heads_kept(const weft_heads *heads, int64_t head, int64_t row);
void weft_heads_keep(const weft_heads *heads, int64_t head, int64_t row, double max, double sum);
/* D of a query row, the mean of dP by its weights, which is dO.y, since y is that of V. */
double weft_heads_mean(const weft_heads *heads, int64_t head, int64_t row);
/* Does the mask let nobody see anything of a tile? */
bool weft_tile_is_hidden(const weft_heads *heads, const weft_tile *tile);
/* Products scale q.k [n_rows, n] become scores: with the bias, and -inf where the mask is 0. */
void weft_tile_score(const weft_heads *heads, const weft_tile *tile, char *scores);

/* attention_panels.c: attention, or its gradient, by kernels of ours; false: this is not for them, and nothing is done. */
bool weft_attention_panels(const weft_heads *heads);
bool weft_attention_grad_panels(const weft_heads *heads);

/* The results of a gradient become 0: those of rows that see or are seen by nothing stay so. */
void weft_attention_clear(const weft_call *call);
/* The same by loops over whole rows, for any strides; the oracle of the tiled kernels. Gradients are added to what is there. */
void weft_attention_rows(const weft_heads *heads);
void weft_attention_grad_rows(const weft_heads *heads);
void weft_attention_plain(const weft_call *call);
void weft_attention_grad_plain(const weft_call *call);

#endif
