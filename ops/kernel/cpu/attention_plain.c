/* attention_plain.c: attention and its gradient row by row, by the definition; for any strides, and
 * the oracle.
 *
 * Scores are computed again wherever they are needed, so nothing has to be kept. Sums are in
 * double.
 */
#include "cpu/attention.h"

#include <math.h>
#include <string.h>

static double get(const weft_heads *h, const weft_matrix *x, int64_t row, int64_t column)
{
    const int64_t i = row * x->row + column * x->column;
    return h->dtype == WEFT_F32 ? (double)((const float *)x->data)[i]
                                : ((const double *)x->data)[i];
}

static void add(const weft_heads *h, const weft_matrix *x, int64_t row, int64_t column, double by)
{
    const int64_t i = row * x->row + column * x->column;
    if (h->dtype == WEFT_F32)
        ((float *)x->data)[i] += (float)by;
    else
        ((double *)x->data)[i] += by;
}

static double dot_rows(const weft_heads *h, const weft_matrix *a, int64_t i, const weft_matrix *b,
                       int64_t j)
{
    double sum = 0;
    for (int64_t f = 0; f < h->n_feature; f++)
        sum += get(h, a, i, f) * get(h, b, j, f);
    return sum;
}

/* One head: its matrices, and the softmax of the row at hand. */
typedef struct head {
    weft_matrix m[WEFT_HEAD_TENSORS];
    double max, sum;
} head;

static double probability(const weft_heads *h, const head *x, int64_t i, int64_t j)
{
    return exp(h->scale * dot_rows(h, &x->m[WEFT_Q], i, &x->m[WEFT_K], j) - x->max) / x->sum;
}

static void find_softmax(const weft_heads *h, head *x, int64_t i)
{
    const int64_t seen = weft_heads_seen(h, i);
    double max = -(double)INFINITY, sum = 0;
    for (int64_t j = 0; j < seen; j++)
        max = fmax(max, h->scale * dot_rows(h, &x->m[WEFT_Q], i, &x->m[WEFT_K], j));
    x->max = max, x->sum = 1;
    for (int64_t j = 0; j < seen; j++)
        sum += probability(h, x, i, j);
    x->sum = sum;
}

static void forward(const weft_heads *h, head *x, int64_t i)
{
    find_softmax(h, x, i);
    for (int64_t j = 0; j < weft_heads_seen(h, i); j++) {
        const double p = probability(h, x, i, j);
        for (int64_t f = 0; f < h->n_feature; f++)
            add(h, &x->m[WEFT_O], i, f, p * get(h, &x->m[WEFT_V], j, f));
    }
}

static void backward(const weft_heads *h, head *x, int64_t i)
{
    const int64_t seen = weft_heads_seen(h, i);
    double d = 0;
    find_softmax(h, x, i);
    for (int64_t j = 0; j < seen; j++)
        d += probability(h, x, i, j) * dot_rows(h, &x->m[WEFT_O], i, &x->m[WEFT_V], j);
    for (int64_t j = 0; j < seen; j++) {
        const double p = probability(h, x, i, j);
        const double ds = h->scale * p * (dot_rows(h, &x->m[WEFT_O], i, &x->m[WEFT_V], j) - d);
        for (int64_t f = 0; f < h->n_feature; f++) {
            add(h, &x->m[WEFT_DQ], i, f, ds * get(h, &x->m[WEFT_K], j, f));
            add(h, &x->m[WEFT_DK], j, f, ds * get(h, &x->m[WEFT_Q], i, f));
            add(h, &x->m[WEFT_DV], j, f, p * get(h, &x->m[WEFT_O], i, f));
        }
    }
}

static void run(const weft_heads *h, int n_tensors,
                void (*row)(const weft_heads *h, head *x, int64_t i))
{
    for (int64_t n = 0; n < h->n_heads; n++) {
        head x;
        for (int t = 0; t < n_tensors; t++)
            x.m[t] = weft_heads_matrix(h, t, n, 0);
        for (int64_t i = 0; i < h->n_query; i++)
            row(h, &x, i);
    }
}

static void clear(const weft_call *call)
{
    for (int i = 0; i < call->n_out; i++) {
        const size_t bytes =
            (size_t)weft_view_count(&call->out[i]) * weft_dtype_bytes(call->out[i].dtype);
        if (bytes > 0) memset(call->out[i].data, 0, bytes);
    }
}

void weft_attention_plain(const weft_call *call)
{
    weft_heads h;
    clear(call);
    weft_heads_open(&h, call, &call->out[0], NULL);
    if (h.n_memory > 0 && h.n_feature > 0) run(&h, WEFT_DQ, forward);
}

void weft_attention_grad_plain(const weft_call *call)
{
    weft_heads h;
    clear(call);
    weft_heads_open(&h, call, &call->in[3], call->out);
    if (h.n_query > 0 && h.n_memory > 0) run(&h, WEFT_HEAD_TENSORS, backward);
}
