/* reference_ctc.c: the likelihood of labels: of every way through the classes, one frame after the other, its labels
 * once equal neighbours are one and blanks are gone, and its likelihood. */
#include "reference.h"

#include <math.h>

enum { MOST = 24 };

typedef struct spelling {
    const reference_call *call;
    reference_point row;
    int64_t blank, n_times, n_labels, n_classes;
    int64_t label[MOST];
    long double log_p[MOST][MOST]; /* of a frame, of a class */
} spelling;

static int64_t count_of(const reference_call *call, int operand, const reference_point *row,
                        int64_t all)
{
    return call->with.mask == 0 ? all : (int64_t)element_get(&call->in[operand], row);
}

static void fill_row(spelling *s)
{
    const reference_call *call = s->call;
    s->n_classes = tensor_size(&call->in[0], call->with.other);
    s->n_labels = count_of(call, 2, &s->row, tensor_size(&call->in[1], call->with.feature));
    const int64_t n_label = tensor_size(&call->in[1], call->with.feature),
                  n_time = tensor_size(&call->in[0], call->with.dim);
    s->n_times = count_of(call, 3, &s->row, n_time);
    if (s->n_times > n_time) s->n_times = n_time;
    if (s->n_times < 0) s->n_times = 0;
    for (int64_t k = 0; k < s->n_labels && k < n_label; k++) {
        const reference_point at = point_set(&s->row, call->with.feature, k);
        s->label[k] = (int64_t)element_get(&call->in[1], &at);
    }
    for (int64_t t = 0; t < s->n_times; t++) {
        const reference_point frame = point_set(&s->row, call->with.dim, t);
        long double sum = 0, top = -HUGE_VALL;
        for (int64_t c = 0; c < s->n_classes; c++) {
            const reference_point at = point_set(&frame, call->with.other, c);
            s->log_p[t][c] = element_get(&call->in[0], &at);
            top = fmaxl(top, s->log_p[t][c]); /* of inf, NaN below */
        }
        for (int64_t c = 0; c < s->n_classes; c++)
            sum += expl(s->log_p[t][c] - top);
        for (int64_t c = 0; c < s->n_classes; c++)
            s->log_p[t][c] -= top + logl(sum);
    }
}

static long double log_of_sum(long double a, long double b)
{
    const long double top = isnan(a) || isnan(b) ? a + b : fmaxl(a, b);
    return isinf(top) && top < 0 ? top : top + log1pl(expl(fminl(a, b) - top));
}

/* The logarithm, of all ways on from frame t, where `last` was seen in the one before and `said` labels have been said. */
static long double likelihood(const spelling *s, int64_t t, int64_t last, int64_t said)
{
    long double sum = -HUGE_VALL;
    if (t == s->n_times) return said == s->n_labels ? 0 : sum;
    for (int64_t c = 0; c < s->n_classes; c++) {
        const bool says = c != s->blank && c != last;
        if (says && (said == s->n_labels || s->label[said] != c)) continue;
        sum = log_of_sum(sum, s->log_p[t][c] + likelihood(s, t + 1, c, said + says));
    }
    return sum;
}

void reference_ctc_loss(const reference_call *call)
{
    REFERENCE_EACH(row, &call->out[0])
    {
        spelling s = {.call = call, .row = row, .blank = call->with.begin};
        fill_row(&s);
        const bool may_be =
            s.n_labels >= 0 && s.n_labels <= tensor_size(&call->in[1], call->with.feature);
        const long double log_p = may_be ? likelihood(&s, 0, -1, 0) : -HUGE_VALL;
        const long double none = call->with.causal ? 0 : HUGE_VALL;
        element_put(&call->out[0], &row, log_p == -HUGE_VALL ? none : -log_p);
    }
}
