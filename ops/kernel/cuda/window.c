/* window: conv, max_pool, unpool and pool_pick on the device cuda: which dims of the tensors are what (window.h). */
#include "window.h"

#include "images.h"
#include "kernels.h"

#include <string.h>

#include "weft/arena.h"

_Static_assert((int)WINDOWS == (int)WEFT_CONV_WINDOWS && (int)WINDOWED_DIMS >= 2 * WEFT_MAX_DIMS,
               "kernels have the windows that ops have");

enum { CONV, MAX_POOL, UNPOOL, KINDS };
static cuda_kernel kernels[KINDS][WEFT_DTYPES] = {
    [CONV] = {[WEFT_F32] = {"conv_f32", NULL},
              [WEFT_F64] = {"conv_f64", NULL},
              [WEFT_I32] = {"conv_i32", NULL},
              [WEFT_I64] = {"conv_i64", NULL}},
    [MAX_POOL] = {[WEFT_F32] = {"max_pool_f32", NULL},
                  [WEFT_F64] = {"max_pool_f64", NULL},
                  [WEFT_I32] = {"max_pool_i32", NULL},
                  [WEFT_I64] = {"max_pool_i64", NULL}},
    [UNPOOL] = {[WEFT_F32] = {"unpool_f32", NULL},
                [WEFT_F64] = {"unpool_f64", NULL},
                [WEFT_I32] = {"unpool_i32", NULL},
                [WEFT_I64] = {"unpool_i64", NULL}},
};
static cuda_kernel picks[] = {
    {"pool_pick_1", NULL}, {"pool_pick_2", NULL}, {"pool_pick_4", NULL}, {"pool_pick_8", NULL}};
enum { N_PICKS = sizeof picks / sizeof *picks };

/* ---- loops ------------------------------------------------------------------------------------- */

static bool is_one_walk(const windowed_nest *nest, int64_t count,
                        const int64_t stride[WINDOWED_PLACES])
{
    const int last = nest->n_dims - 1;
    bool is = last >= 0;
    for (int t = 0; t < WINDOWED_PLACES && is; t++)
        is = nest->stride[t][last] == stride[t] * count;
    return is;
}

void cuda_windowed_add(windowed_nest *nest, int64_t count, const int64_t stride[WINDOWED_PLACES])
{
    if (count == 1) return;
    const bool joins = is_one_walk(nest, count, stride);
    const int at = joins ? nest->n_dims - 1 : nest->n_dims++;
    nest->count[at] = joins ? nest->count[at] * count : count;
    for (int t = 0; t < WINDOWED_PLACES; t++)
        nest->stride[t][at] = stride[t];
}

cuda_windowed cuda_windowed_empty(void)
{
    cuda_windowed w = {.n_inner = 1};
    for (int s = 0; s < WINDOWS; s++)
        w.window[s].over = w.window[s].size = 1;
    return w;
}

static void add_inner(cuda_windowed *w, int64_t count, const int64_t stride[WINDOWED_PLACES])
{
    cuda_windowed_add(&w->inner, count, stride);
    w->n_inner *= count;
}

/* ---- conv -------------------------------------------------------------------------------------- */

/* The window whose dim of tensor t (0: x, 1: w, 2: y) has this name; -1: none. */
static int window_of(const weft_conv_attributes *a, int t, const char *name)
{
    for (int s = 0; s < a->n_windows; s++) {
        const char *const names[] = {a->window[s].x, a->window[s].w, a->window[s].y};
        if (strcmp(names[t], name) == 0) return s;
    }
    return -1;
}

/* 0 also where the tensor has the name, but for a window. */
static int64_t plain_stride(const weft_conv_attributes *a, int t, const weft_view *view,
                            const char *name)
{
    return window_of(a, t, name) < 0 ? cuda_stride_of(view, name) : 0;
}

static bool is_summed(const weft_conv_attributes *a, const weft_view *y, const char *name)
{
    return weft_shape_find(&y->shape, name) < 0 || window_of(a, 2, name) >= 0;
}

static void add_results(cuda_windowed *c, const weft_call *call)
{
    const weft_conv_attributes *a = call->attributes;
    const weft_view *y = &call->out[0];
    for (int d = 0; d < y->shape.n_dims; d++) {
        const char *name = y->shape.dims[d].name;
        const int s = window_of(a, 2, name);
        int64_t stride[WINDOWED_PLACES] = {[WINDOWED_TO] = cuda_stride_of(y, name)};
        if (s >= 0) {
            stride[WINDOWED_AT + s] = a->window[s].stride;
            c->first[WINDOWED_AT + s] += a->window[s].stride * y->box.begin[d];
        } else {
            stride[WINDOWED_FROM] = plain_stride(a, 0, &call->in[0], name);
            stride[WINDOWED_BY] = plain_stride(a, 1, &call->in[1], name);
        }
        cuda_windowed_add(&c->outer, weft_view_size(y, d), stride);
    }
}

/* All that is added up is in w. */
static void add_summed(cuda_windowed *c, const weft_call *call)
{
    const weft_conv_attributes *a = call->attributes;
    const weft_view *w = &call->in[1];
    for (int d = 0; d < w->shape.n_dims; d++) {
        const char *name = w->shape.dims[d].name;
        const int s = window_of(a, 1, name);
        int64_t stride[WINDOWED_PLACES] = {[WINDOWED_BY] = cuda_stride_of(w, name)};
        if (s < 0 && !is_summed(a, &call->out[0], name)) continue;
        if (s >= 0) {
            stride[WINDOWED_AT + s] = a->window[s].dilation;
            c->first[WINDOWED_AT + s] += a->window[s].dilation * w->box.begin[d];
        } else
            stride[WINDOWED_FROM] = plain_stride(a, 0, &call->in[0], name);
        add_inner(c, weft_view_size(w, d), stride);
    }
}

static void set_windows(cuda_windowed *c, const weft_call *call)
{
    const weft_conv_attributes *a = call->attributes;
    const weft_view *x = &call->in[0];
    for (int s = 0; s < a->n_windows; s++) {
        const int d = weft_shape_find(&x->shape, a->window[s].x);
        c->window[s].over = a->window[s].over;
        c->window[s].size = weft_view_size(x, d);
        c->window[s].stride = cuda_stride_of(x, a->window[s].x);
        c->first[WINDOWED_AT + s] = a->window[s].offset - a->window[s].over * x->box.begin[d];
    }
}

static weft_status take(weft_arena *arena, void **prepared, cuda_windowed **to, weft_error *error)
{
    *to = *prepared = weft_arena_take(arena, sizeof **to);
    if (*to == NULL) return weft_fail_memory(error, sizeof **to);
    **to = cuda_windowed_empty();
    return WEFT_OK;
}

static weft_status prepare_conv(const weft_call *call, weft_arena *arena, void **prepared,
                                weft_error *error)
{
    cuda_windowed *c;
    WEFT_TRY(take(arena, prepared, &c, error));
    c->to = call->out[0].data, c->from = call->in[0].data, c->by = call->in[1].data;
    c->n_outer = weft_view_count(&call->out[0]);
    set_windows(c, call);
    add_results(c, call);
    add_summed(c, call);
    return WEFT_OK;
}

/* ---- pooling ----------------------------------------------------------------------------------- */

/* x and y have their dims in one order; those of no window are one and the same in both. */
static int pool_window_of(const weft_pool_attributes *a, const weft_view *x, int d)
{
    for (int s = 0; s < a->n_windows; s++)
        if (strcmp(a->window[s].x, x->shape.dims[d].name) == 0) return s;
    return -1;
}

/* Of element o and tap t of y, element stride o + dilation t + offset of x. */
static void add_pooled(cuda_windowed *p, const weft_pool_attributes *a, const weft_view *x,
                       const weft_view *y)
{
    for (int d = 0; d < y->shape.n_dims; d++) {
        const int s = pool_window_of(a, x, d);
        const int64_t x_stride = cuda_stride_of(x, x->shape.dims[d].name);
        int64_t stride[WINDOWED_PLACES] = {[WINDOWED_TO] =
                                               cuda_stride_of(y, y->shape.dims[d].name)};
        if (s >= 0) {
            stride[WINDOWED_AT + s] = a->window[s].stride;
            p->window[s].size = weft_view_size(x, d), p->window[s].stride = x_stride;
            p->first[WINDOWED_AT + s] =
                a->window[s].stride * y->box.begin[d] + a->window[s].offset - x->box.begin[d];
        } else {
            stride[WINDOWED_FROM] = x_stride;
            p->first[WINDOWED_FROM] += (y->box.begin[d] - x->box.begin[d]) * x_stride;
        }
        cuda_windowed_add(&p->outer, weft_view_size(y, d), stride);
    }
}

/* The other way: of element i of x and tap t, element (i - dilation t - offset) / stride of y. */
static void add_unpooled(cuda_windowed *p, const weft_pool_attributes *a, const weft_view *x,
                         const weft_view *y)
{
    for (int d = 0; d < x->shape.n_dims; d++) {
        const int s = pool_window_of(a, x, d);
        const int64_t y_stride = cuda_stride_of(y, y->shape.dims[d].name);
        int64_t stride[WINDOWED_PLACES] = {[WINDOWED_TO] =
                                               cuda_stride_of(x, x->shape.dims[d].name)};
        if (s >= 0) {
            stride[WINDOWED_AT + s] = 1;
            p->window[s].over = a->window[s].stride;
            p->window[s].size = weft_view_size(y, d), p->window[s].stride = y_stride;
            p->first[WINDOWED_AT + s] =
                x->box.begin[d] - a->window[s].offset - a->window[s].stride * y->box.begin[d];
        } else {
            stride[WINDOWED_FROM] = y_stride;
            p->first[WINDOWED_FROM] += (x->box.begin[d] - y->box.begin[d]) * y_stride;
        }
        cuda_windowed_add(&p->outer, weft_view_size(x, d), stride);
    }
}

/* A tap's number is row-major over the windows. */
static void add_taps(cuda_windowed *p, const weft_pool_attributes *a, int64_t sign)
{
    for (int s = 0; s < a->n_windows; s++) {
        int64_t stride[WINDOWED_PLACES] = {0};
        stride[WINDOWED_AT + s] = sign * a->window[s].dilation;
        add_inner(p, a->window[s].taps, stride);
    }
}

static weft_status prepare_pool(const weft_call *call, weft_arena *arena, void **prepared,
                                weft_error *error)
{
    const weft_pool_attributes *a = call->attributes;
    cuda_windowed *p;
    WEFT_TRY(take(arena, prepared, &p, error));
    p->to = call->out[0].data, p->from = call->in[0].data;
    p->taps = call->n_out > 1 ? call->out[1].data : call->in[1].data;
    p->n_outer = weft_view_count(&call->out[0]);
    add_pooled(p, a, &call->in[0], &call->out[0]);
    add_taps(p, a, 1);
    return WEFT_OK;
}

static weft_status prepare_unpool(const weft_call *call, weft_arena *arena, void **prepared,
                                  weft_error *error)
{
    const weft_pool_attributes *a = call->attributes;
    cuda_windowed *p;
    WEFT_TRY(take(arena, prepared, &p, error));
    p->to = call->out[0].data, p->from = call->in[0].data, p->taps = call->in[1].data;
    p->n_outer = weft_view_count(&call->out[0]);
    add_unpooled(p, a, &call->out[0], &call->in[0]);
    add_taps(p, a, -1);
    return WEFT_OK;
}

/* ---- launches ---------------------------------------------------------------------------------- */

static void launch(const weft_call *call, const cuda_kernel *kernel)
{
    const cuda_windowed *w = call->prepared;
    cuda_launch(call->stream, WEFT_COMPUTE, kernel, w->n_outer, w);
}

static void launch_conv(const weft_call *call)
{
    launch(call, &kernels[CONV][call->in[0].dtype]);
}
static void launch_max_pool(const weft_call *call)
{
    launch(call, &kernels[MAX_POOL][call->in[0].dtype]);
}
static void launch_unpool(const weft_call *call)
{
    launch(call, &kernels[UNPOOL][call->in[0].dtype]);
}
static void launch_pick(const weft_call *call)
{
    int k = 0;
    while ((size_t)1 << k < weft_dtype_bytes(call->in[0].dtype))
        k++;
    launch(call, &picks[k]);
}

weft_status cuda_windows_open(weft_device_kind device, weft_error *error)
{
    static const struct {
        const char *op;
        weft_kernel kernel;
    } ops[] = {
        {"conv", {.dtypes = WEFT_WIDE_DTYPES, .prepare = prepare_conv, .launch = launch_conv}},
        {"max_pool",
         {.dtypes = WEFT_WIDE_DTYPES, .prepare = prepare_pool, .launch = launch_max_pool}},
        {"unpool",
         {.dtypes = WEFT_WIDE_DTYPES, .prepare = prepare_unpool, .launch = launch_unpool}},
        {"pool_pick", {.dtypes = WEFT_ANY_DTYPE, .prepare = prepare_pool, .launch = launch_pick}}};
    cuda_kernel *all[KINDS * WEFT_DTYPES + N_PICKS];
    int n = cuda_list_kernels(&kernels[0][0], KINDS * WEFT_DTYPES, all);
    n += cuda_list_kernels(picks, N_PICKS, all + n);
    WEFT_TRY(cuda_load_image(cuda_image_window, all, n, error));
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        WEFT_TRY(cuda_add_kernel(ops[i].op, ops[i].kernel, device, error));
    return WEFT_OK;
}
