/* kernel_views.h: what the kernel tests share: random numbers, views with uneven boxes, streams of
 * 1, 2, 3 and 5 lanes. */
#ifndef WEFT_KERNEL_VIEWS_H
#define WEFT_KERNEL_VIEWS_H

#include "cpu/kernels.h"
#include "test.h"

#include <stdlib.h>

static uint64_t random_state = 88172645463325252u;

static inline uint32_t random_word(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33);
}
static inline int random_below(int n)
{
    return (int)(random_word() % (uint32_t)n);
}
static inline double random_unit(void) /* in [-1, 1) */
{
    return (double)random_word() / 1073741824.0 - 1.0;
}

/* A named direction and the part of it that is held. */
typedef struct part {
    const char *name;
    int64_t size, begin, end;
} part;

static inline part random_part(const char *name, int most)
{
    part p = {.name = name, .size = 1 + random_below(most)};
    p.begin = random_below((int)p.size);
    p.end = p.begin + 1 + random_below((int)(p.size - p.begin));
    return p;
}

static inline void view_add(weft_view *view, part p)
{
    const int d = view->shape.n_dims++;
    view->shape.dims[d] = (weft_dim){p.name, p.size};
    view->box.begin[d] = p.begin;
    view->box.end[d] = p.end;
}

/* Memory of exactly the view's bytes, so that the address sanitizer sees every step too far. Large views are aligned to a line,
 * as what kernels write past the caches has to be. */
static inline void view_take(weft_view *view, weft_dtype dtype)
{
    const size_t bytes = (size_t)weft_view_count(view) * weft_dtype_bytes(dtype);
    view->dtype = dtype;
    view->data = bytes < (1 << 20) ? malloc(bytes) : NULL;
    if (bytes >= (1 << 20) && posix_memalign(&view->data, 64, bytes) != 0) exit(2);
    if (view->data == NULL && bytes > 0) exit(2);
}

static inline double view_get(const weft_view *view, int64_t i)
{
    return weft_dtype_get(view->dtype, view->data, i);
}
static inline void view_set(weft_view *view, int64_t i, double x)
{
    weft_dtype_put(view->dtype, view->data, i, x);
}

static inline void view_randomize(weft_view *view)
{
    for (int64_t i = 0; i < weft_view_count(view); i++)
        view_set(view, i, weft_dtype_is_float(view->dtype) ? random_unit() : random_below(21) - 10);
}
/* NaN, or a strange integer: what a kernel forgets to write is seen. */
static inline void view_spoil(weft_view *view)
{
    for (int64_t i = 0; i < weft_view_count(view); i++)
        view_set(view, i, weft_dtype_is_float(view->dtype) ? (double)NAN : -123456);
}

static inline weft_view view_of(weft_dtype dtype, int n, const part *parts)
{
    weft_view view = {0};
    for (int i = 0; i < n; i++)
        view_add(&view, parts[i]);
    view_take(&view, dtype);
    view_randomize(&view);
    return view;
}
static inline weft_view view_like(const weft_view *view)
{
    weft_view copy = *view;
    view_take(&copy, view->dtype);
    view_spoil(&copy);
    return copy;
}
static inline void view_free(weft_view *view)
{
    free(view->data);
    view->data = NULL;
}

/* Coordinates of element i within the box. */
static inline void view_at(const weft_view *view, int64_t i, int64_t *at)
{
    for (int d = view->shape.n_dims - 1; d >= 0; d--) {
        at[d] = i % weft_view_size(view, d);
        i /= weft_view_size(view, d);
    }
}
static inline int64_t view_index(const weft_view *view, const int64_t *at)
{
    int64_t index = 0;
    for (int d = 0; d < view->shape.n_dims; d++)
        index = index * weft_view_size(view, d) + at[d];
    return index;
}

/* Largest |a - b|; NaN against anything but NaN, or infinities that differ, count as infinite. */
static inline double view_distance(const weft_view *a, const weft_view *b)
{
    double worst = 0;
    for (int64_t i = 0; i < weft_view_count(a); i++) {
        const double x = view_get(a, i), y = view_get(b, i);
        if (x == y || (isnan(x) && isnan(y))) continue;
        const double d = isnan(x) || isnan(y) ? INFINITY : fabs(x - y);
        if (d > worst) worst = d;
    }
    return worst;
}
static inline bool view_same_bits(const weft_view *a, const weft_view *b)
{
    const size_t bytes = (size_t)weft_view_count(a) * weft_dtype_bytes(a->dtype);
    return bytes == 0 || memcmp(a->data, b->data, bytes) == 0;
}

enum { TEAMS = 3 };
static const int team_lanes[TEAMS] = {2, 3, 5};
static weft_stream *one_lane, *teams[TEAMS];

static inline bool streams_open(void)
{
    weft_error error = {0};
    weft_blas_start(); /* one thread per call, as the kernels expect */
    bool is_open = CHECK_OK(weft_devices[WEFT_CPU]->stream_create(1, &one_lane, &error), error);
    for (int t = 0; t < TEAMS && is_open; t++)
        is_open = CHECK_OK(weft_devices[WEFT_CPU]->stream_create(team_lanes[t], &teams[t], &error),
                           error);
    return is_open;
}
static inline void streams_close(void)
{
    weft_devices[WEFT_CPU]->stream_destroy(&one_lane);
    for (int t = 0; t < TEAMS; t++)
        weft_devices[WEFT_CPU]->stream_destroy(&teams[t]);
}

/* Into copies that must have the bits of call->out. */
static inline void run_on_team(weft_launch kernel, const weft_call *call, weft_stream *team)
{
    weft_call again = *call;
    for (int i = 0; i < call->n_out; i++)
        again.out[i] = view_like(&call->out[i]);
    again.stream = team;
    kernel(&again);
    for (int i = 0; i < call->n_out; i++) {
        CHECK(view_same_bits(&call->out[i], &again.out[i]));
        view_free(&again.out[i]);
    }
}

/* Run a kernel on one lane into call->out, and on a team, another each time, with the same bits. */
static inline void run_on_lanes(weft_launch kernel, weft_call *call)
{
    static int n_runs;
    for (int i = 0; i < call->n_out; i++)
        view_spoil(&call->out[i]);
    call->stream = one_lane;
    kernel(call);
    run_on_team(kernel, call, teams[n_runs++ % TEAMS]);
}
static inline void call_free(weft_call *call)
{
    for (int i = 0; i < call->n_in; i++)
        view_free(&call->in[i]);
    for (int i = 0; i < call->n_out; i++)
        view_free(&call->out[i]);
}

#endif
