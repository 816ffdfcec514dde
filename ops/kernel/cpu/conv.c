/* conv.c: which dims of a convolution are what, and which way it is done.
 *
 * Forward, to the data and to the filter are one kernel: what is m and what is k differs. Positions are global, so boxes of
 * any kind are only other offsets.
 */
#include "cpu/conv.h"

#include <string.h>

int64_t weft_conv_count(const weft_conv_dims *dims)
{
    int64_t count = 1;
    for (int d = 0; d < dims->n; d++)
        count *= dims->dim[d].size;
    return count;
}

void weft_conv_move(const weft_conv_dims *dims, int64_t index, weft_conv_place *place)
{
    for (int d = dims->n - 1; d >= 0 && index > 0; d--) {
        const weft_conv_dim *dim = &dims->dim[d];
        const int64_t i = index % dim->size;
        index /= dim->size;
        place->x += i * dim->x;
        place->w += i * dim->w;
        place->y += i * dim->y;
        if (dim->window >= 0) place->at[dim->window] += i * dim->step;
    }
}

typedef struct tensors {
    weft_strided x, w, y;
    const weft_conv_attributes *attributes;
} tensors;

static int window_of(const tensors *t, const char *name, bool is_of_y)
{
    for (int s = 0; s < t->attributes->n_windows; s++) {
        const weft_conv_window *window = &t->attributes->window[s];
        if (strcmp(is_of_y ? window->y : window->w, name) == 0) return s;
    }
    return -1;
}

static bool is_plain(const tensors *t, const weft_strided *tensor, const char *name)
{
    for (int s = 0; s < t->attributes->n_windows; s++) {
        const weft_conv_window *window = &t->attributes->window[s];
        const char *its = tensor == &t->x ? window->x : tensor == &t->w ? window->w : window->y;
        if (strcmp(its, name) == 0) return false;
    }
    return weft_shape_find(&tensor->view->shape, name) >= 0;
}

static void add(weft_conv_dims *dims, const weft_conv_dim *dim)
{
    if (dim->size != 1) dims->dim[dims->n++] = *dim;
}

/* y's dims in its order: of all three, of x, of w, or moving a window. */
static void sort_y(weft_conv *c, const tensors *t)
{
    const weft_view *y = t->y.view;
    for (int d = 0; d < y->shape.n_dims; d++) {
        const char *name = y->shape.dims[d].name;
        weft_conv_dim dim = {.size = weft_view_size(y, d), .y = t->y.stride[d]};
        dim.window = window_of(t, name, true);
        if (dim.window >= 0) {
            dim.step = t->attributes->window[dim.window].stride;
            c->first.at[dim.window] += dim.step * y->box.begin[d];
            add(&c->m, &dim);
            continue;
        }
        const bool of_x = is_plain(t, &t->x, name), of_w = is_plain(t, &t->w, name);
        if (of_x) dim.x = weft_strided_of(&t->x, name);
        if (of_w) dim.w = weft_strided_of(&t->w, name);
        add(of_x && of_w ? &c->free : of_x ? &c->m : &c->n, &dim);
    }
}

/* What is added up is all in w, and goes in its order. */
static void sort_k(weft_conv *c, const tensors *t)
{
    const weft_view *w = t->w.view;
    for (int d = 0; d < w->shape.n_dims; d++) {
        const char *name = w->shape.dims[d].name;
        weft_conv_dim dim = {.size = weft_view_size(w, d), .w = t->w.stride[d]};
        dim.window = window_of(t, name, false);
        if (dim.window >= 0) {
            dim.step = t->attributes->window[dim.window].dilation;
            c->first.at[dim.window] += dim.step * w->box.begin[d];
        } else {
            if (is_plain(t, &t->y, name)) continue;
            dim.x = weft_strided_of(&t->x, name);
        }
        add(&c->k, &dim);
    }
}

static void find_windows(weft_conv *c, const tensors *t)
{
    const weft_view *x = t->x.view;
    c->n_windows = t->attributes->n_windows;
    for (int s = 0; s < c->n_windows; s++) {
        const weft_conv_window *window = &t->attributes->window[s];
        const int d = weft_shape_find(&x->shape, window->x);
        c->window[s].over = window->over;
        c->window[s].size = weft_view_size(x, d);
        c->window[s].stride = t->x.stride[d];
        c->first.at[s] = window->offset - window->over * x->box.begin[d];
    }
}

static void run_zeros(const weft_conv *c, weft_stream *stream)
{
    (void)stream;
    if (c->y_count > 0) memset(c->y, 0, (size_t)c->y_count * weft_dtype_bytes(c->dtype));
}

static void plan(weft_conv *c, const weft_call *call)
{
    const tensors t = {weft_strided_view(&call->in[0]), weft_strided_view(&call->in[1]),
                       weft_strided_view(&call->out[0]), call->attributes};
    *c = (weft_conv){.run = run_zeros,
                     .stream = call->stream,
                     .dtype = call->out[0].dtype,
                     .is_half = t.attributes->is_half,
                     .x = call->in[0].data,
                     .w = call->in[1].data,
                     .y = call->out[0].data,
                     .x_count = weft_view_count(&call->in[0]),
                     .y_count = weft_view_count(&call->out[0])};
    if (c->y_count == 0 || c->x_count == 0) return;
    find_windows(c, &t);
    sort_y(c, &t);
    sort_k(c, &t);
    if (weft_conv_count(&c->k) == 0 || weft_conv_plan_winograd(c) || weft_conv_plan_rows(c) ||
        weft_conv_plan_tiles(c))
        return;
    weft_conv_plan_direct(c);
}

static weft_status prepare(const weft_call *call, weft_arena *arena, void **prepared,
                           weft_error *error)
{
    weft_conv *c = *prepared = weft_arena_take(arena, sizeof *c);
    if (c == NULL) return weft_fail_memory(error, sizeof *c);
    plan(c, call);
    return WEFT_OK;
}

static void launch(const weft_call *call)
{
    const weft_conv *c = call->prepared;
    c->run(c, call->stream);
}

void weft_conv_cpu(const weft_call *call)
{
    weft_conv c;
    plan(&c, call);
    c.run(&c, call->stream);
}

const weft_kernel weft_kernel_conv = {
    .size = sizeof(weft_kernel),
    .name = "conv",
    .device = WEFT_CPU,
    .dtypes = WEFT_WIDE_DTYPES,
    .prepare = prepare,
    .launch = launch,
};
