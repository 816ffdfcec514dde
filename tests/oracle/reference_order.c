/* reference_order.c: products, what is the most so far, and elements taken out of rows and put back. */
#include "reference.h"

#include <math.h>

void reference_reduce_prod(const reference_call *call)
{
    const weft_dtype dtype = call->in[0].dtype;
    REFERENCE_EACH(row, &call->out[0])
    {
        long double product = 1;
        uint64_t whole = 1;
        REFERENCE_EACH_IN(p, &row, &call->in[0])
        {
            const long double x = element_get(&call->in[0], &p);
            product *= x, whole *= weft_dtype_is_float(dtype) ? 0 : (uint64_t)(int64_t)x;
        }
        element_put(&call->out[0], &row,
                    weft_dtype_is_float(dtype) ? product : (long double)(int64_t)whole);
    }
}

/* ---- so far -------------------------------------------------------------------------------------- */

/* with.a: reverse, with.b: exclusive. sign -1: the least. */
static void so_far(const reference_call *call, int sign)
{
    const reference_tensor *x = &call->in[0];
    REFERENCE_EACH(p, &call->out[0])
    {
        const int64_t at = point_at(&p, call->with.dim), n = tensor_size(x, call->with.dim);
        const int64_t step = call->with.a != 0 ? -1 : 1;
        long double most = call->with.b != 0 ? -100 : -HUGE_VALL; /* the case clamps */
        for (int64_t k = step > 0 ? 0 : n - 1; k != at + (call->with.b != 0 ? 0 : step);
             k += step) {
            const reference_point q = point_set(&p, call->with.dim, k);
            const long double value = sign * element_get(x, &q);
            if (value > most || isnan(value)) most = value;
        }
        if (call->with.b != 0) most = fminl(fmaxl(most, -100), 100);
        element_put(&call->out[0], &p, sign * most);
    }
}
void reference_cummax(const reference_call *call)
{
    so_far(call, 1);
}
void reference_cummin(const reference_call *call)
{
    so_far(call, -1);
}

/* ---- rows ------------------------------------------------------------------------------------------ */

void reference_unpick(const reference_call *call)
{
    REFERENCE_EACH(p, &call->in[0])
    {
        const int64_t id = (int64_t)element_get(&call->in[1], &p);
        const reference_point to = point_set(&p, call->with.dim, id);
        if (id >= 0 && id < tensor_size(&call->out[0], call->with.dim))
            element_add(&call->out[0], &to, element_get(&call->in[0], &p));
    }
}

/* The largest, or for sign -1 the least, of the rows of each id; none: the case clamps. */
static void most_of_rows(const reference_call *call, int sign)
{
    const reference_tensor *y = &call->out[0];
    REFERENCE_EACH(p, y)
    element_put(y, &p, -100 * sign);
    REFERENCE_EACH(p, &call->in[0])
    {
        const int64_t id = (int64_t)element_get(&call->in[1], &p);
        const reference_point to = point_set(&p, call->with.dim, id);
        if (id < 0 || id >= tensor_size(y, call->with.dim)) continue;
        const long double x = element_get(&call->in[0], &p);
        if (sign * x > sign * element_get(y, &to)) element_put(y, &to, fminl(fmaxl(x, -100), 100));
    }
}
void reference_scatter_max(const reference_call *call)
{
    most_of_rows(call, 1);
}
void reference_scatter_min(const reference_call *call)
{
    most_of_rows(call, -1);
}

void reference_segment_mean(const reference_call *call)
{
    const reference_tensor *ids = &call->in[1];
    REFERENCE_EACH(p, &call->out[0])
    {
        const reference_point row = point_without(&p, call->with.dim);
        long double sum = 0, n = 0;
        REFERENCE_EACH_IN(q, &row, &call->in[0])
        if (element_get(ids, &q) == point_at(&p, call->with.dim))
            sum += element_get(&call->in[0], &q), n++;
        element_put(&call->out[0], &p, n > 0 ? sum / n : 0);
    }
}

/* with.begin: the size of the dim that ids go along. */
void reference_count_outside(const reference_call *call)
{
    REFERENCE_EACH(p, &call->in[0])
    {
        const long double id = element_get(&call->in[0], &p);
        if (id < 0 || id >= call->with.begin) element_add(&call->out[0], &p, 1);
    }
}

void reference_histogram(const reference_call *call)
{
    const int64_t n = tensor_size(&call->out[0], call->with.dim);
    const long double low = call->with.a, width = (call->with.b - low) / n;
    REFERENCE_EACH(p, &call->in[0])
    for (int64_t bin = 0; bin < n; bin++) {
        const long double x = element_get(&call->in[0], &p), from = low + bin * width;
        const bool is_below = bin == n - 1 ? x <= call->with.b : x < from + width;
        const reference_point to = point_set(&p, call->with.dim, bin);
        if (x >= from && is_below) element_add(&call->out[0], &to, 1);
    }
}

/* with.causal: the mean; weights are operand 2. */
void reference_embedding_bag(const reference_call *call)
{
    const reference_tensor *table = &call->in[0], *ids = &call->in[1];
    REFERENCE_EACH(p, &call->out[0])
    {
        long double sum = 0, n = 0;
        for (int64_t k = 0; k < tensor_size(ids, call->with.other); k++) {
            const reference_point at = point_set(&p, call->with.other, k);
            const int64_t id = (int64_t)element_get(ids, &at);
            const reference_point from = point_set(&at, call->with.dim, id);
            if (id < 0 || id >= tensor_size(table, call->with.dim)) continue;
            sum +=
                element_get(table, &from) * (call->n_in > 2 ? element_get(&call->in[2], &at) : 1);
            n++;
        }
        element_put(&call->out[0], &p, call->with.causal && n > 0 ? sum / n : sum);
    }
}

/* ---- order ----------------------------------------------------------------------------------------- */

/* A NaN is above all. */
static int compare(long double a, long double b)
{
    if (isnan(a) || isnan(b)) return (isnan(a) ? 1 : 0) - (isnan(b) ? 1 : 0);
    return (a > b) - (a < b);
}

/* How many others of its row are before the element at p. */
static int64_t place_of(const reference_call *call, const reference_point *p)
{
    const reference_tensor *x = &call->in[0];
    const int64_t n = tensor_size(x, call->with.dim), k = point_at(p, call->with.dim);
    int64_t before = 0;
    for (int64_t i = 0; i < n; i++) {
        const reference_point at = point_set(p, call->with.dim, i);
        const int sign = call->with.causal ? -1 : 1;
        const int order = sign * compare(element_get(x, &at), element_get(x, p));
        before += order < 0 || (order == 0 && i < k);
    }
    return before;
}

/* The element of a row with so many before it. */
static long double element_at(const reference_call *call, const reference_point *row, int64_t place)
{
    for (int64_t k = 0; k < tensor_size(&call->in[0], call->with.dim); k++) {
        const reference_point p = point_set(row, call->with.dim, k);
        if (place_of(call, &p) == place) return element_get(&call->in[0], &p);
    }
    return NAN;
}

/* Each to its place, if that is asked for: an element, its id, or both. */
static void put_in_order(const reference_call *call, bool has_elements, bool has_ids)
{
    REFERENCE_EACH(p, &call->in[0])
    {
        const int64_t place = place_of(call, &p);
        const reference_point row = point_without(&p, call->with.dim),
                              to = point_set(&row, call->with.other, place);
        if (place >= tensor_size(&call->out[0], call->with.other)) continue;
        if (has_elements) element_put(&call->out[0], &to, element_get(&call->in[0], &p));
        if (has_ids) element_put(&call->out[call->n_out - 1], &to, point_at(&p, call->with.dim));
    }
}
static void order(const reference_call *call)
{
    put_in_order(call, false, true);
}
static void order_or_elements(const reference_call *call)
{
    put_in_order(call, true, call->n_out == 2);
}
void reference_order(const reference_call *call)
{
    order(call);
}
void reference_in_order(const reference_call *call)
{
    REFERENCE_EACH(p, &call->out[0])
    element_put(&call->out[0], &p, element_get(&call->in[0], &p));
}
void reference_argsort(const reference_call *call)
{
    order(call);
}
void reference_sort(const reference_call *call)
{
    order_or_elements(call);
}
void reference_top_k(const reference_call *call)
{
    order_or_elements(call);
}
void reference_bottom_k(const reference_call *call)
{
    order_or_elements(call);
}

void reference_quantile(const reference_call *call)
{
    const int64_t n = tensor_size(&call->in[0], call->with.dim);
    const double place = call->with.a * (double)(n - 1), part = place - floor(place);
    const int64_t at = (int64_t)floor(place), next = at + 1 < n ? at + 1 : at;
    REFERENCE_EACH(row, &call->out[0])
    {
        const long double a = element_at(call, &row, at), b = element_at(call, &row, next),
                          top = element_at(call, &row, n - 1), y = a + part * (b - a);
        element_put(&call->out[0], &row, isnan(top) ? (long double)NAN : part > 0 ? y : a);
    }
}
void reference_median(const reference_call *call)
{
    reference_quantile(call);
}
