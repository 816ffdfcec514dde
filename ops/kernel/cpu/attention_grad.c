/* attention_grad.c: dq, dk and dv of attention; the softmax is computed again, tile by tile.
 *
 * With P the softmax of S = scale Q K^T, and dO given:
 *     dP = dO V^T     D_i = sum_j P_ij dP_ij     dS = scale P (dP - D)
 *     dq = dS K       dk = dS^T Q                dv = P^T dO
 * For each block of query rows, a first walk over the tiles finds max, sum and D, a second one the
 * gradients. If one tile holds all that the block sees, the second walk uses S and dP of the first.
 * A task is one head, so that dk and dv are added up by one lane, in one order. source  Dao et al.
 * 2022, "FlashAttention", appendix B
 */
#include "cpu/attention.h"

#include <math.h>
#include <string.h>

/* One block of query rows of one head, and the tile it is at. */
typedef struct block {
    const weft_heads *h;
    int64_t head, begin, n_rows; /* query rows */
    int64_t first, n;            /* memory rows of the tile */
    int64_t seen;                /* memory rows any of the block sees */
    int64_t tile;                /* most memory rows of a tile */
    char *s, *dp;                /* [n_rows, n]: scores, then P; dP, then dS */
    weft_softmax softmax;
} block;

static weft_matrix transposed(weft_matrix x)
{
    return (weft_matrix){x.data, x.column, x.row};
}

static int64_t row_seen(const block *b, int64_t i)
{
    const int64_t seen = weft_heads_seen(b->h, b->begin + i) - b->first;
    return seen < 0 ? 0 : seen > b->n ? b->n : seen;
}

/* s = scale Q K^T, dp = dO V^T */
static void compute_tile(const block *b)
{
    const weft_heads *h = b->h;
    weft_product p = {
        .dtype = h->dtype, .m = b->n_rows, .n = b->n, .k = h->n_feature, .alpha = h->scale};
    p.a = weft_heads_matrix(h, WEFT_Q, b->head, b->begin);
    p.b = transposed(weft_heads_matrix(h, WEFT_K, b->head, b->first));
    p.c = (weft_matrix){b->s, b->n, 1};
    weft_multiply(&p);
    p.alpha = 1;
    p.a = weft_heads_matrix(h, WEFT_O, b->head, b->begin);
    p.b = transposed(weft_heads_matrix(h, WEFT_V, b->head, b->first));
    p.c = (weft_matrix){b->dp, b->n, 1};
    weft_multiply(&p);
}

/* First walk: s becomes exp(s - max so far). */
static void enter_tile(block *b)
{
    const weft_row_math *math = &weft_row_maths[b->h->dtype];
    for (int64_t i = 0; i < b->n_rows; i++) {
        const int64_t seen = row_seen(b, i);
        const size_t at = (size_t)(i * b->n) * b->h->bytes;
        if (seen == 0) continue;
        const double by = math->enter(&b->softmax, (int)i, b->s + at, seen);
        b->softmax.dot[i] = b->softmax.dot[i] * by + math->dot(b->s + at, b->dp + at, seen);
    }
}

/* Second walk: s becomes P, dp becomes dS; what a row does not see becomes 0 in both. */
static void differentiate_tile(const block *b)
{
    const weft_heads *h = b->h;
    const weft_row_math *math = &weft_row_maths[h->dtype];
    for (int64_t i = 0; i < b->n_rows; i++) {
        const int64_t seen = row_seen(b, i);
        const double over_sum = b->softmax.sum[i] == 0 ? 0 : 1 / b->softmax.sum[i];
        char *s = b->s + (size_t)(i * b->n) * h->bytes, *dp = b->dp + (size_t)(i * b->n) * h->bytes;
        if (b->n < b->seen)
            math->probabilities(s, seen, b->softmax.max[i], over_sum);
        else /* the first walk left exp(s - max) */
            math->multiply(s, seen, over_sum);
        math->score_gradient(s, dp, seen, b->softmax.dot[i] * over_sum, h->scale);
        memset(s + (size_t)seen * h->bytes, 0, (size_t)(b->n - seen) * h->bytes);
        memset(dp + (size_t)seen * h->bytes, 0, (size_t)(b->n - seen) * h->bytes);
    }
}

/* dq = or += dS K, dk += dS^T Q, dv += P^T dO */
static void add_gradients(const block *b)
{
    const weft_heads *h = b->h;
    const weft_matrix s = {b->s, b->n, 1}, dp = {b->dp, b->n, 1};
    weft_product p = {.dtype = h->dtype, .m = b->n_rows, .n = h->n_feature, .k = b->n, .alpha = 1};
    p.beta = b->first == 0 ? 0 : 1;
    p.a = dp;
    p.b = weft_heads_matrix(h, WEFT_K, b->head, b->first);
    p.c = weft_heads_matrix(h, WEFT_DQ, b->head, b->begin);
    weft_multiply(&p);
    p.m = b->n, p.k = b->n_rows, p.beta = 1;
    p.a = transposed(dp);
    p.b = weft_heads_matrix(h, WEFT_Q, b->head, b->begin);
    p.c = weft_heads_matrix(h, WEFT_DK, b->head, b->first);
    weft_multiply(&p);
    p.a = transposed(s);
    p.b = weft_heads_matrix(h, WEFT_O, b->head, b->begin);
    p.c = weft_heads_matrix(h, WEFT_DV, b->head, b->first);
    weft_multiply(&p);
}

static void next_tile(block *b, int64_t first)
{
    b->first = first;
    b->n = b->seen - first < b->tile ? b->seen - first : b->tile;
}

static void run_block(block *b)
{
    b->seen = weft_heads_seen(b->h, b->begin + b->n_rows - 1);
    for (int i = 0; i < WEFT_QUERY_BLOCK; i++) {
        b->softmax.max[i] = -(double)INFINITY;
        b->softmax.sum[i] = b->softmax.dot[i] = 0;
    }
    for (int64_t first = 0; first < b->seen; first += b->tile) {
        next_tile(b, first);
        compute_tile(b);
        enter_tile(b);
    }
    for (int64_t first = 0; first < b->seen; first += b->tile) {
        next_tile(b, first);
        if (b->n < b->seen) compute_tile(b);
        differentiate_tile(b);
        add_gradients(b);
    }
}

static void run_heads(void *argument, int64_t begin, int64_t end, int lane)
{
    const weft_heads *h = argument;
    block b = {.h = h, .s = weft_stream_scratch(h->stream, lane)};
    const int64_t fits = WEFT_LANE_SCRATCH / (int64_t)(2 * WEFT_QUERY_BLOCK * h->bytes);
    b.tile = fits < h->n_memory ? fits : h->n_memory;
    b.dp = b.s + (size_t)(WEFT_QUERY_BLOCK * b.tile) * h->bytes;
    for (b.head = begin; b.head < end; b.head++)
        for (b.begin = 0; b.begin < h->n_query; b.begin += WEFT_QUERY_BLOCK) {
            const int64_t left = h->n_query - b.begin;
            b.n_rows = left < WEFT_QUERY_BLOCK ? left : WEFT_QUERY_BLOCK;
            run_block(&b);
        }
}

void weft_attention_grad_cpu(const weft_call *call)
{
    for (int i = 0; i < call->n_out; i++) { /* rows that see or are seen by nothing stay 0 */
        const size_t bytes =
            (size_t)weft_view_count(&call->out[i]) * weft_dtype_bytes(call->out[i].dtype);
        if (bytes > 0) memset(call->out[i].data, 0, bytes);
    }
    if (weft_view_count(&call->in[0]) == 0 || weft_view_count(&call->in[1]) == 0) return;
    weft_heads h;
    weft_heads_open(&h, call, &call->in[3], call->out);
    if (weft_heads_fit_tiles(&h))
        weft_parallel(call->stream, h.n_heads, 1, run_heads, &h);
    else
        weft_attention_grad_plain(call);
}
