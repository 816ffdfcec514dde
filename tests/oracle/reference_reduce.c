/* reference_reduce.c: einsum, sums, maxima, the states of reductions, what is made of them, and attention. */
#include "reference.h"

#include <math.h>
#include <string.h>

#define STATE "~" /* the dim of a state's numbers */

/* ---- products and sums ----------------------------------------------------------------------- */

/* out[p] = the sum, over all coordinates that the result lacks, of the product of all operands. */
void reference_einsum_n(const reference_call *call)
{
    const reference_tensor *const x = call->in;
    const reference_tensor *operands[REFERENCE_IN + 1] = {0};
    for (int i = 0; i < call->n_in; i++)
        operands[i] = &x[i];
    REFERENCE_EACH(row, &call->out[0])
    {
        long double sum = 0;
        for (reference_point p = point_first(&row, operands); !p.done; point_next(&p)) {
            long double product = 1;
            for (int i = 0; i < call->n_in; i++)
                product *= element_get(&x[i], &p);
            sum += product;
        }
        element_put(&call->out[0], &row, sum);
    }
}

void reference_einsum(const reference_call *call)
{
    reference_einsum_n(call);
}

void reference_sum(const reference_call *call)
{
    REFERENCE_EACH(row, &call->out[0])
    {
        long double sum = 0;
        REFERENCE_EACH_IN(p, &row, &call->in[0]) sum += element_get(&call->in[0], &p);
        element_put(&call->out[0], &row, sum);
    }
}

void reference_mean_over(const reference_call *call)
{
    REFERENCE_EACH(row, &call->out[0])
    {
        long double sum = 0, n = 0;
        REFERENCE_EACH_IN(p, &row, &call->in[0]) sum += element_get(&call->in[0], &p), n++;
        element_put(&call->out[0], &row, sum / n);
    }
}

void reference_mean(const reference_call *call)
{
    reference_mean_over(call);
}

/* ---- over the dims of x that a row has not ---------------------------------------------------- */

/* The largest; a NaN where there is one. */
static long double top_of(const reference_tensor *x, const reference_point *row)
{
    long double top = -HUGE_VALL;
    REFERENCE_EACH_IN(p, row, x)
    {
        const long double value = element_get(x, &p);
        if (isnan(value)) return value;
        top = fmaxl(top, value);
    }
    return top;
}

static long double exps_of(const reference_tensor *x, const reference_point *row)
{
    const long double top = top_of(x, row);
    long double sum = 0;
    REFERENCE_EACH_IN(p, row, x)
    {
        const long double value = element_get(x, &p);
        if (value == -HUGE_VALL) continue;
        sum += value == top ? 1 : expl(value - top);
    }
    return sum;
}

static long double logsumexp_of(const reference_tensor *x, const reference_point *row)
{
    const long double top = top_of(x, row);
    return isfinite(top) ? top + logl(exps_of(x, row)) : top;
}

static int64_t argmax_of(const reference_tensor *x, const reference_point *row, const char *dim)
{
    const long double top = top_of(x, row);
    REFERENCE_EACH_IN(p, row, x)
    {
        const long double value = element_get(x, &p);
        if (value == top || isnan(value)) return point_at(&p, dim);
    }
    return -1;
}

moments moments_of(const reference_tensor *x, const reference_point *row)
{
    moments m = {0};
    REFERENCE_EACH_IN(p, row, x) m.mean += element_get(x, &p), m.count++;
    m.mean /= m.count;
    REFERENCE_EACH_IN(p, row, x) m.m2 += powl(element_get(x, &p) - m.mean, 2);
    return m;
}

void reference_reduce_max(const reference_call *call)
{
    REFERENCE_EACH(row, &call->out[0])
    element_put(&call->out[0], &row, top_of(&call->in[0], &row));
}

void reference_normalizer(const reference_call *call)
{
    REFERENCE_EACH(row, &call->out[0])
    {
        element_put(&call->out[0], &row, top_of(&call->in[0], &row));
        element_put(&call->out[1], &row, logl(exps_of(&call->in[0], &row)));
    }
}

void reference_logsumexp(const reference_call *call)
{
    REFERENCE_EACH(row, &call->out[0])
    element_put(&call->out[0], &row, logsumexp_of(&call->in[0], &row));
}

void reference_argmax(const reference_call *call)
{
    REFERENCE_EACH(row, &call->out[0])
    element_put(&call->out[0], &row, argmax_of(&call->in[0], &row, call->with.dim));
}

void reference_norm_stats(const reference_call *call)
{
    REFERENCE_EACH(row, &call->out[0])
    {
        const moments m = moments_of(&call->in[0], &row);
        element_put(&call->out[0], &row, m.mean);
        element_put(&call->out[1], &row, 1 / sqrtl(m.m2 / m.count + call->with.a));
    }
}

/* ---- states: the numbers along "~" ------------------------------------------------------------ */

/* An index is kept as a number in a double and as the bits of an int32 in a float. */
static double index_as(weft_dtype dtype, int64_t index)
{
    const int32_t bits = (int32_t)index;
    float f32;
    memcpy(&f32, &bits, sizeof f32);
    return dtype == WEFT_F32 ? (double)f32 : (double)index;
}
static int64_t index_from(weft_dtype dtype, double number)
{
    const float f32 = (float)number;
    int32_t bits;
    memcpy(&bits, &f32, sizeof bits);
    return dtype == WEFT_F32 ? bits : (int64_t)number;
}

static void put_state(const reference_tensor *state, const reference_point *row,
                      const long double *numbers)
{
    for (int c = 0; c < tensor_size(state, STATE); c++) {
        const reference_point p = point_set(row, STATE, c);
        element_put(state, &p, numbers[c]);
    }
}
static long double get_state(const reference_tensor *state, const reference_point *row, int c)
{
    const reference_point p = point_set(row, STATE, c);
    return element_get(state, &p);
}

#define STATE_OF(op, ...)                                                                          \
    void reference_##op(const reference_call *call)                                                \
    {                                                                                              \
        const reference_tensor *const x = &call->in[0];                                            \
        REFERENCE_EACH(p, &call->out[0])                                                           \
        {                                                                                          \
            const reference_point row = point_without(&p, STATE);                                  \
            const long double numbers[] = {__VA_ARGS__};                                           \
            put_state(&call->out[0], &row, numbers);                                               \
        }                                                                                          \
    }
STATE_OF(lse_state, top_of(x, &row), exps_of(x, &row))
STATE_OF(argmax_state, top_of(x, &row), index_as(x->dtype, argmax_of(x, &row, call->with.dim)))
STATE_OF(moments_state, moments_of(x, &row).count, moments_of(x, &row).mean, moments_of(x, &row).m2)

void reference_lse_finish(const reference_call *call)
{
    const reference_tensor *state = &call->in[0];
    REFERENCE_EACH(row, &call->out[0])
    {
        element_put(&call->out[0], &row, get_state(state, &row, 0));
        element_put(&call->out[1], &row, logl(get_state(state, &row, 1)));
    }
}

void reference_argmax_finish(const reference_call *call)
{
    const reference_tensor *state = &call->in[0];
    REFERENCE_EACH(row, &call->out[0])
    element_put(&call->out[0], &row, index_from(state->dtype, (double)get_state(state, &row, 1)));
}

void reference_moments_finish(const reference_call *call)
{
    const reference_tensor *state = &call->in[0];
    REFERENCE_EACH(row, &call->out[0])
    {
        const long double variance = get_state(state, &row, 2) / get_state(state, &row, 0);
        element_put(&call->out[0], &row, get_state(state, &row, 1));
        element_put(&call->out[1], &row, 1 / sqrtl(variance + call->with.a));
    }
}

/* ---- compositions over one dim ----------------------------------------------------------------- */

void reference_softmax(const reference_call *call)
{
    REFERENCE_EACH(p, &call->out[0])
    {
        const reference_point row = point_without(&p, call->with.dim);
        const long double x = element_get(&call->in[0], &p), top = top_of(&call->in[0], &row);
        element_put(&call->out[0], &p, expl(x - top) / exps_of(&call->in[0], &row));
    }
}

void reference_log_softmax(const reference_call *call)
{
    REFERENCE_EACH(p, &call->out[0])
    {
        const reference_point row = point_without(&p, call->with.dim);
        element_put(&call->out[0], &p,
                    element_get(&call->in[0], &p) - logsumexp_of(&call->in[0], &row));
    }
}

/* Of a row of logits: minus the target's mean of the logarithm of each class's share of all exps, each by the weight of
 * its class; a: how much of the target is spread evenly; b: of the square of the logarithm of the exps. */
void reference_cross_entropy(const reference_call *call)
{
    const reference_tensor *logits = &call->in[0];
    const reference_with *with = &call->with;
    const int64_t n_classes = tensor_size(logits, with->dim);
    REFERENCE_EACH(row, &call->out[0])
    {
        const int64_t label = (int64_t)element_get(&call->in[1], &row);
        const long double total = logsumexp_of(logits, &row);
        long double loss = with->b == 0 ? 0 : with->b * total * total;
        if (label < 0 || label >= n_classes) continue; /* ignored: it stays 0 */
        REFERENCE_EACH_IN(p, &row, logits)
        {
            const bool is_label = point_at(&p, with->dim) == label;
            long double target =
                (is_label ? 1 - (long double)with->a : 0) + with->a / (long double)n_classes;
            if (with->class_weights > 0) target *= element_get(&call->in[with->class_weights], &p);
            if (target != 0) loss += target * (total - element_get(logits, &p));
        }
        if (with->row_weights > 0) loss *= element_get(&call->in[with->row_weights], &row);
        element_put(&call->out[0], &row, loss);
    }
}

void reference_layer_norm(const reference_call *call)
{
    REFERENCE_EACH(p, &call->out[0])
    {
        const reference_point row = point_without(&p, call->with.dim);
        const moments m = moments_of(&call->in[0], &row);
        const long double x = element_get(&call->in[0], &p) - m.mean;
        const long double normal = x / sqrtl(m.m2 / m.count + 1e-5L);
        element_put(&call->out[0], &p,
                    normal * element_get(&call->in[1], &p) + element_get(&call->in[2], &p));
    }
}

/* ---- attention ------------------------------------------------------------------------------- */

/* A call's operands and names: rows of q, rows of k and v (maybe the same name), the dim of the dot products. */
typedef struct attending {
    const reference_tensor *q, *k, *v, *bias, *mask; /* bias, mask: NULL: none */
    const reference_with *with;
    const char *query, *memory, *feature;
    long double scale;
} attending;

static attending attending_of(const reference_call *call)
{
    const reference_with *with = &call->with;
    attending a = {.q = &call->in[0], .k = &call->in[1], .v = &call->in[2], .with = with};
    a.query = with->dim, a.memory = with->other, a.feature = with->feature;
    a.scale = with->a != 0 ? with->a : 1 / sqrtl(tensor_size(a.q, with->feature));
    if (with->bias > 0) a.bias = &call->in[with->bias];
    if (with->mask > 0) a.mask = &call->in[with->mask];
    return a;
}

/* The point of row j of the memory where `row` is a row of q. */
static reference_point memory_point(const attending *a, const reference_point *row, int64_t j)
{
    const reference_point rest = point_without(row, a->query);
    return point_set(&rest, a->memory, j);
}

/* The point where bias and mask speak of `row` and row j of the memory. */
static reference_point score_point(const attending *a, const reference_point *row, int64_t j)
{
    return a->with->column == NULL ? *row : point_set(row, a->with->column, j);
}

static bool sees(const attending *a, const reference_point *row, int64_t j)
{
    const int64_t i = point_at(row, a->query), window = a->with->window;
    if (a->with->causal && j > i) return false;
    if (window > 0 && (j <= i - window || j >= i + window)) return false;
    if (a->mask == NULL) return true;
    const reference_point p = score_point(a, row, j);
    return element_get(a->mask, &p) != 0;
}

/* x[row] . y[m], over the feature */
static long double dot(const attending *a, const reference_tensor *x, const reference_point *row,
                       const reference_tensor *y, const reference_point *m)
{
    long double sum = 0;
    for (int64_t f = 0; f < tensor_size(x, a->feature); f++) {
        const reference_point p = point_set(row, a->feature, f);
        const reference_point r = point_set(m, a->feature, f);
        sum += element_get(x, &p) * element_get(y, &r);
    }
    return sum;
}

static long double score(const attending *a, const reference_point *row, int64_t j)
{
    const reference_point m = memory_point(a, row, j);
    const long double product = a->scale * dot(a, a->q, row, a->k, &m);
    if (a->bias == NULL) return product;
    const reference_point p = score_point(a, row, j);
    return product + element_get(a->bias, &p);
}

/* The largest of a row's scores, a NaN where there is one; -inf: it sees nothing. */
static long double highest_score(const attending *a, const reference_point *row)
{
    long double top = -HUGE_VALL;
    for (int64_t j = 0; j < tensor_size(a->k, a->memory); j++) {
        if (!sees(a, row, j)) continue;
        const long double x = score(a, row, j);
        if (isnan(x)) return x;
        top = fmaxl(top, x);
    }
    return top;
}

/* Row `row` of softmax(scale q k' + bias), the whole of it; zeros where nothing is seen. Returns what exponentials of what scores
 * are below the highest were divided by. */
static long double weights_of(const attending *a, const reference_point *row, long double *weights)
{
    const int64_t n = tensor_size(a->k, a->memory);
    const long double top = highest_score(a, row);
    long double sum = 0;
    for (int64_t j = 0; j < n; j++) {
        weights[j] = sees(a, row, j) && top != -HUGE_VALL ? expl(score(a, row, j) - top) : 0;
        sum += weights[j];
    }
    for (int64_t j = 0; j < n && sum != 0; j++)
        weights[j] /= sum;
    return sum;
}

enum { MOST_ROWS = 256 };

void reference_attention(const reference_call *call)
{
    const attending a = attending_of(call);
    REFERENCE_EACH(p, &call->out[0])
    {
        long double weights[MOST_ROWS], sum = 0;
        const long double all = weights_of(&a, &p, weights);
        if (call->n_out > 1) {
            const long double top = highest_score(&a, &p);
            const reference_point max = point_set(&p, a.feature, 0),
                                  of = point_set(&p, a.feature, 1);
            element_put(&call->out[1], &max, top);
            element_put(&call->out[1], &of, all);
        }
        for (int64_t j = 0; j < tensor_size(a.k, a.memory); j++) {
            const reference_point m = memory_point(&a, &p, j);
            sum += weights[j] * element_get(a.v, &m);
        }
        element_put(&call->out[0], &p, sum);
    }
}

/* What row `p` of q and row j of the memory give to the gradients: ds is that of their score, w their weight. */
static void add_gradients(const attending *a, const reference_call *call, const reference_point *p,
                          int64_t j, long double ds, long double w)
{
    const reference_tensor *dy = &call->in[call->n_in - 1];
    for (int64_t f = 0; f < tensor_size(a->q, a->feature); f++) {
        const reference_point row = point_set(p, a->feature, f);
        const reference_point m = memory_point(a, &row, j);
        element_add(&call->out[0], &row, a->scale * ds * element_get(a->k, &m));
        element_add(&call->out[1], &m, a->scale * ds * element_get(a->q, &row));
        element_add(&call->out[2], &m, w * element_get(dy, &row));
    }
    const reference_point s = score_point(a, p, j);
    if (call->n_out > 3) element_add(&call->out[3], &s, ds);
}

/* With w = softmax(s), y = w v: dw = dy v', ds = w (dw - the sum of w dw), and s is linear in q, k and the bias. */
void reference_attention_grad(const reference_call *call)
{
    const attending a = attending_of(call);
    const reference_tensor *dy = &call->in[call->n_in - 1];
    const int64_t n = tensor_size(a.k, a.memory);
    REFERENCE_EACH(p, a.q)
    {
        if (point_at(&p, a.feature) > 0) continue; /* once a row */
        long double w[MOST_ROWS], dw[MOST_ROWS], mean = 0;
        weights_of(&a, &p, w);
        for (int64_t j = 0; j < n; j++) {
            const reference_point m = memory_point(&a, &p, j);
            dw[j] = dot(&a, dy, &p, a.v, &m);
            mean += w[j] * dw[j];
        }
        for (int64_t j = 0; j < n; j++)
            add_gradients(&a, call, &p, j, w[j] * (dw[j] - mean), w[j]);
    }
}
