/* attention_grad.c: dq, dk, dv and dbias of attention; the softmax is had again from its maximum and sum of each row, tile by tile.
 *
 * With S = scale Q K^T + B, and y, M, L and dO given:
 *     P_ij = exp(S_ij - M_i) / L_i     dP = dO V^T     D_i = sum_j P_ij dP_ij = dO_i.y_i     dS = P (dP - D)
 *     dq = scale dS K     dk = scale dS^T Q      dv = P^T dO     dB = dS, summed over what B lacks
 * A task is the heads that have their memory rows in common, or the bias where its gradient is asked for, so that
 * dk, dv and dB are added up by one lane, in one order. Where so few tasks would leave lanes without work, dB gets a
 * pass of its own, cut along the query rows too; each number of it is still the same sum in the same order.
 * source  Dao et al. 2022, "FlashAttention", appendix B
 */
#include "cpu/attention.h"
#include "cpu/widened.h"

#include <math.h>
#include <string.h>

enum { MEMORY_TILE = 512 };

/* One block of query rows of one head, and the tile it is at. */
typedef struct block {
    const weft_heads *h;
    weft_tile tile;
    int64_t seen[2]; /* memory rows that any of the block sees */
    int64_t most;    /* memory rows of a tile */
    char *s, *dp;    /* [n_rows, n]: scores, then P; dP, then dS */
    weft_row_kept kept[WEFT_QUERY_BLOCK];
    double mean[WEFT_QUERY_BLOCK]; /* D */
} block;

static weft_matrix transposed(weft_matrix x)
{
    return (weft_matrix){x.data, x.column, x.row};
}

/* s = scale Q K^T + B */
static void compute_scores(const block *b)
{
    const weft_heads *h = b->h;
    const weft_tile *t = &b->tile;
    weft_product p = {
        .dtype = h->dtype, .m = t->n_rows, .n = t->n, .k = h->n_feature, .alpha = h->scale};
    p.a = weft_heads_matrix(h, WEFT_Q, t->head, t->begin);
    p.b = transposed(weft_heads_matrix(h, WEFT_K, t->head, t->first));
    p.c = (weft_matrix){b->s, t->n, 1};
    weft_multiply(&p);
    weft_tile_score(h, t, b->s);
}

/* dp = dO V^T */
static void compute_slopes(const block *b)
{
    const weft_heads *h = b->h;
    const weft_tile *t = &b->tile;
    weft_product p = {.dtype = h->dtype, .m = t->n_rows, .n = t->n, .k = h->n_feature, .alpha = 1};
    p.a = weft_heads_matrix(h, WEFT_O, t->head, t->begin);
    p.b = transposed(weft_heads_matrix(h, WEFT_V, t->head, t->first));
    p.c = (weft_matrix){b->dp, t->n, 1};
    weft_multiply(&p);
}

/* s becomes P, dp becomes dS; what a row does not see becomes 0 in both. */
static void differentiate_tile(const block *b)
{
    const weft_heads *h = b->h;
    const weft_row_math *math = &weft_row_maths[h->dtype];
    for (int64_t i = 0; i < b->tile.n_rows; i++) {
        int64_t seen[2];
        weft_tile_seen(h, &b->tile, i, seen);
        const size_t row = (size_t)(i * b->tile.n) * h->bytes;
        char *s = b->s + row + (size_t)seen[0] * h->bytes,
             *dp = b->dp + row + (size_t)seen[0] * h->bytes;
        math->probabilities(s, seen[1] - seen[0], b->kept[i]);
        math->score_gradient(s, dp, seen[1] - seen[0], b->mean[i]);
        weft_row_clear_outside(b->s + row, seen, b->tile.n, h->bytes);
        weft_row_clear_outside(b->dp + row, seen, b->tile.n, h->bytes);
    }
}

/* dq = or += scale dS K, dk += scale dS^T Q, dv += P^T dO */
static void add_gradients(const block *b)
{
    const weft_heads *h = b->h;
    const weft_tile *t = &b->tile;
    const weft_matrix s = {b->s, t->n, 1}, dp = {b->dp, t->n, 1};
    weft_product p = {
        .dtype = h->dtype, .m = t->n_rows, .n = h->n_feature, .k = t->n, .alpha = h->scale};
    p.beta = t->first == b->seen[0] ? 0 : 1;
    p.a = dp;
    p.b = weft_heads_matrix(h, WEFT_K, t->head, t->first);
    p.c = weft_heads_matrix(h, WEFT_DQ, t->head, t->begin);
    weft_multiply(&p);
    p.m = t->n, p.k = t->n_rows, p.beta = 1;
    p.a = transposed(dp);
    p.b = weft_heads_matrix(h, WEFT_Q, t->head, t->begin);
    p.c = weft_heads_matrix(h, WEFT_DK, t->head, t->first);
    weft_multiply(&p);
    p.alpha = 1;
    p.a = transposed(s);
    p.b = weft_heads_matrix(h, WEFT_O, t->head, t->begin);
    p.c = weft_heads_matrix(h, WEFT_DV, t->head, t->first);
    weft_multiply(&p);
}

/* dB += dS */
static void add_bias_gradient(const block *b)
{
    const weft_heads *h = b->h;
    const weft_matrix to = weft_tile_matrix(h, WEFT_DBIAS, &b->tile);
    for (int64_t i = 0; i < b->tile.n_rows; i++)
        weft_row_maths[h->dtype].add_to((char *)to.data + (size_t)(i * to.row) * h->bytes,
                                        to.column, b->dp + (size_t)(i * b->tile.n) * h->bytes,
                                        b->tile.n);
}

/* The next tile from memory row `first` on that is not hidden; false: there is none. */
static bool find_tile(block *b, int64_t first)
{
    for (; first < b->seen[1]; first += b->most) {
        const int64_t left = b->seen[1] - first;
        b->tile.first = first;
        b->tile.n = left < b->most ? left : b->most;
        if (!weft_tile_is_hidden(b->h, &b->tile)) return true;
    }
    return false;
}

static void load_rows(block *b)
{
    for (int64_t i = 0; i < b->tile.n_rows; i++) {
        b->kept[i] = weft_heads_kept(b->h, b->tile.head, b->tile.begin + i);
        b->mean[i] = weft_heads_mean(b->h, b->tile.head, b->tile.begin + i);
    }
}

static void run_block(block *b)
{
    int64_t last[2];
    weft_heads_seen(b->h, b->tile.begin, b->seen);
    weft_heads_seen(b->h, b->tile.begin + b->tile.n_rows - 1, last);
    b->seen[1] = last[1];
    load_rows(b);
    for (bool more = find_tile(b, b->seen[0]); more; more = find_tile(b, b->tile.first + b->most)) {
        compute_scores(b);
        compute_slopes(b);
        differentiate_tile(b);
        if (b->h->data[WEFT_DQ] != NULL) add_gradients(b);
        if (b->h->data[WEFT_DBIAS] != NULL) add_bias_gradient(b);
    }
}

/* Tasks of `n_heads` heads by `n_rows` query rows, a multiple of the block. */
typedef struct pass {
    weft_heads heads;
    int64_t n_heads, n_rows;
} pass;

static void run_rows(block *b, int64_t begin, int64_t end)
{
    weft_tile *t = &b->tile;
    for (t->begin = begin; t->begin < end; t->begin += WEFT_QUERY_BLOCK) {
        t->n_rows = end - t->begin < WEFT_QUERY_BLOCK ? end - t->begin : WEFT_QUERY_BLOCK;
        run_block(b);
    }
}

static int64_t parts_of_rows(const pass *p)
{
    return (p->heads.n_query + p->n_rows - 1) / p->n_rows;
}

static void run_tasks(void *argument, int64_t begin, int64_t end, int lane)
{
    const pass *p = argument;
    const weft_heads *h = &p->heads;
    block b = {.h = h, .s = weft_stream_scratch(h->stream, lane)};
    b.most = MEMORY_TILE < h->n_memory ? MEMORY_TILE : h->n_memory;
    b.dp = b.s + (size_t)(WEFT_QUERY_BLOCK * b.most) * h->bytes;
    for (int64_t task = begin; task < end; task++) {
        const int64_t n_parts = parts_of_rows(p), first = task / n_parts * p->n_heads,
                      row = task % n_parts * p->n_rows;
        const int64_t last_row = row + p->n_rows < h->n_query ? row + p->n_rows : h->n_query;
        for (b.tile.head = first; b.tile.head < first + p->n_heads; b.tile.head++)
            run_rows(&b, row, last_row);
    }
}

static void run_pass(pass p)
{
    weft_parallel(p.heads.stream, p.heads.n_heads / p.n_heads * parts_of_rows(&p), 1, run_tasks,
                  &p);
}

static void run(const weft_heads *h)
{
    const int64_t n_lanes = weft_stream_lanes(h->stream);
    pass p = {*h, h->n_together, h->n_query};
    if (h->n_together == h->n_grouped || h->n_heads / h->n_together >= n_lanes) {
        run_pass(p);
        return;
    }
    p.n_heads = h->n_grouped;
    p.heads.data[WEFT_DBIAS] = NULL;
    run_pass(p);
    p = (pass){*h, h->n_together, h->row[WEFT_DBIAS] == 0 ? h->n_query : WEFT_QUERY_BLOCK};
    p.heads.data[WEFT_DQ] = p.heads.data[WEFT_DK] = p.heads.data[WEFT_DV] = NULL;
    run_pass(p);
}

static void differentiate(const weft_heads *h)
{
    if (weft_heads_fit_tiles(h))
        run(h);
    else
        weft_attention_grad_rows(h);
}

static void differentiate_blocks(const weft_call *call)
{
    const bool is_empty = weft_view_count(&call->in[0]) == 0 || weft_view_count(&call->in[1]) == 0;
    const int64_t n = is_empty ? 0 : weft_heads_n_blocks(call);
    weft_heads h;
    const weft_attention_attributes *attributes = call->attributes;
    if (n == 1 && attributes->memory_end == 0) {
        weft_heads_open(&h, call, 0);
        if (weft_attention_grad_panels(&h)) return;
    }
    weft_attention_clear(call);
    for (int64_t head = 0; head < n; head++) {
        weft_heads_open(&h, call, head);
        if (h.n_memory > 0 && !weft_attention_grad_panels(&h)) differentiate(&h);
    }
}

void weft_attention_grad_cpu(const weft_call *call)
{
    weft_call wide;
    weft_widen_call(call, &wide);
    differentiate_blocks(&wide);
    weft_narrow_results(call, &wide);
}

const weft_kernel weft_kernel_attention_grad = {
    .size = sizeof(weft_kernel),
    .name = "tiles",
    .device = WEFT_CPU,
    .dtypes = WEFT_FLOAT_DTYPES | WEFT_DTYPE_BIT(WEFT_BF16),
    .scratch = weft_widened_bytes,
    .launch = weft_attention_grad_cpu,
    .converts = true,
};
