/* heads.h: a call of attention or of its gradient, as every device sees it: which operand is what, rows, and the dims that
 * number the heads. */
#ifndef WEFT_KERNEL_HEADS_H
#define WEFT_KERNEL_HEADS_H

#include <string.h>

#include "kernel.h"

/* Operands and results, by what they are; O is the result, or in the gradient its incoming gradient, and then Y is the result. STATS:
 * of each query row's scores the maximum, and the sum of exp(score - maximum), a result of attention and an operand of its gradient;
 * -inf and 0: the row sees nothing. */
enum {
    WEFT_Q,
    WEFT_K,
    WEFT_V,
    WEFT_O,
    WEFT_DQ,
    WEFT_DK,
    WEFT_DV,
    WEFT_Y, /* up to here [rows, feature]; from here on [query, memory], of which either may be missing */
    WEFT_BIAS,
    WEFT_MASK,
    WEFT_DBIAS,
    WEFT_STATS, /* [query, 2] */
    WEFT_HEAD_TENSORS,
    WEFT_HEAD_MATRICES = WEFT_BIAS
};

typedef struct weft_heads_call {
    const weft_attention_attributes *attributes;
    const weft_view *view[WEFT_HEAD_TENSORS]; /* NULL: not there */
    int64_t n_query, n_memory, n_feature;
    int64_t first_query, first_memory; /* global */
    int64_t back, ahead;               /* query row i sees memory rows i - back to i + ahead */
    /* Dims of q other than rows and feature number the heads. Those that k lacks are innermost: `n_grouped` heads in a row have
     * rows of k and v in common, of one of `n_keys` heads. With dbias the `n_shared` that add to the same of it are `n_apart`
     * from each other, and begin with each of the first n_apart of n_shared x n_apart in a row, of which there are `n_outer`. */
    int n_dims;
    int of_blocks; /* which dim of these numbers the blocks, of which the call is for one; -1: there are none */
    int64_t block[2]; /* its number, and that of the block of k and v that goes with it */
    bool is_there;    /* this */
    const char *dim[WEFT_MAX_DIMS];
    int64_t size[WEFT_MAX_DIMS], n_heads, n_keys, n_grouped, n_outer, n_shared, n_apart;
} weft_heads_call;

/* Attention has two results, its gradient more. */
static inline bool weft_heads_is_gradient(const weft_call *call)
{
    return call->n_out > 2;
}

static inline void weft_heads_find(weft_heads_call *h, const weft_call *call)
{
    const weft_attention_attributes *a = h->attributes;
    const bool is_gradient = weft_heads_is_gradient(call);
    for (int t = WEFT_Q; t <= WEFT_V; t++)
        h->view[t] = &call->in[t];
    h->view[WEFT_O] = is_gradient ? &call->in[call->n_in - 1] : &call->out[0];
    h->view[WEFT_STATS] = is_gradient ? &call->in[call->n_in - 2] : &call->out[1];
    if (is_gradient) h->view[WEFT_Y] = &call->in[call->n_in - 3];
    for (int t = WEFT_DQ; t <= WEFT_DV && is_gradient; t++)
        h->view[t] = &call->out[t - WEFT_DQ];
    if (a->bias > 0) h->view[WEFT_BIAS] = &call->in[a->bias];
    if (a->mask > 0) h->view[WEFT_MASK] = &call->in[a->mask];
    if (is_gradient && a->bias_gradient) h->view[WEFT_DBIAS] = &call->out[3];
}

static inline void weft_heads_rows(weft_heads_call *h)
{
    const weft_attention_attributes *a = h->attributes;
    const weft_view *q = h->view[WEFT_Q], *k = h->view[WEFT_K];
    const int query = weft_shape_find(&q->shape, a->query),
              memory = weft_shape_find(&k->shape, a->memory);
    const int64_t n_blocks =
        a->blocks == NULL ? 1 : 2 * a->n_blocks; /* of numbers: as many and twice as many */
    const int64_t far = n_blocks * (q->shape.dims[query].size + k->shape.dims[memory].size);
    h->n_query = weft_view_size(q, query), h->first_query = q->box.begin[query];
    h->n_memory = weft_view_size(k, memory), h->first_memory = k->box.begin[memory];
    h->n_feature = weft_view_size(q, weft_shape_find(&q->shape, a->feature));
    h->back = a->window == 0 || a->window > far ? far : a->window - 1;
    h->ahead = a->causal ? 0 : h->back;
}

/* What lacks a dim of q that numbers heads: none; dbias; dbias and k; k. */
static inline int weft_heads_lack(const weft_heads_call *h, const char *dim)
{
    const weft_view *bias = h->view[WEFT_DBIAS];
    const bool of_bias = bias != NULL && weft_shape_find(&bias->shape, dim) < 0;
    const char *blocks = h->attributes->blocks;
    if (blocks != NULL && strcmp(dim, blocks) == 0) return 0;
    if (weft_shape_find(&h->view[WEFT_K]->shape, dim) < 0) return of_bias ? 2 : 3;
    return of_bias ? 1 : 0;
}

static inline void weft_heads_order(weft_heads_call *h)
{
    const weft_attention_attributes *a = h->attributes;
    const weft_view *q = h->view[WEFT_Q];
    int64_t n[4] = {1, 1, 1, 1};
    for (int lack = 0; lack < 4; lack++)
        for (int d = 0; d < q->shape.n_dims; d++) {
            const char *name = q->shape.dims[d].name;
            if (strcmp(name, a->query) == 0 || strcmp(name, a->feature) == 0) continue;
            if (weft_heads_lack(h, name) != lack) continue;
            h->dim[h->n_dims] = name;
            h->size[h->n_dims++] = weft_view_size(q, d);
            n[lack] *= weft_view_size(q, d);
        }
    h->n_outer = n[0], h->n_shared = n[1] * n[2], h->n_apart = n[3];
    h->n_keys = n[0] * n[1], h->n_grouped = n[2] * n[3];
    h->n_heads = h->n_keys * h->n_grouped;
}

/* Blocks of rows that are here, each of which is computed by itself; 1: there are no blocks. */
static inline int64_t weft_heads_n_blocks(const weft_call *call)
{
    const weft_attention_attributes *a = call->attributes;
    const weft_view *q = &call->in[0];
    return a->blocks == NULL ? 1 : weft_view_size(q, weft_shape_find(&q->shape, a->blocks));
}

/* The heads of one of them alone, and its memory: rows are numbered on from block to block. */
static inline void weft_heads_narrow(weft_heads_call *h, int64_t block)
{
    const weft_attention_attributes *a = h->attributes;
    const weft_view *q = h->view[WEFT_Q], *k = h->view[WEFT_K];
    const int of_q = weft_shape_find(&q->shape, a->blocks),
              of_k = weft_shape_find(&k->shape, a->memory_blocks);
    const int64_t c = q->box.begin[of_q] + block, m = c - a->turn;
    const int64_t n_query = q->shape.dims[weft_shape_find(&q->shape, a->query)].size,
                  n_memory = k->shape.dims[weft_shape_find(&k->shape, a->memory)].size;
    h->is_there = m >= k->box.begin[of_k] && m < k->box.end[of_k];
    while (strcmp(h->dim[h->of_blocks], a->blocks) != 0)
        h->of_blocks++;
    const int64_t n_here = h->size[h->of_blocks];
    h->size[h->of_blocks] = 1;
    h->n_heads /= n_here, h->n_keys /= n_here, h->n_outer /= n_here;
    h->block[0] = c, h->block[1] = m;
    h->first_query += (a->query_first + a->query_step * c) * n_query;
    h->first_memory += (a->memory_first + a->memory_step * m) * n_memory;
    const int64_t left = a->memory_end > 0 ? a->memory_end - h->first_memory : h->n_memory;
    if (left < h->n_memory) h->n_memory = left < 0 ? 0 : left;
    if (!h->is_there) h->n_memory = 0;
}

static inline weft_heads_call weft_heads_of(const weft_call *call, int64_t block)
{
    weft_heads_call h = {.attributes = call->attributes, .of_blocks = -1};
    weft_heads_find(&h, call);
    weft_heads_rows(&h);
    weft_heads_order(&h);
    if (h.attributes->blocks != NULL) {
        h.of_blocks = 0;
        weft_heads_narrow(&h, block);
    }
    return h;
}

static inline bool weft_heads_is_memory(int tensor)
{
    return tensor == WEFT_K || tensor == WEFT_V;
}

/* What a tensor calls the blocks of q (0), and those of k and v (1); NULL: it has none. */
static inline const char *weft_heads_blocks(const weft_heads_call *h, int tensor, int which)
{
    const weft_attention_attributes *a = h->attributes;
    const bool is_scores = tensor == WEFT_BIAS || tensor == WEFT_MASK;
    if (which == 0) return weft_heads_is_memory(tensor) ? NULL : a->blocks;
    return weft_heads_is_memory(tensor) ? a->memory_blocks : is_scores ? a->column_blocks : NULL;
}

/* Where its block begins in what there is of a tensor along these, and their name; NULL: it has none. */
static inline int64_t weft_heads_at(const weft_heads_call *h, int tensor, int which,
                                    const char **dim)
{
    const weft_view *view = h->view[tensor];
    *dim = h->of_blocks < 0 ? NULL : weft_heads_blocks(h, tensor, which);
    const int d = *dim == NULL ? -1 : weft_shape_find(&view->shape, *dim);
    if (d < 0) *dim = NULL;
    return d < 0 || (which == 1 && !h->is_there) ? 0 : h->block[which] - view->box.begin[d];
}

/* What a tensor calls its rows and columns. */
static inline const char *weft_heads_row(const weft_heads_call *h, int tensor)
{
    const bool by_memory =
        tensor == WEFT_K || tensor == WEFT_V || tensor == WEFT_DK || tensor == WEFT_DV;
    return by_memory ? h->attributes->memory : h->attributes->query;
}

static inline const char *weft_heads_column(const weft_heads_call *h, int tensor)
{
    const bool by_feature = tensor < WEFT_HEAD_MATRICES || tensor == WEFT_STATS;
    return by_feature ? h->attributes->feature : h->attributes->column;
}

#endif
