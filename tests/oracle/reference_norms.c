/* reference_norms.c: reductions, norms and losses that are compositions. */
#include "reference_element.h"

#include <math.h>

/* ---- over what a row has not ---------------------------------------------------------------------- */

static long double least_of(const reference_tensor *x, const reference_point *row)
{
    long double least = HUGE_VALL;
    REFERENCE_EACH_IN(p, row, x)
    {
        const long double value = element_get(x, &p);
        if (isnan(value)) return value;
        if (value < least) least = value;
    }
    return least;
}

void reference_min(const reference_call *call)
{
    REFERENCE_EACH(row, &call->out[0])
    element_put(&call->out[0], &row, least_of(&call->in[0], &row));
}

void reference_argmin(const reference_call *call)
{
    REFERENCE_EACH(row, &call->out[0])
    {
        const long double least = least_of(&call->in[0], &row);
        int64_t at = -1;
        REFERENCE_EACH_IN(p, &row, &call->in[0])
        {
            const long double value = element_get(&call->in[0], &p);
            if (at < 0 && (value == least || isnan(value))) at = point_at(&p, call->with.dim);
        }
        element_put(&call->out[0], &row, at);
    }
}

/* How many of a row's elements are not 0. */
static int64_t count_true(const reference_call *call, const reference_point *row, int64_t *n)
{
    int64_t found = 0;
    *n = 0;
    REFERENCE_EACH_IN(p, row, &call->in[0])
    found += element_get(&call->in[0], &p) != 0, (*n)++;
    return found;
}

void reference_any(const reference_call *call)
{
    int64_t n;
    REFERENCE_EACH(row, &call->out[0])
    element_put(&call->out[0], &row, count_true(call, &row, &n) > 0);
}

void reference_all(const reference_call *call)
{
    int64_t n;
    REFERENCE_EACH(row, &call->out[0])
    {
        const int64_t found = count_true(call, &row, &n);
        element_put(&call->out[0], &row, found == n);
    }
}

void reference_variance(const reference_call *call)
{
    REFERENCE_EACH(row, &call->out[0])
    {
        const moments m = moments_of(&call->in[0], &row);
        element_put(&call->out[0], &row, m.m2 / (m.count - call->with.a));
    }
}

/* ---- norms --------------------------------------------------------------------------------------- */

void reference_normalize(const reference_call *call)
{
    REFERENCE_EACH(p, &call->out[0])
    {
        reference_point row = point_without(&p, call->with.dim);
        if (call->with.other != NULL) row = point_without(&row, call->with.other);
        const moments m = moments_of(&call->in[0], &row);
        element_put(&call->out[0], &p,
                    (element_get(&call->in[0], &p) - m.mean) /
                        sqrtl(m.m2 / m.count + call->with.a));
    }
}

void reference_normalized(const reference_call *call)
{
    reference_normalize(call);
}

static long double scaled(const reference_call *call, const reference_point *p, moments m)
{
    return (element_get(&call->in[0], p) - m.mean) / sqrtl(m.m2 / m.count + call->with.a) *
               element_get(&call->in[1], p) +
           element_get(&call->in[2], p);
}

void reference_instance_norm(const reference_call *call)
{
    REFERENCE_EACH(p, &call->out[0])
    {
        const reference_point one = point_without(&p, call->with.dim);
        const reference_point row = point_without(&one, call->with.other);
        element_put(&call->out[0], &p, scaled(call, &p, moments_of(&call->in[0], &row)));
    }
}

/* with.begin groups of with.dim, over with.other as well. */
void reference_group_norm(const reference_call *call)
{
    const int64_t size = tensor_size(&call->in[0], call->with.dim) / call->with.begin;
    REFERENCE_EACH(p, &call->out[0])
    {
        const int64_t group = point_at(&p, call->with.dim) / size;
        const reference_point one = point_without(&p, call->with.dim);
        const reference_point row = point_without(&one, call->with.other);
        moments m = {0, 0, 0};
        long double squares = 0;
        REFERENCE_EACH_IN(q, &row, &call->in[0])
        if (point_at(&q, call->with.dim) / size == group)
            m.count++, m.mean += element_get(&call->in[0], &q);
        m.mean /= m.count;
        REFERENCE_EACH_IN(q, &row, &call->in[0])
        if (point_at(&q, call->with.dim) / size == group)
            squares += powl(element_get(&call->in[0], &q) - m.mean, 2);
        m.m2 = squares;
        element_put(&call->out[0], &p, scaled(call, &p, m));
    }
}

void reference_weight_norm(const reference_call *call)
{
    const reference_tensor *gain = &call->in[1];
    REFERENCE_EACH(row, gain)
    {
        long double squares = 0;
        REFERENCE_EACH_IN(p, &row, &call->in[0])
        squares += powl(element_get(&call->in[0], &p), 2);
        REFERENCE_EACH_IN(p, &row, &call->in[0])
        element_put(&call->out[0], &p,
                    element_get(&call->in[0], &p) / sqrtl(squares) * element_get(gain, &row));
    }
}

/* ---- logits -------------------------------------------------------------------------------------- */

static long double logsumexp_of(const reference_tensor *x, const reference_point *row)
{
    long double sum = 0, top = -HUGE_VALL;
    REFERENCE_EACH_IN(p, row, x) top = fmaxl(top, element_get(x, &p));
    if (!isfinite(top)) return top;
    REFERENCE_EACH_IN(p, row, x) sum += expl(element_get(x, &p) - top);
    return top + logl(sum);
}

void reference_z_loss(const reference_call *call)
{
    REFERENCE_EACH(row, &call->out[0])
    element_put(&call->out[0], &row, powl(logsumexp_of(&call->in[0], &row), 2));
}

void reference_soft_cross_entropy(const reference_call *call)
{
    REFERENCE_EACH(row, &call->out[0])
    {
        const long double normal = logsumexp_of(&call->in[0], &row);
        long double loss = 0;
        REFERENCE_EACH_IN(p, &row, &call->in[0])
        loss -= element_get(&call->in[1], &p) * (element_get(&call->in[0], &p) - normal);
        element_put(&call->out[0], &row, loss);
    }
}

void reference_smooth_labels(const reference_call *call)
{
    const long double n = tensor_size(&call->in[0], call->with.dim);
    REFERENCE_EACH(p, &call->out[0])
    {
        const reference_point row = point_without(&p, call->with.dim);
        long double sum = 0;
        REFERENCE_EACH_IN(q, &row, &call->in[0])
        sum += element_get(&call->in[0], &q);
        element_put(&call->out[0], &p,
                    (1 - call->with.a) * element_get(&call->in[0], &p) + call->with.a * sum / n);
    }
}

void reference_rms_norm(const reference_call *call)
{
    REFERENCE_EACH(p, &call->out[0])
    {
        const reference_point row = point_without(&p, call->with.dim);
        long double squares = 0, count = 0;
        REFERENCE_EACH_IN(q, &row, &call->in[0])
        squares += powl(element_get(&call->in[0], &q), 2), count++;
        element_put(&call->out[0], &p,
                    element_get(&call->in[0], &p) / sqrtl(squares / count + 1e-5L) *
                        element_get(&call->in[1], &p));
    }
}

/* ---- losses -------------------------------------------------------------------------------------- */

static long double huber(long double apart, long double delta)
{
    return apart <= delta ? apart * apart / 2 : delta * (apart - delta / 2);
}
void reference_huber(const reference_call *call)
{
    REFERENCE_EACH(p, &call->out[0])
    element_put(
        &call->out[0], &p,
        huber(fabsl(element_get(&call->in[0], &p) - element_get(&call->in[1], &p)), call->with.a));
}
ELEMENT_2(sigmoid_cross_entropy, fmaxl(x, 0) - x * y + log1pl(expl(-fabsl(x))))

void reference_kl_divergence(const reference_call *call)
{
    REFERENCE_EACH(row, &call->out[0])
    {
        long double sum = 0;
        REFERENCE_EACH_IN(p, &row, &call->in[0])
        {
            const long double log_p = element_get(&call->in[0], &p);
            if (expl(log_p) > 0) sum += expl(log_p) * (log_p - element_get(&call->in[1], &p));
        }
        element_put(&call->out[0], &row, sum);
    }
}

void reference_cosine(const reference_call *call)
{
    REFERENCE_EACH(row, &call->out[0])
    {
        long double both = 0, of_a = 0, of_b = 0;
        REFERENCE_EACH_IN(p, &row, &call->in[0])
        {
            const long double a = element_get(&call->in[0], &p), b = element_get(&call->in[1], &p);
            both += a * b, of_a += a * a, of_b += b * b;
        }
        element_put(&call->out[0], &row,
                    both / (fmaxl(sqrtl(of_a), 1e-8L) * fmaxl(sqrtl(of_b), 1e-8L)));
    }
}
