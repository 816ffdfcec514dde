/* conv: the product of x and w, summed over every dim that the result lacks, with x read through windows. With
 * element o of a dim of the result and element t of one of w goes element (stride o + dilation t + offset) / over of
 * one of x.
 *
 * Convolution, its gradient to the data and its gradient to the filter are all three this op: the equation
 * over j = stride o + dilation t + offset is solved for another of j, o, t. So gradients of gradients are it, too.
 * Factors: other dims by name, as einsum's. Along o the result is cut, and x shown through a window; along t w is cut, x shown
 * through another, and the result partial. So a dim of x can be cut by one of the two.
 * Linear in each operand. Of bf16 and f16 it is done in f32, and says so: sums may then err by more than those of f32, as long as it is
 * little beside how the operands are rounded.
 */
#include <string.h>

#include "weft/ops.h"
#include "op.h"
#include "reindex.h"

typedef struct conv_attributes {
    weft_conv_attributes conv; /* what the kernel reads */
    weft_shape out;
} conv_attributes;

#define OF(s, member) #member #s, offsetof(conv_attributes, conv.window[s].member)
#define WINDOW(s)                                                                                  \
    {OF(s, x), &weft_field_name}, {OF(s, w), &weft_field_name}, {OF(s, y), &weft_field_name},      \
        {OF(s, stride), &weft_field_int64}, {OF(s, dilation), &weft_field_int64},                  \
        {OF(s, offset), &weft_field_int64},                                                        \
    {                                                                                              \
        OF(s, over), &weft_field_int64                                                             \
    }
static const weft_field fields[] = {WEFT_FIELD(conv_attributes, conv.n_windows),
                                    WINDOW(0),
                                    WINDOW(1),
                                    WINDOW(2),
                                    WEFT_FIELD(conv_attributes, conv.is_half),
                                    WEFT_FIELD(conv_attributes, out)};
static const weft_attributes described = WEFT_ATTRIBUTES(conv_attributes, fields);

enum { X, W, Y, TENSORS };

static const weft_shape *shape_of(const weft_site *site, int tensor)
{
    return tensor == Y ? &site->out[0].shape : &site->in[tensor].shape;
}

static const char *name_in(const weft_conv_window *window, int tensor)
{
    return tensor == X ? window->x : tensor == W ? window->w : window->y;
}

/* The dim of a tensor that is matched by its name: not one of a window. */
static int find_plain(const weft_conv_attributes *conv, const weft_shape *shape, int tensor,
                      const char *name)
{
    for (int s = 0; s < conv->n_windows; s++)
        if (strcmp(name_in(&conv->window[s], tensor), name) == 0) return -1;
    return weft_shape_find(shape, name);
}

static int64_t size_of(const weft_site *site, int tensor, const char *name)
{
    const weft_shape *shape = shape_of(site, tensor);
    return shape->dims[weft_shape_find(shape, name)].size;
}

/* What of x goes with a block of y's dim, or with one of w's: `by` moves it, and the other dim spreads it. */
static weft_window window_along(int64_t lead, int64_t by, int64_t other, int64_t other_by,
                                const weft_conv_window *window)
{
    const int64_t spread = other_by * (other - 1);
    return (weft_window){.lead = lead,
                         .low = window->offset + (spread < 0 ? spread : 0),
                         .high = window->offset + (spread > 0 ? spread : 0),
                         .stride = (int32_t)by,
                         .over = (int32_t)window->over};
}

/* ---- types ----------------------------------------------------------------------------------- */

static weft_status check_window(const weft_site *site, const weft_conv_window *window,
                                weft_error *error)
{
    const conv_attributes *attributes = site->attributes;
    WEFT_TRY(weft_check_dim(site, X, window->x, -1, error));
    WEFT_TRY(weft_check_dim(site, W, window->w, -1, error));
    const int d = weft_shape_find(&attributes->out, window->y);
    if (d < 0)
        return weft_fail(
            error, WEFT_USAGE,
            "%s of %s becomes %s, which the result is not said to have; name it in the "
            "result's dims",
            window->x, weft_site_name(site, X), window->y);
    const int64_t size = attributes->out.dims[d].size, taps = size_of(site, W, window->w);
    const weft_reindex_attributes first = {.stride = window->stride,
                                           .offset = window->offset,
                                           .over = window->over,
                                           .size = size_of(site, X, window->x),
                                           .to_size = size};
    if (weft_reindex_reaches(first, taps, window->dilation)) return WEFT_OK;
    return weft_fail(
        error, WEFT_USAGE,
        "nothing of %s is read: no element of %s:%lld with %lld taps, %lld apart, %lld apart from "
        "each other, beginning at %lld, is one of %s:%lld. Look at the padding",
        weft_site_name(site, X), window->y, (long long)size, (long long)taps,
        (long long)window->stride, (long long)window->dilation, (long long)window->offset,
        window->x, (long long)size_of(site, X, window->x));
}

/* A dim of one tensor that is no window's must be in another, with its size. */
static weft_status check_plain(const weft_site *site, int tensor, const weft_dim *dim,
                               weft_error *error)
{
    const conv_attributes *attributes = site->attributes;
    const weft_shape *shapes[TENSORS] = {&site->in[X].shape, &site->in[W].shape, &attributes->out};
    static const char *const who[TENSORS] = {"x", "the filter", "the result"};
    if (find_plain(&attributes->conv, shapes[tensor], tensor, dim->name) < 0) return WEFT_OK;
    bool is_shared = false;
    for (int t = 0; t < TENSORS; t++) {
        const int d = t == tensor ? -1 : find_plain(&attributes->conv, shapes[t], t, dim->name);
        if (d < 0) continue;
        is_shared = true;
        if (shapes[t]->dims[d].size == dim->size) continue;
        return weft_fail(error, WEFT_USAGE,
                         "%s has %s:%lld and %s has %s:%lld; dims of the same name must have the "
                         "same size. Rename one %s, or name it in a window",
                         who[tensor], dim->name, (long long)dim->size, who[t], dim->name,
                         (long long)shapes[t]->dims[d].size, dim->name);
    }
    if (is_shared) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "%s alone has %s; it is neither summed over nor kept. Name it in a window, or "
                     "leave it out",
                     who[tensor], dim->name);
}

static weft_status infer(weft_site *site, weft_error *error)
{
    const conv_attributes *attributes = site->attributes;
    WEFT_TRY(weft_check_same_dtype(site, error));
    for (int s = 0; s < attributes->conv.n_windows; s++)
        WEFT_TRY(check_window(site, &attributes->conv.window[s], error));
    const weft_shape *shapes[TENSORS] = {&site->in[X].shape, &site->in[W].shape, &attributes->out};
    for (int t = 0; t < TENSORS; t++)
        for (int d = 0; d < shapes[t]->n_dims; d++)
            WEFT_TRY(check_plain(site, t, &shapes[t]->dims[d], error));
    site->n_out = 1;
    site->out[0] = (weft_type){site->in[0].dtype, attributes->out};
    return WEFT_OK;
}

/* ---- factors --------------------------------------------------------------------------------- */

static void add_plain(const weft_site *site, int tensor, weft_factors *factors)
{
    const weft_conv_attributes *conv = site->attributes;
    const weft_shape *shape = shape_of(site, tensor);
    for (int d = 0; d < shape->n_dims; d++) {
        const char *name = shape->dims[d].name;
        if (find_plain(conv, shape, tensor, name) < 0) continue;
        if (tensor != Y && find_plain(conv, shape_of(site, Y), Y, name) >= 0) continue; /* there */
        if (tensor == W && find_plain(conv, shape_of(site, X), X, name) >= 0) continue;
        weft_factor *factor = weft_factor_new(factors, WEFT_SUM);
        if (factor == NULL) return;
        for (int i = 0; i < 2; i++)
            factor->in[i] = (int8_t)find_plain(conv, shape_of(site, i), i, name);
        factor->out[0] = (int8_t)find_plain(conv, shape_of(site, Y), Y, name);
    }
}

static void add_windows(const weft_site *site, const weft_conv_window *window,
                        weft_factors *factors)
{
    const int64_t size = size_of(site, Y, window->y), taps = size_of(site, W, window->w);
    const weft_window along = window_along(size, window->stride, taps, window->dilation, window),
                      across = window_along(taps, window->dilation, size, window->stride, window);
    weft_factor *factor = weft_factor_new(factors, WEFT_NOT_PARTIAL);
    if (factor == NULL) return;
    factor->in[X] = (int8_t)weft_shape_find(shape_of(site, X), window->x);
    factor->out[0] = (int8_t)weft_shape_find(shape_of(site, Y), window->y);
    weft_factor_show(site, factors, X, &along);
    factor = weft_factor_new(factors, WEFT_SUM);
    if (factor == NULL) return;
    factor->in[X] = (int8_t)weft_shape_find(shape_of(site, X), window->x);
    factor->in[W] = (int8_t)weft_shape_find(shape_of(site, W), window->w);
    weft_factor_show(site, factors, X, &across);
}

static void factors(const weft_site *site, weft_factors *factors)
{
    const weft_conv_attributes *conv = site->attributes;
    factors->n_factors = 0;
    add_plain(site, Y, factors);
    add_plain(site, X, factors);
    add_plain(site, W, factors);
    for (int s = 0; s < conv->n_windows; s++)
        add_windows(site, &conv->window[s], factors);
}

/* ---- gradients ------------------------------------------------------------------------------- */

static weft_value emit_conv(weft_shape out, weft_value x, weft_value w,
                            const weft_conv_attributes *conv)
{
    conv_attributes attributes;
    memset(&attributes, 0, sizeof attributes);
    if (!weft_graph_shape(x.graph, "conv", &out, &attributes.out)) return weft_no_value(x.graph);
    attributes.conv = *conv;
    const weft_dtype dtype = weft_dtype_of(x);
    attributes.conv.is_half = conv->is_half || weft_dtype_bytes(dtype) == 2;
    const weft_value in[] = {weft_wide(x), weft_wide(w)};
    return weft_cast(weft_emit(x.graph, &weft_op_conv, in, 2, &attributes, sizeof attributes),
                     dtype);
}

/* over j = stride o + dilation t + offset, solved for j: y's dim is x's, and x's y's. */
static weft_conv_window to_data(const weft_conv_window *of)
{
    const int64_t sign = of->stride < 0 ? -1 : 1;
    return (weft_conv_window){.x = of->y,
                              .w = of->w,
                              .y = of->x,
                              .stride = sign * of->over,
                              .dilation = -sign * of->dilation,
                              .offset = -sign * of->offset,
                              .over = sign * of->stride};
}

/* And for t: what was the filter's is the result's. */
static weft_conv_window to_filter(const weft_conv_window *of)
{
    return (weft_conv_window){.x = of->x,
                              .w = of->y,
                              .y = of->w,
                              .stride = of->dilation,
                              .dilation = of->stride,
                              .offset = of->offset,
                              .over = of->over};
}

static void gradient(weft_vjp *vjp)
{
    const weft_conv_attributes *conv = vjp->site->attributes;
    weft_conv_attributes data = {.n_windows = conv->n_windows, .is_half = conv->is_half},
                         filter = data;
    for (int s = 0; s < conv->n_windows; s++) {
        data.window[s] = to_data(&conv->window[s]);
        filter.window[s] = to_filter(&conv->window[s]);
    }
    if (vjp->wanted[X])
        vjp->din[X] = emit_conv(vjp->site->in[X].shape, vjp->dout[0], vjp->in[W], &data);
    if (vjp->wanted[W])
        vjp->din[W] = emit_conv(vjp->site->in[W].shape, vjp->in[X], vjp->dout[0], &filter);
}

/* For each element of the result a product for all that it sums over, but those that fall between elements of x. */
static double flops(const weft_site *site)
{
    const weft_conv_attributes *conv = site->attributes;
    double points = 2.0 * weft_count_of(&site->out[0].shape);
    const weft_shape *w = &site->in[W].shape;
    for (int d = 0; d < w->n_dims; d++)
        if (find_plain(conv, shape_of(site, Y), Y, w->dims[d].name) < 0 ||
            find_plain(conv, w, W, w->dims[d].name) < 0)
            points *= (double)w->dims[d].size;
    for (int s = 0; s < conv->n_windows; s++)
        points /= (double)conv->window[s].over;
    return points;
}

const weft_op weft_op_conv = {
    .name = "conv",
    .attributes = &described,
    .infer = infer,
    .factors = factors,
    .linear = 1 | 2,
    .gradient = gradient,
    .flops = flops,
};

/* ---- builders -------------------------------------------------------------------------------- */

/* A stride or dilation of 0 is 1. */
static bool take_window(weft_graph *graph, const weft_spatial *of, weft_conv_window *window)
{
    const int64_t most = WEFT_MAX_STRIDE, furthest = (int64_t)1 << 50;
    weft_dim_attributes in, tap, out;
    if (!weft_graph_dim(graph, "conv", of->in, &in) ||
        !weft_graph_dim(graph, "conv", of->tap, &tap) ||
        !weft_graph_dim(graph, "conv", of->out, &out))
        return false;
    const int64_t stride = of->stride != 0 ? of->stride : 1,
                  dilation = of->dilation != 0 ? of->dilation : 1;
    if (stride < 1 || stride > most || dilation < 1 || dilation > most || of->before < -furthest ||
        of->before > furthest) {
        (void)weft_graph_fail(graph,
                              "conv: along %s stride %lld, dilation %lld, %lld elements before the "
                              "first; stride and dilation are from 1 to %lld, and elements before "
                              "the first within 2^50",
                              in.dim, (long long)stride, (long long)dilation, (long long)of->before,
                              (long long)most);
        return false;
    }
    *window = (weft_conv_window){.x = in.dim,
                                 .w = tap.dim,
                                 .y = out.dim,
                                 .stride = stride,
                                 .dilation = dilation,
                                 .offset = -of->before,
                                 .over = 1};
    return true;
}

static bool take_spatial(weft_value x, weft_value w, weft_spatials spatial,
                         weft_conv_attributes *conv)
{
    weft_graph *graph = x.graph;
    memset(conv, 0, sizeof *conv);
    if (x.id == 0 || w.id == 0) return false;
    if (w.graph != graph) {
        (void)weft_graph_fail(graph, "conv: x and w are of two graphs; build both in one");
        return false;
    }
    if (spatial.n_dims < 0 || spatial.n_dims > WEFT_CONV_WINDOWS ||
        (spatial.n_dims > 0 && spatial.dims == NULL)) {
        (void)weft_graph_fail(graph, "conv: %d dims of space; there may be %d at most",
                              spatial.n_dims, WEFT_CONV_WINDOWS);
        return false;
    }
    conv->n_windows = spatial.n_dims;
    for (int s = 0; s < spatial.n_dims; s++)
        if (!take_window(graph, &spatial.dims[s], &conv->window[s])) return false;
    return true;
}

/* A dim of an operand that neither the other nor the result has is summed before: less work, and gradients rely on it. */
static weft_value sum_lone(const weft_conv_attributes *conv, weft_value of, int tensor,
                           weft_value other, const weft_shape *out)
{
    const weft_shape *shape = weft_shape_of(of);
    weft_shape kept = weft_shape_make(NULL, 0);
    for (int d = 0; d < shape->n_dims; d++) {
        const char *name = shape->dims[d].name;
        if (find_plain(conv, shape, tensor, name) < 0 || find_plain(conv, out, Y, name) >= 0 ||
            find_plain(conv, weft_shape_of(other), X + W - tensor, name) >= 0)
            kept.dims[kept.n_dims++] = shape->dims[d];
    }
    return kept.n_dims == shape->n_dims ? of : weft_sum(kept, of);
}

weft_value weft_conv(weft_shape out, weft_value x, weft_value w, weft_spatials spatial)
{
    weft_conv_attributes conv;
    weft_shape shape;
    if (!take_spatial(x, w, spatial, &conv)) return weft_no_value(x.graph);
    if (!weft_graph_shape(x.graph, "conv", &out, &shape)) return weft_no_value(x.graph);
    const weft_value all = x;
    x = sum_lone(&conv, x, X, w, &shape);
    w = sum_lone(&conv, w, W, all, &shape);
    return emit_conv(shape, x, w, &conv);
}

weft_value weft_conv_transpose(weft_shape out, weft_value x, weft_value w, weft_spatials spatial)
{
    weft_conv_attributes conv;
    weft_shape shape;
    if (!take_spatial(x, w, spatial, &conv)) return weft_no_value(x.graph);
    if (!weft_graph_shape(x.graph, "conv_transpose", &out, &shape)) return weft_no_value(x.graph);
    for (int s = 0; s < conv.n_windows; s++)
        conv.window[s] = to_data(&conv.window[s]);
    const weft_value all = x;
    x = sum_lone(&conv, x, X, w, &shape);
    w = sum_lone(&conv, w, W, all, &shape);
    return emit_conv(shape, x, w, &conv);
}

/* Sizes that are none stay so, and weft_conv says it. */
weft_spatial weft_spatial_valid(weft_dim in, weft_dim tap, const char *out, int64_t stride,
                                int64_t dilation)
{
    const int64_t most = WEFT_MAX_LEAD;
    weft_spatial s = {
        .in = in, .tap = tap, .out = {out, 0}, .stride = stride, .dilation = dilation};
    if (in.size < 1 || in.size > most || tap.size < 1 || tap.size > most || stride < 1 ||
        dilation < 1 || dilation > WEFT_MAX_STRIDE)
        return s;
    const int64_t left = in.size - 1 - dilation * (tap.size - 1);
    s.out.size = left < 0 ? 0 : left / stride + 1;
    return s;
}

weft_spatial weft_spatial_same(weft_dim in, weft_dim tap, const char *out, int64_t stride,
                               int64_t dilation)
{
    weft_spatial s = weft_spatial_valid(in, tap, out, stride, dilation);
    if (in.size < 1 || in.size > WEFT_MAX_LEAD || tap.size < 1 || tap.size > WEFT_MAX_LEAD ||
        stride < 1 || dilation < 1 || dilation > WEFT_MAX_STRIDE)
        return s;
    s.out.size = (in.size - 1) / stride + 1;
    const int64_t last =
        in.size - 1 - (s.out.size - 1) * stride; /* behind the last one's first tap */
    const int64_t around = dilation * (tap.size - 1) - last;
    s.before = around > 0 ? around / 2 : 0;
    return s;
}
