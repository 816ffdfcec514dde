/* attention.c: softmax(scale q.k) v, tile by tile.
 *
 * A task is a block of query rows of one head. It walks over tiles of memory rows: S = scale Q K^T
 * by BLAS, its softmax so far (running max and sum), O = O * correction + P V by BLAS. Tiles wholly
 * above the diagonal are never touched. All of it stays in the lane's scratch. source  Dao et al.
 * 2022, "FlashAttention"; Milakov and Gimelshein 2018 for the online softmax
 */
#include "cpu/attention.h"

#include <math.h>
#include <string.h>

enum { MEMORY_TILE = 256 };

/* [n_rows, n] scores of a tile; of row i only the first n_seen - first are seen, the rest become 0.
 */
static void enter_tile(const weft_heads *h, weft_softmax *state, char *scores, char *sum,
                       const int64_t rows[2], const int64_t tile[2])
{
    const weft_row_math *math = &weft_row_maths[h->dtype];
    const int64_t n = tile[1] - tile[0];
    for (int64_t i = 0; i < rows[1] - rows[0]; i++) {
        char *row = scores + (size_t)(i * n) * h->bytes;
        int64_t seen = weft_heads_seen(h, rows[0] + i) - tile[0];
        seen = seen < 0 ? 0 : seen > n ? n : seen;
        memset(row + (size_t)seen * h->bytes, 0, (size_t)(n - seen) * h->bytes);
        if (seen == 0) continue;
        const double by = math->enter(state, (int)i, row, seen);
        if (by != 1 && tile[0] > 0)
            math->multiply(sum + (size_t)(i * h->n_feature) * h->bytes, h->n_feature, by);
    }
}

static void run_block(const weft_heads *h, char *scratch, int64_t head, int64_t begin)
{
    const weft_row_math *math = &weft_row_maths[h->dtype];
    const int64_t left = h->n_query - begin,
                  n_rows = left < WEFT_QUERY_BLOCK ? left : WEFT_QUERY_BLOCK;
    const int64_t seen = weft_heads_seen(h, begin + n_rows - 1), rows[2] = {begin, begin + n_rows};
    weft_softmax state;
    for (int i = 0; i < WEFT_QUERY_BLOCK; i++)
        state.max[i] = -(double)INFINITY, state.sum[i] = 0;
    char *sum =
        scratch + (size_t)(WEFT_QUERY_BLOCK * MEMORY_TILE) * h->bytes; /* [n_rows, feature] */
    weft_product qk = {.dtype = h->dtype, .m = n_rows, .k = h->n_feature, .alpha = h->scale};
    weft_product pv = {.dtype = h->dtype, .m = n_rows, .n = h->n_feature, .alpha = 1};
    qk.a = weft_heads_matrix(h, WEFT_Q, head, begin);
    pv.c = (weft_matrix){sum, h->n_feature, 1};
    if (seen == 0) memset(sum, 0, (size_t)(n_rows * h->n_feature) * h->bytes);
    for (int64_t first = 0; first < seen; first += MEMORY_TILE) {
        const int64_t n = seen - first < MEMORY_TILE ? seen - first : MEMORY_TILE;
        const weft_matrix k = weft_heads_matrix(h, WEFT_K, head, first);
        qk.n = pv.k = n;
        qk.b = (weft_matrix){k.data, k.column, k.row};
        qk.c = pv.a = (weft_matrix){scratch, n, 1};
        pv.b = weft_heads_matrix(h, WEFT_V, head, first);
        weft_multiply(&qk);
        enter_tile(h, &state, scratch, sum, rows, (int64_t[2]){first, first + n});
        weft_multiply(&pv);
        pv.beta = 1;
    }
    const weft_matrix out = weft_heads_matrix(h, WEFT_O, head, begin);
    for (int64_t i = 0; i < n_rows; i++)
        math->store((char *)out.data + (size_t)(i * out.row) * h->bytes, out.column,
                    sum + (size_t)(i * h->n_feature) * h->bytes, h->n_feature,
                    state.sum[i] == 0 ? 0 : 1 / state.sum[i]);
}

static void run_blocks(void *argument, int64_t begin, int64_t end, int lane)
{
    const weft_heads *h = argument;
    const int64_t n_blocks = (h->n_query + WEFT_QUERY_BLOCK - 1) / WEFT_QUERY_BLOCK;
    char *scratch = weft_stream_scratch(h->stream, lane);
    for (int64_t i = begin; i < end; i++)
        run_block(h, scratch, i / n_blocks, i % n_blocks * WEFT_QUERY_BLOCK);
}

void weft_attention_cpu(const weft_call *call)
{
    if (weft_view_count(&call->out[0]) == 0) return;
    weft_heads h;
    weft_heads_open(&h, call, &call->out[0], NULL);
    if (!weft_heads_fit_tiles(&h)) {
        weft_attention_plain(call);
        return;
    }
    const int64_t n_blocks = (h.n_query + WEFT_QUERY_BLOCK - 1) / WEFT_QUERY_BLOCK;
    weft_parallel(call->stream, h.n_heads * n_blocks, 1, run_blocks, &h);
}
