/* attention.c: softmax(scale q.k + bias) v, tile by tile, and the softmax's maximum and sum of each row.
 *
 * A task is a block of query rows of one head. It walks over tiles of memory rows: S = scale Q K^T
 * by BLAS, bias and mask, its softmax so far (running max and sum), O = O * correction + P V by BLAS. Tiles that
 * no row of the block sees (above the diagonal, outside the window, hidden by the mask) are never touched. All of it
 * stays in the lane's scratch.
 * source  Dao et al. 2022, "FlashAttention"; Milakov and Gimelshein 2018 for the online softmax
 */
#include "cpu/attention.h"
#include "cpu/widened.h"

#include <math.h>
#include <string.h>

enum { MEMORY_TILE = 256 };

/* Scores [n_rows, n] of a tile become weights, what a row does not see 0; `sum` [n_rows, feature] is
 * what earlier tiles left, NULL in the first. */
static void enter_tile(const weft_heads *h, weft_softmax *state, const weft_tile *tile,
                       char *scores, char *sum)
{
    const weft_row_math *math = &weft_row_maths[h->dtype];
    for (int64_t i = 0; i < tile->n_rows; i++) {
        char *row = scores + (size_t)(i * tile->n) * h->bytes;
        int64_t seen[2];
        weft_tile_seen(h, tile, i, seen);
        weft_row_clear_outside(row, seen, tile->n, h->bytes);
        if (seen[0] == seen[1]) continue;
        const double by =
            math->enter(state, (int)i, row + (size_t)seen[0] * h->bytes, seen[1] - seen[0]);
        if (by != 1 && sum != NULL)
            math->multiply(sum + (size_t)(i * h->n_feature) * h->bytes, h->n_feature, by);
    }
}

/* sum [n_rows, feature] = the weights times v over all tiles that the block sees. */
static void sum_tiles(const weft_heads *h, weft_softmax *state, weft_tile *tile, char *scores,
                      char *sum)
{
    weft_product qk = {.dtype = h->dtype, .m = tile->n_rows, .k = h->n_feature, .alpha = h->scale};
    weft_product pv = {.dtype = h->dtype, .m = tile->n_rows, .n = h->n_feature, .alpha = 1};
    qk.a = weft_heads_matrix(h, WEFT_Q, tile->head, tile->begin);
    pv.c = (weft_matrix){sum, h->n_feature, 1};
    int64_t first[2], last[2]; /* what the first row of the block sees, and the last */
    weft_heads_seen(h, tile->begin, first);
    weft_heads_seen(h, tile->begin + tile->n_rows - 1, last);
    for (tile->first = first[0]; tile->first < last[1]; tile->first += MEMORY_TILE) {
        const int64_t left = last[1] - tile->first;
        tile->n = left < MEMORY_TILE ? left : MEMORY_TILE;
        if (weft_tile_is_hidden(h, tile)) continue;
        const weft_matrix k = weft_heads_matrix(h, WEFT_K, tile->head, tile->first);
        qk.n = pv.k = tile->n;
        qk.b = (weft_matrix){k.data, k.column, k.row};
        qk.c = pv.a = (weft_matrix){scores, tile->n, 1};
        pv.b = weft_heads_matrix(h, WEFT_V, tile->head, tile->first);
        weft_multiply(&qk);
        weft_tile_score(h, tile, scores);
        enter_tile(h, state, tile, scores, pv.beta == 0 ? NULL : sum);
        weft_multiply(&pv);
        pv.beta = 1;
    }
    if (pv.beta == 0) memset(sum, 0, (size_t)(tile->n_rows * h->n_feature) * h->bytes);
}

static void run_block(const weft_heads *h, char *scratch, int64_t head, int64_t begin)
{
    const weft_row_math *math = &weft_row_maths[h->dtype];
    const int64_t left = h->n_query - begin;
    weft_tile tile = {
        .head = head, .begin = begin, .n_rows = left < WEFT_QUERY_BLOCK ? left : WEFT_QUERY_BLOCK};
    weft_softmax state;
    for (int i = 0; i < WEFT_QUERY_BLOCK; i++)
        state.max[i] = -(double)INFINITY, state.sum[i] = 0;
    char *sum = scratch + (size_t)(WEFT_QUERY_BLOCK * MEMORY_TILE) * h->bytes;
    sum_tiles(h, &state, &tile, scratch, sum);
    const weft_matrix out = weft_heads_matrix(h, WEFT_O, head, begin);
    for (int64_t i = 0; i < tile.n_rows; i++) {
        math->store((char *)out.data + (size_t)(i * out.row) * h->bytes, out.column,
                    sum + (size_t)(i * h->n_feature) * h->bytes, h->n_feature,
                    state.sum[i] == 0 ? 0 : 1 / state.sum[i]);
        weft_heads_keep(h, head, begin + i, state.max[i], state.sum[i]);
    }
}

static void run_blocks(void *argument, int64_t begin, int64_t end, int lane)
{
    const weft_heads *h = argument;
    const int64_t n_blocks = (h->n_query + WEFT_QUERY_BLOCK - 1) / WEFT_QUERY_BLOCK;
    char *scratch = weft_stream_scratch(h->stream, lane);
    for (int64_t i = begin; i < end; i++)
        run_block(h, scratch, i / n_blocks, i % n_blocks * WEFT_QUERY_BLOCK);
}

static void attend(const weft_heads *h)
{
    const int64_t n_blocks = (h->n_query + WEFT_QUERY_BLOCK - 1) / WEFT_QUERY_BLOCK;
    if (weft_attention_panels(h)) return;
    if (h->n_feature > 0 && weft_heads_fit_tiles(h))
        weft_parallel(h->stream, h->n_heads * n_blocks, 1, run_blocks, (void *)(uintptr_t)h);
    else
        weft_attention_rows(h);
}

void weft_attention_cpu(const weft_call *call)
{
    const int64_t n = weft_view_count(&call->out[1]) == 0 ? 0 : weft_heads_n_blocks(call);
    weft_call wide;
    weft_widen_call(call, &wide);
    for (int64_t block = 0; block < n; block++) {
        weft_heads h;
        weft_heads_open(&h, &wide, block);
        attend(&h);
    }
    weft_narrow_results(call, &wide);
}

const weft_kernel weft_kernel_attention = {
    .size = sizeof(weft_kernel),
    .name = "tiles",
    .device = WEFT_CPU,
    .dtypes = WEFT_FLOAT_DTYPES | WEFT_DTYPE_BIT(WEFT_BF16),
    .scratch = weft_widened_bytes,
    .launch = weft_attention_cpu,
    .converts = true,
};
