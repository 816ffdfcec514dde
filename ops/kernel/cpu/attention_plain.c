/* attention_plain.c: attention and its gradient row by row, by the definition; for any strides, and
 * the oracle.
 *
 * Scores are computed again wherever they are needed. Sums are in double.
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

static void put(const weft_heads *h, const weft_matrix *x, int64_t row, int64_t column,
                double value)
{
    const int64_t i = row * x->row + column * x->column;
    if (h->dtype == WEFT_F32)
        ((float *)x->data)[i] = (float)value;
    else
        ((double *)x->data)[i] = value;
}

static double dot_rows(const weft_heads *h, const weft_matrix *a, int64_t i, const weft_matrix *b,
                       int64_t j)
{
    double sum = 0;
    for (int64_t f = 0; f < h->n_feature; f++)
        sum += get(h, a, i, f) * get(h, b, j, f);
    return sum;
}

/* One head: its tensors, and the softmax of the row at hand. */
typedef struct head {
    weft_matrix m[WEFT_HEAD_TENSORS];
    double max, sum;
} head;

/* -inf where the mask hides it; a number of the dtype, as what is kept of the largest is. */
static double score(const weft_heads *h, const head *x, int64_t i, int64_t j)
{
    const weft_matrix *mask = &x->m[WEFT_MASK];
    if (mask->data != NULL && ((const int32_t *)mask->data)[i * mask->row + j * mask->column] == 0)
        return -(double)INFINITY;
    const double bias = x->m[WEFT_BIAS].data == NULL ? 0 : get(h, &x->m[WEFT_BIAS], i, j);
    const double s = h->scale * dot_rows(h, &x->m[WEFT_Q], i, &x->m[WEFT_K], j) + bias;
    return h->dtype == WEFT_F32 ? (double)(float)s : s;
}

static double probability(const weft_heads *h, const head *x, int64_t i, int64_t j)
{
    return exp(score(h, x, i, j) - x->max) / x->sum;
}

/* A row that sees nothing has only probabilities of 0. Returns the sum that is kept. */
static double find_softmax(const weft_heads *h, head *x, int64_t i, const int64_t seen[2])
{
    double max = -(double)INFINITY, sum = 0;
    for (int64_t j = seen[0]; j < seen[1]; j++)
        max = fmax(max, score(h, x, i, j));
    x->max = isinf(max) && max < 0 ? 0 : max, x->sum = 1;
    for (int64_t j = seen[0]; j < seen[1]; j++)
        sum += probability(h, x, i, j);
    x->sum = sum == 0 ? 1 : sum;
    return sum;
}

static void forward(const weft_heads *h, head *x, int64_t i)
{
    int64_t seen[2];
    weft_heads_seen(h, i, seen);
    const double sum = find_softmax(h, x, i, seen);
    put(h, &x->m[WEFT_STATS], i, 0, sum == 0 ? -(double)INFINITY : x->max);
    put(h, &x->m[WEFT_STATS], i, 1, sum);
    for (int64_t f = 0; f < h->n_feature; f++)
        put(h, &x->m[WEFT_O], i, f, 0);
    for (int64_t j = seen[0]; j < seen[1]; j++) {
        const double p = probability(h, x, i, j);
        for (int64_t f = 0; f < h->n_feature; f++)
            add(h, &x->m[WEFT_O], i, f, p * get(h, &x->m[WEFT_V], j, f));
    }
}

static void backward(const weft_heads *h, head *x, int64_t i)
{
    int64_t seen[2];
    weft_heads_seen(h, i, seen);
    const double max = get(h, &x->m[WEFT_STATS], i, 0), sum = get(h, &x->m[WEFT_STATS], i, 1);
    const double d = dot_rows(h, &x->m[WEFT_O], i, &x->m[WEFT_Y], i);
    x->max = sum == 0 ? (double)INFINITY : max, x->sum = sum == 0 ? 1 : sum;
    for (int64_t j = seen[0]; j < seen[1]; j++) {
        const double p = probability(h, x, i, j);
        const double ds = p * (dot_rows(h, &x->m[WEFT_O], i, &x->m[WEFT_V], j) - d);
        if (x->m[WEFT_DBIAS].data != NULL) add(h, &x->m[WEFT_DBIAS], i, j, ds);
        for (int64_t f = 0; f < h->n_feature; f++) {
            add(h, &x->m[WEFT_DQ], i, f, h->scale * ds * get(h, &x->m[WEFT_K], j, f));
            add(h, &x->m[WEFT_DK], j, f, h->scale * ds * get(h, &x->m[WEFT_Q], i, f));
            add(h, &x->m[WEFT_DV], j, f, p * get(h, &x->m[WEFT_O], i, f));
        }
    }
}

static void run(const weft_heads *h, void (*row)(const weft_heads *h, head *x, int64_t i))
{
    for (int64_t n = 0; n < h->n_heads; n++) {
        head x = {0};
        for (int t = 0; t < WEFT_HEAD_TENSORS; t++)
            if (h->data[t] != NULL) x.m[t] = weft_heads_matrix(h, t, n, 0);
        for (int64_t i = 0; i < h->n_query; i++)
            row(h, &x, i);
    }
}

void weft_attention_clear(const weft_call *call)
{
    for (int i = 0; i < call->n_out; i++) {
        const size_t bytes =
            (size_t)weft_view_count(&call->out[i]) * weft_dtype_bytes(call->out[i].dtype);
        if (bytes > 0) memset(call->out[i].data, 0, bytes);
    }
}

void weft_attention_rows(const weft_heads *h)
{
    run(h, forward);
}

void weft_attention_grad_rows(const weft_heads *h)
{
    run(h, backward);
}

static void run_blocks(const weft_call *call, void (*row)(const weft_heads *h, head *x, int64_t i))
{
    const int64_t n = weft_view_count(&call->in[0]) == 0 && weft_view_count(&call->out[1]) == 0
                          ? 0
                          : weft_heads_n_blocks(call);
    weft_attention_clear(call);
    for (int64_t block = 0; block < n; block++) {
        weft_heads h;
        weft_heads_open(&h, call, block);
        run(&h, row);
    }
}

void weft_attention_plain(const weft_call *call)
{
    run_blocks(call, forward);
}

void weft_attention_grad_plain(const weft_call *call)
{
    run_blocks(call, backward);
}
