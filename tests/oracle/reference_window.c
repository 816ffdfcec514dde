/* reference_window.c: ops that read of a dim what a window shows: elements at other coordinates. */
#include "reference.h"

/* Result element p, whose dim `of` becomes element `at` of the operand's `dim`; `instead` where that has none. */
static void take_at(const reference_call *call, const reference_point *p, const char *of,
                    const char *dim, int64_t at, long double instead)
{
    const reference_tensor *x = &call->in[0];
    const reference_point rest = point_without(p, of), from = point_set(&rest, dim, at);
    const bool is_in = at >= 0 && at < tensor_size(x, dim);
    element_put(&call->out[0], p, is_in ? element_get(x, &from) : instead);
}

/* with: of each o of `other` (a o + begin) / b of dim. */
void reference_reindex(const reference_call *call)
{
    REFERENCE_EACH(p, &call->out[0])
    {
        const int64_t o = point_at(&p, call->with.other);
        const long double at = ((long double)o * call->with.a + call->with.begin) / call->with.b;
        const int64_t whole = (int64_t)at;
        take_at(call, &p, call->with.other, call->with.dim, (long double)whole == at ? whole : -1,
                0);
    }
}

void reference_slice_step(const reference_call *call)
{
    REFERENCE_EACH(p, &call->out[0])
    take_at(call, &p, call->with.other, call->with.dim,
            call->with.begin + (int64_t)call->with.a * point_at(&p, call->with.other), 0);
}

void reference_split(const reference_call *call)
{
    REFERENCE_EACH(p, &call->out[0])
    {
        const int64_t one = tensor_size(&call->out[0], call->with.other);
        take_at(call, &p, call->with.other, call->with.dim,
                call->with.begin * one + point_at(&p, call->with.other), 0);
    }
}

void reference_unstack(const reference_call *call)
{
    REFERENCE_EACH(p, &call->out[0])
    {
        const reference_point from = point_set(&p, call->with.dim, call->with.begin);
        element_put(&call->out[0], &p, element_get(&call->in[0], &from));
    }
}

void reference_stack(const reference_call *call)
{
    REFERENCE_EACH(p, &call->out[0])
    {
        const reference_point from = point_without(&p, call->with.dim);
        element_put(&call->out[0], &p, element_get(&call->in[point_at(&p, call->with.dim)], &from));
    }
}

void reference_pad(const reference_call *call)
{
    REFERENCE_EACH(p, &call->out[0])
    take_at(call, &p, call->with.other, call->with.dim,
            point_at(&p, call->with.other) - call->with.begin, call->with.a);
}

void reference_pad_reflect(const reference_call *call)
{
    const int64_t last = tensor_size(&call->in[0], call->with.dim) - 1;
    REFERENCE_EACH(p, &call->out[0])
    {
        int64_t at = point_at(&p, call->with.other) - call->with.begin;
        if (at < 0) at = -at;
        if (at > last) at = last - (at - last);
        take_at(call, &p, call->with.other, call->with.dim, at, 0);
    }
}

void reference_dilate(const reference_call *call)
{
    REFERENCE_EACH(p, &call->out[0])
    {
        const int64_t at = point_at(&p, call->with.other), step = (int64_t)call->with.a;
        take_at(call, &p, call->with.other, call->with.dim, at % step == 0 ? at / step : -1, 0);
    }
}

void reference_flip(const reference_call *call)
{
    REFERENCE_EACH(p, &call->out[0])
    take_at(call, &p, call->with.dim, call->with.dim,
            tensor_size(&call->in[0], call->with.dim) - 1 - point_at(&p, call->with.dim), 0);
}

void reference_roll(const reference_call *call)
{
    const int64_t size = tensor_size(&call->in[0], call->with.dim);
    REFERENCE_EACH(p, &call->out[0])
    {
        const int64_t at = (point_at(&p, call->with.dim) - call->with.begin) % size;
        take_at(call, &p, call->with.dim, call->with.dim, at < 0 ? at + size : at, 0);
    }
}

void reference_shift_along(const reference_call *call)
{
    REFERENCE_EACH(p, &call->out[0])
    take_at(call, &p, call->with.dim, call->with.dim,
            point_at(&p, call->with.dim) - call->with.begin, 0);
}

/* by: in[1]; a: it wraps. */
void reference_shift_by(const reference_call *call)
{
    const char *dim = call->with.dim;
    const int64_t n = tensor_size(&call->in[0], dim);
    REFERENCE_EACH(p, &call->out[0])
    {
        const int64_t at = point_at(&p, dim) - (int64_t)element_get(&call->in[1], &p);
        take_at(call, &p, dim, dim, call->with.a != 0 ? (at % n + n) % n : at, 0);
    }
}

/* ---- products through windows ------------------------------------------------------------------ */

/* The point of x that goes with a point of the result and of w; false: x has none. */
static bool look_through(const reference_call *call, const reference_point *both,
                         reference_point *from)
{
    int64_t at[3];
    *from = *both;
    for (int s = 0; s < call->with.n_windows; s++) {
        const reference_window *w = &call->with.windows[s];
        at[s] = w->stride * point_at(both, w->y) + w->dilation * point_at(both, w->w) + w->offset;
        if (at[s] % w->over != 0) return false;
        at[s] /= w->over;
        if (at[s] < 0 || at[s] >= tensor_size(&call->in[0], w->x)) return false;
        *from = point_without(from, w->y);
    }
    for (int s = 0; s < call->with.n_windows; s++)
        *from = point_set(from, call->with.windows[s].x, at[s]);
    return true;
}

/* In the cases no dim of w has the name of one of the result that is another's. */
void reference_conv(const reference_call *call)
{
    REFERENCE_EACH(p, &call->out[0])
    {
        long double sum = 0;
        REFERENCE_EACH_IN(q, &p, &call->in[1])
        {
            reference_point from;
            if (look_through(call, &q, &from))
                sum += element_get(&call->in[0], &from) * element_get(&call->in[1], &q);
        }
        element_put(&call->out[0], &p, sum);
    }
}

void reference_conv_transpose(const reference_call *call)
{
    reference_conv(call);
}

/* ---- pooling ----------------------------------------------------------------------------------- */

/* The place in x of tap number `tap` of the windows at a point of y; false: outside. */
static bool find_tap(const reference_call *call, const reference_tensor *x,
                     const reference_point *p, int64_t tap, reference_point *from)
{
    int64_t at[3];
    *from = *p;
    for (int s = call->with.n_windows - 1; s >= 0; s--) {
        const reference_window *w = &call->with.windows[s];
        at[s] = w->stride * point_at(p, w->y) + w->dilation * (tap % w->taps) + w->offset;
        tap /= w->taps;
        if (at[s] < 0 || at[s] >= tensor_size(x, w->x)) return false;
        *from = point_without(from, w->y);
    }
    for (int s = 0; s < call->with.n_windows; s++)
        *from = point_set(from, call->with.windows[s].x, at[s]);
    return true;
}

static int64_t count_taps(const reference_call *call)
{
    int64_t n = 1;
    for (int s = 0; s < call->with.n_windows; s++)
        n *= call->with.windows[s].taps;
    return n;
}

void reference_max_pool(const reference_call *call)
{
    REFERENCE_EACH(p, &call->out[0])
    {
        int64_t best = -1;
        long double largest = 0;
        for (int64_t tap = 0; tap < count_taps(call); tap++) {
            reference_point from;
            if (!find_tap(call, &call->in[0], &p, tap, &from)) continue;
            const long double x = element_get(&call->in[0], &from);
            if (best >= 0 && !(x > largest)) continue;
            best = tap, largest = x;
        }
        element_put(&call->out[0], &p, largest);
        if (call->n_out > 1) element_put(&call->out[1], &p, best);
    }
}

void reference_average_pool(const reference_call *call)
{
    REFERENCE_EACH(p, &call->out[0])
    {
        int64_t n = 0;
        long double sum = 0;
        for (int64_t tap = 0; tap < count_taps(call); tap++) {
            reference_point from;
            if (!find_tap(call, &call->in[0], &p, tap, &from)) continue;
            n++, sum += element_get(&call->in[0], &from);
        }
        element_put(&call->out[0], &p, sum / (call->with.causal ? count_taps(call) : n));
    }
}

void reference_unpool(const reference_call *call)
{
    REFERENCE_EACH(p, &call->in[0])
    {
        const int64_t tap = (int64_t)element_get(&call->in[1], &p);
        reference_point to;
        if (tap >= 0 && tap < count_taps(call) && find_tap(call, &call->out[0], &p, tap, &to))
            element_add(&call->out[0], &to, element_get(&call->in[0], &p));
    }
}

void reference_pool_pick(const reference_call *call)
{
    REFERENCE_EACH(p, &call->out[0])
    {
        const int64_t tap = (int64_t)element_get(&call->in[1], &p);
        reference_point from;
        if (tap >= 0 && tap < count_taps(call) && find_tap(call, &call->in[0], &p, tap, &from))
            element_put(&call->out[0], &p, element_get(&call->in[0], &from));
    }
}

/* ---- sums and products on the way --------------------------------------------------------------- */

/* with: dim; a: reverse; b: exclusive. */
static void cumulate(const reference_call *call, bool multiplies)
{
    const int64_t size = tensor_size(&call->in[0], call->with.dim);
    REFERENCE_EACH(p, &call->out[0])
    {
        const int64_t own = point_at(&p, call->with.dim);
        long double value = multiplies ? 1 : 0;
        for (int64_t i = 0; i < size; i++) {
            const bool is_before = call->with.a != 0 ? i > own : i < own;
            if (!is_before && (i != own || call->with.b != 0)) continue;
            const reference_point at = point_set(&p, call->with.dim, i);
            const long double x = element_get(&call->in[0], &at);
            value = multiplies ? value * x : value + x;
        }
        element_put(&call->out[0], &p, value);
    }
}

void reference_cumsum(const reference_call *call)
{
    cumulate(call, false);
}

void reference_cumprod(const reference_call *call)
{
    cumulate(call, true);
}
