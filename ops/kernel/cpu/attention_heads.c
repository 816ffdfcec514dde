/* attention_heads.c: tensors of attention seen as heads, and the row loops of its softmax; see
 * attention.h. */
#include "cpu/attention.h"
#include "cpu/math.h"
#include "cpu/nest.h"

static void open_tensor(weft_heads *h, int tensor, const weft_view *view, const char *rows,
                        const char *feature, const weft_shape *q, const char *query)
{
    const weft_strided strided = weft_strided_view(view);
    h->data[tensor] = view->data;
    h->row[tensor] = weft_strided_of(&strided, rows);
    h->column[tensor] = weft_strided_of(&strided, feature);
    int n = 0;
    for (int d = 0; d < q->n_dims; d++) {
        const char *name = q->dims[d].name;
        if (strcmp(name, query) == 0 || strcmp(name, feature) == 0) continue;
        h->stride[tensor][n++] = weft_strided_of(&strided, name);
    }
}

void weft_heads_open(weft_heads *h, const weft_call *call, const weft_view *o,
                     const weft_view *extra)
{
    const weft_attention_attributes *a = call->attributes;
    const weft_view *q = &call->in[0], *k = &call->in[1];
    const weft_view *views[WEFT_HEAD_TENSORS] = {q, k, &call->in[2], o};
    for (int t = WEFT_DQ; t < WEFT_HEAD_TENSORS && extra != NULL; t++)
        views[t] = &extra[t - WEFT_DQ];
    *h = (weft_heads){.dtype = q->dtype,
                      .bytes = weft_dtype_bytes(q->dtype),
                      .n_heads = 1,
                      .stream = call->stream};
    h->scale = a->scale, h->causal = a->causal != 0;
    const int query = weft_shape_find(&q->shape, a->query),
              memory = weft_shape_find(&k->shape, a->memory);
    const int feature = weft_shape_find(&q->shape, a->feature);
    h->n_query = weft_view_size(q, query), h->first_query = q->box.begin[query];
    h->n_memory = weft_view_size(k, memory), h->first_memory = k->box.begin[memory];
    h->n_feature = weft_view_size(q, feature);
    for (int d = 0; d < q->shape.n_dims; d++) {
        if (d == query || d == feature) continue;
        h->size[h->n_dims++] = weft_view_size(q, d);
        h->n_heads *= weft_view_size(q, d);
    }
    for (int t = 0; t < WEFT_HEAD_TENSORS && views[t] != NULL; t++) {
        const bool by_query = t == WEFT_Q || t == WEFT_O || t == WEFT_DQ;
        open_tensor(h, t, views[t], by_query ? a->query : a->memory, a->feature, &q->shape,
                    a->query);
    }
}

bool weft_heads_fit_tiles(const weft_heads *h)
{
    for (int t = 0; t < WEFT_HEAD_TENSORS; t++) {
        if (h->data[t] == NULL || h->n_feature == 1) continue;
        if (!weft_matrix_fits(WEFT_QUERY_BLOCK, h->n_feature, h->row[t], h->column[t]))
            return false;
    }
    return (size_t)h->n_feature * WEFT_QUERY_BLOCK * h->bytes <= WEFT_LANE_SCRATCH / 2;
}

weft_matrix weft_heads_matrix(const weft_heads *h, int tensor, int64_t head, int64_t first)
{
    int64_t offset = first * h->row[tensor];
    for (int d = h->n_dims - 1; d >= 0; d--) {
        offset += head % h->size[d] * h->stride[tensor][d];
        head /= h->size[d];
    }
    return (weft_matrix){h->data[tensor] + (size_t)offset * h->bytes, h->row[tensor],
                         h->column[tensor]};
}

/* ---- loops over one row ---------------------------------------------------------------------- */

#define ROW_MATH(T, suffix)                                                                        \
    WEFT_CLONES static T max_##suffix(const T *x, int64_t n)                                       \
    {                                                                                              \
        T m = x[0];                                                                                \
        WEFT_SIMD(reduction(max : m)) for (int64_t i = 1; i < n; i++) m = x[i] > m ? x[i] : m;     \
        return m;                                                                                  \
    }                                                                                              \
    WEFT_CLONES static T exp_##suffix(T *x, int64_t n, T max)                                      \
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
        if (max == (T)-INFINITY)                                                                   \
            return 1; /* no score is above -inf: only NaN or overflow does that */                 \
        const double by = max == before ? 1 : (double)weft_exp_##suffix(before - max);             \
        const double sum = (double)exp_##suffix(scores, n, max);                                   \
        state->max[i] = (double)max;                                                               \
        state->sum[i] = state->sum[i] * by + sum;                                                  \
        return by;                                                                                 \
    }                                                                                              \
    WEFT_CLONES static double dot_##suffix(const void *a, const void *b, int64_t n)                \
    {                                                                                              \
        const T *x = a, *y = b;                                                                    \
        T sum = 0;                                                                                 \
        _Pragma("omp simd reduction(+ : sum)") for (int64_t i = 0; i < n; i++) sum += x[i] * y[i]; \
        return (double)sum;                                                                        \
    }                                                                                              \
    WEFT_CLONES static void probabilities_##suffix(void *scores, int64_t n, double max,            \
                                                   double over_sum)                                \
    {                                                                                              \
        T *x = scores;                                                                             \
        const T m = (T)max, by = (T)over_sum;                                                      \
        for (int64_t i = 0; i < n; i++)                                                            \
            x[i] = weft_exp_##suffix(x[i] - m) * by;                                               \
    }                                                                                              \
    WEFT_CLONES static void score_gradient_##suffix(const void *p, void *dp, int64_t n,            \
                                                    double dot, double scale)                      \
    {                                                                                              \
        const T *x = p;                                                                            \
        T *y = dp;                                                                                 \
        const T d = (T)dot, by = (T)scale;                                                         \
        WEFT_IVDEP                                                                                 \
        for (int64_t i = 0; i < n; i++)                                                            \
            y[i] = x[i] * (y[i] - d) * by;                                                         \
    }                                                                                              \
    static void multiply_##suffix(void *data, int64_t n, double by)                                \
    {                                                                                              \
        T *x = data;                                                                               \
        for (int64_t i = 0; i < n; i++)                                                            \
            x[i] *= (T)by;                                                                         \
    }                                                                                              \
    static void store_##suffix(void *to, int64_t stride, const void *from, int64_t n, double by)   \
    {                                                                                              \
        T *y = to;                                                                                 \
        const T *x = from;                                                                         \
        for (int64_t i = 0; i < n; i++)                                                            \
            y[i * stride] = x[i] * (T)by;                                                          \
    }

ROW_MATH(float, f32)
ROW_MATH(double, f64)

#define ROW_TABLE(s)                                                                               \
    {                                                                                              \
        enter_##s, dot_##s, probabilities_##s, score_gradient_##s, multiply_##s, store_##s         \
    }
const weft_row_math weft_row_maths[WEFT_I32] = {ROW_TABLE(f32), ROW_TABLE(f64)};
