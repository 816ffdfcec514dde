/* attention_heads.c: tensors of attention seen as heads, and the row loops of its softmax; see
 * attention.h. */
#include "cpu/attention.h"

#include <math.h>

#include "weft/extend/math.h"
#include "cpu/nest.h"

static void open_tensor(weft_heads *h, int tensor, const weft_heads_call *call)
{
    const weft_strided strided = weft_strided_view(call->view[tensor]);
    const size_t bytes = weft_dtype_bytes(call->view[tensor]->dtype);
    h->data[tensor] = call->view[tensor]->data;
    h->row[tensor] = weft_strided_of(&strided, weft_heads_row(call, tensor));
    h->column[tensor] = weft_strided_of(&strided, weft_heads_column(call, tensor));
    for (int d = 0; d < h->n_dims; d++)
        h->stride[tensor][d] = weft_strided_of(&strided, call->dim[d]);
    for (int which = 0; which < 2 && h->data[tensor] != NULL; which++) {
        const char *dim;
        const int64_t at = weft_heads_at(call, tensor, which, &dim);
        if (dim != NULL) h->data[tensor] += at * weft_strided_of(&strided, dim) * (int64_t)bytes;
    }
}

void weft_heads_open(weft_heads *h, const weft_call *call, int64_t block)
{
    const weft_heads_call c = weft_heads_of(call, block);
    *h = (weft_heads){.dtype = call->in[0].dtype,
                      .bytes = weft_dtype_bytes(call->in[0].dtype),
                      .n_dims = c.n_dims,
                      .n_heads = c.n_heads,
                      .n_grouped = c.n_grouped,
                      .n_together = c.n_shared * c.n_apart,
                      .n_query = c.n_query,
                      .n_memory = c.n_memory,
                      .n_feature = c.n_feature,
                      .first_query = c.first_query,
                      .first_memory = c.first_memory,
                      .back = c.back,
                      .ahead = c.ahead,
                      .scale = c.attributes->scale,
                      .stream = call->stream};
    memcpy(h->size, c.size, sizeof h->size);
    for (int t = 0; t < WEFT_HEAD_TENSORS; t++)
        if (c.view[t] != NULL) open_tensor(h, t, &c);
}

bool weft_heads_fit_tiles(const weft_heads *h)
{
    for (int t = 0; t < WEFT_HEAD_MATRICES; t++) {
        if (h->data[t] == NULL || h->n_feature == 1) continue;
        if (!weft_matrix_fits(WEFT_QUERY_BLOCK, h->n_feature, h->row[t], h->column[t]))
            return false;
    }
    return (size_t)h->n_feature * WEFT_QUERY_BLOCK * h->bytes <= WEFT_LANE_SCRATCH / 2;
}

weft_matrix weft_heads_matrix(const weft_heads *h, int tensor, int64_t head, int64_t first)
{
    const size_t bytes = tensor == WEFT_MASK ? sizeof(int32_t) : h->bytes;
    int64_t offset = first * h->row[tensor];
    for (int d = h->n_dims - 1; d >= 0; d--) {
        offset += head % h->size[d] * h->stride[tensor][d];
        head /= h->size[d];
    }
    return (weft_matrix){h->data[tensor] + (size_t)offset * bytes, h->row[tensor],
                         h->column[tensor]};
}

/* ---- what is kept of a row -------------------------------------------------------------------- */

static double element(const weft_heads *h, const void *data, int64_t i)
{
    return h->dtype == WEFT_F32 ? (double)((const float *)data)[i] : ((const double *)data)[i];
}

weft_row_kept weft_heads_kept(const weft_heads *h, int64_t head, int64_t row)
{
    const weft_matrix kept = weft_heads_matrix(h, WEFT_STATS, head, row);
    const double max = element(h, kept.data, 0), sum = element(h, kept.data, kept.column);
    return sum == 0 ? (weft_row_kept){(double)INFINITY, 0} : (weft_row_kept){max, 1 / sum};
}

static void put(const weft_heads *h, void *data, int64_t i, double value)
{
    if (h->dtype == WEFT_F32)
        ((float *)data)[i] = (float)value;
    else
        ((double *)data)[i] = value;
}

void weft_heads_keep(const weft_heads *h, int64_t head, int64_t row, double max, double sum)
{
    const weft_matrix kept = weft_heads_matrix(h, WEFT_STATS, head, row);
    put(h, kept.data, 0, sum == 0 ? -(double)INFINITY : max);
    put(h, kept.data, kept.column, sum);
}

double weft_heads_mean(const weft_heads *h, int64_t head, int64_t row)
{
    const weft_matrix y = weft_heads_matrix(h, WEFT_Y, head, row),
                      dy = weft_heads_matrix(h, WEFT_O, head, row);
    double sum = 0;
    if (y.column == 1 && dy.column == 1)
        return weft_row_maths[h->dtype].dot(y.data, dy.data, h->n_feature);
    for (int64_t f = 0; f < h->n_feature; f++)
        sum += element(h, y.data, f * y.column) * element(h, dy.data, f * dy.column);
    return sum;
}

/* ---- bias and mask of a tile ----------------------------------------------------------------- */

weft_matrix weft_tile_matrix(const weft_heads *h, int tensor, const weft_tile *tile)
{
    const size_t bytes = tensor == WEFT_MASK ? sizeof(int32_t) : h->bytes;
    weft_matrix matrix = weft_heads_matrix(h, tensor, tile->head, tile->begin);
    matrix.data = (char *)matrix.data + (size_t)(tile->first * matrix.column) * bytes;
    return matrix;
}

bool weft_tile_is_hidden(const weft_heads *h, const weft_tile *tile)
{
    if (h->data[WEFT_MASK] == NULL) return false;
    const weft_matrix mask = weft_tile_matrix(h, WEFT_MASK, tile);
    const int64_t n_rows = mask.row == 0 ? 1 : tile->n_rows, n = mask.column == 0 ? 1 : tile->n;
    for (int64_t i = 0; i < n_rows; i++)
        for (int64_t j = 0; j < n; j++)
            if (((const int32_t *)mask.data)[i * mask.row + j * mask.column] != 0) return false;
    return true;
}

void weft_tile_score(const weft_heads *h, const weft_tile *tile, char *scores)
{
    const weft_row_math *math = &weft_row_maths[h->dtype];
    weft_matrix bias = {0}, mask = {0};
    if (h->data[WEFT_BIAS] != NULL) bias = weft_tile_matrix(h, WEFT_BIAS, tile);
    if (h->data[WEFT_MASK] != NULL) mask = weft_tile_matrix(h, WEFT_MASK, tile);
    if (bias.data == NULL && mask.data == NULL) return;
    for (int64_t i = 0; i < tile->n_rows; i++) {
        char *row = scores + (size_t)(i * tile->n) * h->bytes;
        if (bias.data != NULL)
            math->add(row, (const char *)bias.data + (size_t)(i * bias.row) * h->bytes, bias.column,
                      tile->n);
        if (mask.data != NULL)
            math->hide(row, (const int32_t *)mask.data + i * mask.row, mask.column, tile->n);
    }
}

/* ---- loops over one row ---------------------------------------------------------------------- */

#define ROW_MATH(T, suffix)                                                                        \
    WEFT_TARGET_CLONES static T max_##suffix(const T *x, int64_t n)                                \
    {                                                                                              \
        T m = x[0];                                                                                \
        WEFT_SIMD(reduction(max : m)) for (int64_t i = 1; i < n; i++) m = x[i] > m ? x[i] : m;     \
        return m;                                                                                  \
    }                                                                                              \
    WEFT_TARGET_CLONES static T exp_##suffix(T *x, int64_t n, T max)                               \
    {                                                                                              \
        T sum = 0;                                                                                 \
        WEFT_SIMD(reduction(+ : sum)) for (int64_t i = 0; i < n; i++)                              \
        {                                                                                          \
            const T e = weft_exp_##suffix(x[i] - max);                                             \
            x[i] = e;                                                                              \
            sum += e;                                                                              \
        }                                                                                          \
        return sum;                                                                                \
    }                                                                                              \
    static double enter_##suffix(weft_softmax *state, int i, void *scores, int64_t n)              \
    {                                                                                              \
        const T seen = max_##suffix(scores, n), before = (T)state->max[i];                         \
        const T max = seen > before ? seen : before;                                               \
        if (max == (T)-INFINITY) { /* nothing is seen yet: weights of 0; NaN stays NaN */          \
            (void)exp_##suffix(scores, n, 0);                                                      \
            return 1;                                                                              \
        }                                                                                          \
        const double by = max == before ? 1 : (double)weft_exp_##suffix(before - max);             \
        const double sum = (double)exp_##suffix(scores, n, max);                                   \
        state->max[i] = (double)max;                                                               \
        state->sum[i] = state->sum[i] * by + sum;                                                  \
        return by;                                                                                 \
    }                                                                                              \
    WEFT_TARGET_CLONES static double dot_##suffix(const void *a, const void *b, int64_t n)         \
    {                                                                                              \
        const T *x = a, *y = b;                                                                    \
        T sum = 0;                                                                                 \
        _Pragma("omp simd reduction(+ : sum)") for (int64_t i = 0; i < n; i++) sum += x[i] * y[i]; \
        return (double)sum;                                                                        \
    }                                                                                              \
    WEFT_TARGET_CLONES static void probabilities_##suffix(void *scores, int64_t n,                 \
                                                          weft_row_kept kept)                      \
    {                                                                                              \
        T *x = scores;                                                                             \
        const T base = (T)kept.base, over = (T)kept.over;                                          \
        for (int64_t i = 0; i < n; i++)                                                            \
            x[i] = weft_exp_##suffix(x[i] - base) * over;                                          \
    }                                                                                              \
    WEFT_TARGET_CLONES static void score_gradient_##suffix(const void *p, void *dp, int64_t n,     \
                                                           double dot)                             \
    {                                                                                              \
        const T *x = p;                                                                            \
        T *y = dp;                                                                                 \
        const T d = (T)dot;                                                                        \
        WEFT_IVDEP                                                                                 \
        for (int64_t i = 0; i < n; i++)                                                            \
            y[i] = x[i] * (y[i] - d);                                                              \
    }                                                                                              \
    static void multiply_##suffix(void *data, int64_t n, double by)                                \
    {                                                                                              \
        T *x = data;                                                                               \
        for (int64_t i = 0; i < n; i++)                                                            \
            x[i] *= (T)by;                                                                         \
    }                                                                                              \
    WEFT_TARGET_CLONES static void store_##suffix(void *to, int64_t stride, const void *from,      \
                                                  int64_t n, double by)                            \
    {                                                                                              \
        T *y = to;                                                                                 \
        const T *x = from;                                                                         \
        if (stride == 1) {                                                                         \
            WEFT_IVDEP                                                                             \
            for (int64_t i = 0; i < n; i++)                                                        \
                y[i] = x[i] * (T)by;                                                               \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i = 0; i < n; i++)                                                            \
            y[i * stride] = x[i] * (T)by;                                                          \
    }                                                                                              \
    WEFT_TARGET_CLONES static void add_##suffix(void *to, const void *from, int64_t stride,        \
                                                int64_t n)                                         \
    {                                                                                              \
        T *x = to;                                                                                 \
        const T *y = from;                                                                         \
        if (stride == 1) {                                                                         \
            WEFT_IVDEP                                                                             \
            for (int64_t i = 0; i < n; i++)                                                        \
                x[i] += y[i];                                                                      \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i = 0; i < n; i++)                                                            \
            x[i] += y[i * stride];                                                                 \
    }                                                                                              \
    WEFT_TARGET_CLONES static void add_to_##suffix(void *to, int64_t stride, const void *from,     \
                                                   int64_t n)                                      \
    {                                                                                              \
        T *y = to, sum = 0;                                                                        \
        const T *x = from;                                                                         \
        if (stride == 1) {                                                                         \
            WEFT_IVDEP                                                                             \
            for (int64_t i = 0; i < n; i++)                                                        \
                y[i] += x[i];                                                                      \
        } else if (stride == 0) {                                                                  \
            _Pragma("omp simd reduction(+ : sum)") for (int64_t i = 0; i < n; i++) sum += x[i];    \
            *y += sum;                                                                             \
        } else {                                                                                   \
            for (int64_t i = 0; i < n; i++)                                                        \
                y[i * stride] += x[i];                                                             \
        }                                                                                          \
    }                                                                                              \
    WEFT_TARGET_CLONES static void hide_##suffix(void *data, const int32_t *mask, int64_t stride,  \
                                                 int64_t n)                                        \
    {                                                                                              \
        T *x = data;                                                                               \
        if (stride == 1) {                                                                         \
            WEFT_IVDEP                                                                             \
            for (int64_t i = 0; i < n; i++)                                                        \
                x[i] = mask[i] != 0 ? x[i] : (T)-INFINITY;                                         \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i = 0; i < n; i++)                                                            \
            x[i] = mask[i * stride] != 0 ? x[i] : (T)-INFINITY;                                    \
    }

ROW_MATH(float, f32)
ROW_MATH(double, f64)

#define ROW_TABLE(s)                                                                               \
    {                                                                                              \
        enter_##s, dot_##s, probabilities_##s, score_gradient_##s, multiply_##s, store_##s,        \
            add_##s, add_to_##s, hide_##s                                                          \
    }
const weft_row_math weft_row_maths[WEFT_I32] = {ROW_TABLE(f32), ROW_TABLE(f64)};
