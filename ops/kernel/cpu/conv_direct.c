/* conv_direct.c: a convolution by loops along y's last dim: for integers, for what is no matrix (one filter for each channel,
 * the sums of pooling), and where matrices are tiny.
 *
 * A stretch of y is added up in registers' width, over all of k in its order: a sum is the same however y is cut.
 */
#include "cpu/conv.h"

#include <string.h>

enum { STRETCH = 256 };

/* What of a stretch has something in its window, and where in x. */
typedef struct reach {
    int64_t begin, end, by; /* elements of the stretch        */
    int64_t x, x_step;      /* of the first; from one to the next */
} reach;

static int64_t common(int64_t a, int64_t b)
{
    for (a = a < 0 ? -a : a; b != 0;) {
        const int64_t rest = a % b;
        a = b, b = rest;
    }
    return a;
}

static int64_t floor_of(int64_t a, int64_t by)
{
    return a / by - (a % by < 0);
}

/* [begin, end) of i for which first + i step is in [0, size). */
static void clip(int64_t first, int64_t step, int64_t size, reach *r)
{
    const int64_t low = step > 0 ? -floor_of(first, step) : -floor_of(size - 1 - first, -step);
    const int64_t last = step > 0 ? floor_of(size - 1 - first, step) : floor_of(first, -step);
    if (r->begin < low) r->begin = low;
    if (r->end > last + 1) r->end = last + 1;
}

/* The last dim moves window s, which is at `at` for element 0. */
static void reach_of_window(const weft_conv *c, int s, int64_t at, int64_t step, reach *r)
{
    const int64_t over = c->window[s].over, every = over / common(step, over);
    int64_t skipped = 0;
    while (skipped < every && (at + skipped * step) % over != 0)
        skipped++;
    const int64_t first = (at + skipped * step) / over, by = step * every / over;
    reach steps = {.begin = 0, .end = (r->end - skipped + every - 1) / every};
    if (skipped == every) steps.end = 0;
    if (steps.end > 0) clip(first, by, c->window[s].size, &steps);
    r->begin = skipped + steps.begin * every;
    r->end = steps.end > steps.begin ? skipped + (steps.end - 1) * every + 1 : r->begin;
    r->by = every;
    r->x += (first + steps.begin * by) * c->window[s].stride;
    r->x_step = by * c->window[s].stride;
}

/* Of elements [0, n) of the stretch at p; false: nothing. */
static bool find_reach(const weft_conv *c, const weft_conv_place *p, int64_t n, reach *r)
{
    const weft_conv_dim *last = &c->m.dim[0];
    *r = (reach){.end = n, .by = 1, .x = p->x, .x_step = last->x};
    int64_t at[WEFT_CONV_WINDOWS];
    memcpy(at, p->at, sizeof at);
    if (last->window >= 0) at[last->window] = 0; /* looked at for itself */
    if (!weft_conv_is_in(c, at, &r->x)) return false;
    if (last->window >= 0) reach_of_window(c, last->window, p->at[last->window], last->step, r);
    return r->begin < r->end;
}

#define DIRECT(s, T, SUM)                                                                          \
    static void add_##s(SUM *sum, const T *x, const T *w, int64_t w_step, const reach *r)          \
    {                                                                                              \
        const int64_t n = (r->end - r->begin + r->by - 1) / r->by;                                 \
        sum += r->begin, w += r->begin * w_step;                                                   \
        if (r->by == 1 && r->x_step == 1 && w_step == 0) {                                         \
            const SUM by = (SUM)*w;                                                                \
            for (int64_t i = 0; i < n; i++)                                                        \
                sum[i] += (SUM)x[i] * by;                                                          \
        } else if (r->by == 1 && r->x_step == 1 && w_step == 1) {                                  \
            for (int64_t i = 0; i < n; i++)                                                        \
                sum[i] += (SUM)x[i] * (SUM)w[i];                                                   \
        } else {                                                                                   \
            for (int64_t i = 0; i < n; i++)                                                        \
                sum[i * r->by] += (SUM)x[i * r->x_step] * (SUM)w[i * r->by * w_step];              \
        }                                                                                          \
    }                                                                                              \
    static void stretch_##s(const weft_conv *c, const weft_conv_place *p, int64_t n)               \
    {                                                                                              \
        SUM sum[STRETCH] = {0};                                                                    \
        const int64_t count = weft_conv_count(&c->k);                                              \
        for (int64_t k = 0; k < count; k++) {                                                      \
            weft_conv_place at = *p;                                                               \
            reach r;                                                                               \
            weft_conv_move(&c->k, k, &at);                                                         \
            if (!find_reach(c, &at, n, &r)) continue;                                              \
            add_##s(sum, (const T *)(const void *)c->x + r.x,                                      \
                    (const T *)(const void *)c->w + at.w, c->m.dim[0].w, &r);                      \
        }                                                                                          \
        T *y = (T *)(void *)c->y + p->y;                                                           \
        for (int64_t i = 0; i < n; i++)                                                            \
            y[i] = (T)sum[i];                                                                      \
    }
DIRECT(f32, float, double)
DIRECT(f64, double, double)
DIRECT(i32, int32_t, uint32_t)
DIRECT(i64, int64_t, uint64_t)

typedef void (*stretch)(const weft_conv *c, const weft_conv_place *p, int64_t n);
static const stretch stretches[WEFT_DTYPES] = {[WEFT_F32] = stretch_f32,
                                               [WEFT_F64] = stretch_f64,
                                               [WEFT_I32] = stretch_i32,
                                               [WEFT_I64] = stretch_i64};

static void run_stretches(void *argument, int64_t begin, int64_t end, int lane)
{
    const weft_conv *c = argument;
    (void)lane;
    for (int64_t i = begin; i < end; i++) {
        weft_conv_place p = c->first;
        const int64_t from = i % c->n_m * STRETCH, left = c->m.dim[0].size - from;
        weft_conv_move(&c->free, i / c->n_m, &p);
        weft_conv_move(&c->m, from, &p);
        stretches[c->dtype](c, &p, left < STRETCH ? left : STRETCH);
    }
}

static void run(const weft_conv *c, weft_stream *stream)
{
    const int64_t length = c->m.dim[0].size < STRETCH ? c->m.dim[0].size : STRETCH;
    weft_parallel(stream, weft_conv_count(&c->free) * c->n_m,
                  weft_grain(length * weft_conv_count(&c->k)), run_stretches, (void *)(uintptr_t)c);
}

/* All dims of y are free but the last in memory, which is m; that of an element alone is a dim of one. */
void weft_conv_plan_direct(weft_conv *c)
{
    weft_conv_dims all = c->free;
    for (int d = 0; d < c->m.n; d++)
        all.dim[all.n++] = c->m.dim[d];
    for (int d = 0; d < c->n.n; d++)
        all.dim[all.n++] = c->n.dim[d];
    int last = -1;
    for (int d = 0; d < all.n; d++)
        if (last < 0 || all.dim[d].y < all.dim[last].y) last = d;
    c->m.n = 1;
    c->m.dim[0] = last >= 0 ? all.dim[last] : (weft_conv_dim){.size = 1, .y = 1, .window = -1};
    c->free.n = c->n.n = 0;
    for (int d = 0; d < all.n; d++)
        if (d != last) c->free.dim[c->free.n++] = all.dim[d];
    c->n_m = (c->m.dim[0].size + STRETCH - 1) / STRETCH;
    c->run = run;
}
