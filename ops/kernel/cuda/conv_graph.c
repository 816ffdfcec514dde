/* conv_graph: see conv_graph.h. A call is a product of two tensors over the dims that the result lacks, one of them
 * read through windows. The windows say which of the library's three operations that is. Where they stand between
 * elements, or go backwards, it makes data. Where the second operand is larger along them than the result, it makes a
 * filter. */
#include "conv_graph.h"

#include "kernels.h"

#include <string.h>

#include "weft/extend/op.h"

/* ---- the graph --------------------------------------------------------------------------------- */

/* What products of f32 may be: as good as f32, and in one order. */
static uint32_t refused_for(int64_t precision)
{
    const uint32_t worse =
        1u << CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS |
        1u << CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION | 1u << CUDNN_NUMERICAL_NOTE_FFT |
        1u << CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC | 1u << CUDNN_NUMERICAL_NOTE_WINOGRAD;
    return precision == WEFT_PRECISION_F32 ? worse | 1u << CUDNN_NUMERICAL_NOTE_TENSOR_CORE : worse;
}

void cuda_conv_build(dnn_graph *g, const void *described)
{
    static const cudnnBackendDescriptorType_t types[CONV_KINDS] = {
        [CONV_FORWARD] = CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
        [CONV_TO_DATA] = CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
        [CONV_TO_FILTER] = CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR};
    const conv_problem *p = described;
    const cudnnDataType_t type = p->is_bf16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
    dnn_convolution c = {.type = types[p->kind],
                         .n_space = CONV_SPACE,
                         .stride = p->stride,
                         .dilation = p->dilation,
                         .before = p->before,
                         .after = p->after};
    c.x = cuda_dnn_tensor(g, 1 + CONV_X, type, &p->shape[CONV_X]);
    c.w = cuda_dnn_tensor(g, 1 + CONV_W, type, &p->shape[CONV_W]);
    c.y = cuda_dnn_tensor(g, 1 + CONV_Y, type, &p->shape[CONV_Y]);
    g->refused = refused_for(p->precision);
    cuda_dnn_convolve(g, &c);
}

/* ---- which it is ------------------------------------------------------------------------------- */

enum { X, W, Y }; /* of the call */
/* Dims that are no window's, by the tensors that have them; as one walk in those. What all have numbers groups of channels, each with a
 * filter of its own: they are in front of the channels of x and of y, and of the filter's of y. */
enum { OF_XY, OF_XW, OF_WY, OF_ALL, CLASSES };

static const struct {
    int plays[CONV_TENSORS];                       /* the library's x, w, y, of the call */
    int first[CONV_TENSORS], second[CONV_TENSORS]; /* their first two dims */
} roles[CONV_KINDS] = {
    [CONV_FORWARD] = {{X, W, Y}, {OF_XY, OF_WY, OF_XY}, {OF_XW, OF_XW, OF_WY}},
    [CONV_TO_DATA] = {{Y, W, X}, {OF_XY, OF_XW, OF_XY}, {OF_WY, OF_WY, OF_XW}},
    [CONV_TO_FILTER] = {{X, Y, W}, {OF_XW, OF_WY, OF_XW}, {OF_XY, OF_XY, OF_WY}},
};

static const char *window_dim(const weft_conv_window *window, int tensor)
{
    return tensor == X ? window->x : tensor == W ? window->w : window->y;
}

static bool is_plain(const weft_call *call, int tensor, const char *name)
{
    const weft_conv_attributes *a = call->attributes;
    for (int s = 0; s < a->n_windows; s++)
        if (strcmp(window_dim(&a->window[s], tensor), name) == 0) return false;
    return weft_shape_find(&cuda_view_of(call, tensor)->shape, name) >= 0;
}

/* false: a dim of one tensor alone, or one that is not one walk with the others of its class. */
static bool sort_dim(const weft_call *call, int tensor, int d, cuda_nest classes[CLASSES])
{
    static const int with[2][2] = {{Y, W}, {X, Y}}; /* a dim of x, of w, has another tensor too */
    static const int class_of[2][2] = {{OF_XY, OF_XW}, {OF_XW, OF_WY}};
    const weft_view *view = cuda_view_of(call, tensor);
    const char *name = view->shape.dims[d].name;
    const bool has[2] = {is_plain(call, with[tensor][0], name),
                         is_plain(call, with[tensor][1], name)};
    const int class = has[0] && has[1] ? OF_ALL : class_of[tensor][has[1]];
    if (!is_plain(call, tensor, name)) return true; /* a window's */
    if (!has[0] && !has[1]) return weft_view_size(view, d) == 1;
    if (tensor == W && class != OF_WY) return true; /* sorted with x's */
    int64_t stride[CONV_TENSORS];
    for (int t = X; t <= Y; t++)
        stride[t] = is_plain(call, t, name) ? cuda_stride_of(cuda_view_of(call, t), name) : 0;
    cuda_nest_add(&classes[class], weft_view_size(view, d), stride[X], stride[W], stride[Y]);
    return classes[class].n_dims <= 1;
}

static bool sort_dims(const weft_call *call, cuda_nest classes[CLASSES])
{
    bool is_sorted = true;
    for (int tensor = X; tensor <= W; tensor++)
        for (int d = 0; d < cuda_view_of(call, tensor)->shape.n_dims && is_sorted; d++)
            is_sorted = sort_dim(call, tensor, d, classes);
    return is_sorted;
}

static int64_t window_size(const weft_call *call, int tensor, int s)
{
    const weft_conv_attributes *a = call->attributes;
    const weft_view *view = cuda_view_of(call, tensor);
    return weft_view_size(view, weft_shape_find(&view->shape, window_dim(&a->window[s], tensor)));
}

static int64_t window_begin(const weft_call *call, int tensor, int s)
{
    const weft_conv_attributes *a = call->attributes;
    const weft_view *view = cuda_view_of(call, tensor);
    return view->box.begin[weft_shape_find(&view->shape, window_dim(&a->window[s], tensor))];
}

/* All windows are of one kind; false: of none that there is. */
static bool find_kind(const weft_call *call, conv_kind *kind)
{
    const weft_conv_attributes *a = call->attributes;
    int n_forward = 0, n_to_data = 0;
    int64_t w = 1, y = 1;
    for (int s = 0; s < a->n_windows; s++) {
        const weft_conv_window *v = &a->window[s];
        n_forward += v->stride > 0 && v->dilation > 0 && v->over == 1;
        n_to_data += v->stride == 1 && v->dilation < 0;
        w *= window_size(call, W, s), y *= window_size(call, Y, s);
    }
    *kind = n_to_data > 0 ? CONV_TO_DATA : w > y ? CONV_TO_FILTER : CONV_FORWARD;
    return a->n_windows > 0 && a->n_windows <= CONV_SPACE &&
           (n_forward == a->n_windows || n_to_data == a->n_windows);
}

/* x's element is stride y's + dilation w's - before, of the library's tensors and of their boxes. */
static bool set_window(const weft_call *call, conv_problem *p, int s, int at)
{
    const weft_conv_window *v = &((const weft_conv_attributes *)call->attributes)->window[s];
    const int64_t first = v->offset + v->stride * window_begin(call, Y, s) +
                          v->dilation * window_begin(call, W, s) -
                          v->over * window_begin(call, X, s);
    const int *plays = roles[p->kind].plays;
    const int64_t in = window_size(call, plays[CONV_X], s),
                  taps = window_size(call, plays[CONV_W], s),
                  out = window_size(call, plays[CONV_Y], s);
    p->stride[at] = p->kind == CONV_FORWARD   ? v->stride
                    : p->kind == CONV_TO_DATA ? v->over
                                              : v->dilation;
    p->dilation[at] = p->kind == CONV_FORWARD   ? v->dilation
                      : p->kind == CONV_TO_DATA ? -v->dilation
                                                : v->stride;
    p->before[at] = p->kind == CONV_TO_DATA ? first : -first;
    const int64_t reach = p->dilation[at] * (taps - 1) + 1;
    const int64_t missing = (out - 1) * p->stride[at] + reach - in - p->before[at];
    p->after[at] = missing > 0 ? missing : 0;
    return p->before[at] >= 0 &&
           (in + p->before[at] + p->after[at] - reach) / p->stride[at] + 1 == out;
}

typedef struct walk {
    int64_t count, stride;
} walk;

static walk walk_of(const cuda_nest *class, int tensor)
{
    return class->n_dims > 0 ? (walk){class->count[0], class->stride[tensor][0]} : (walk){1, 0};
}

/* Groups outside a class; false: they are no one walk in this tensor. */
static bool join(walk groups, walk *class)
{
    const bool is_one =
        groups.count == 1 || class->count == 1 || groups.stride == class->stride * class->count;
    if (class->count == 1) class->stride = groups.stride;
    class->count *= groups.count;
    return is_one;
}

/* Strides of what has one element, which the library never goes, but sees an order of dims in: as rows lie behind each other. */
static void set_idle_strides(dnn_shape *shape, int64_t all)
{
    const bool is_channel_last = shape->size[1] > 1 && shape->stride[1] == 1;
    if (shape->size[3] == 1) shape->stride[3] = is_channel_last ? shape->size[1] : 1;
    for (int d = 2; d > 0; d--)
        if (shape->size[d] == 1) shape->stride[d] = shape->size[d + 1] * shape->stride[d + 1];
    if (shape->size[0] == 1) shape->stride[0] = all;
}

static bool set_shape(const weft_call *call, const cuda_nest classes[CLASSES], conv_problem *p,
                      int role)
{
    const weft_conv_attributes *a = call->attributes;
    const int tensor = roles[p->kind].plays[role];
    const weft_view *view = cuda_view_of(call, tensor);
    dnn_shape *shape = &p->shape[role];
    walk dims[] = {walk_of(&classes[roles[p->kind].first[role]], tensor),
                   walk_of(&classes[roles[p->kind].second[role]], tensor)};
    const bool is_one = join(walk_of(&classes[OF_ALL], tensor), &dims[role != CONV_W]);
    for (int d = 0; d < 2; d++)
        shape->size[d] = dims[d].count, shape->stride[d] = dims[d].stride;
    for (int at = 0; at < CONV_SPACE; at++) {
        const int s = at - (CONV_SPACE - a->n_windows); /* one window: of columns */
        shape->size[2 + at] = s < 0 ? 1 : window_size(call, tensor, s);
        if (s >= 0) shape->stride[2 + at] = cuda_stride_of(view, window_dim(&a->window[s], tensor));
    }
    set_idle_strides(shape, weft_view_count(view));
    return is_one;
}

bool cuda_conv_find(const weft_call *call, conv_problem *problem, int plays[CONV_TENSORS])
{
    const weft_conv_attributes *a = call->attributes;
    cuda_nest classes[CLASSES] = {{0}};
    conv_kind kind = CONV_FORWARD;
    bool is_one = a->n_windows > 0;
    for (int t = X; t <= Y; t++)
        is_one = is_one && weft_view_count(cuda_view_of(call, t)) > 0;
    is_one = is_one && (call->precision == WEFT_PRECISION_BF16 || call->in[0].dtype == WEFT_F32);
    if (!is_one || !find_kind(call, &kind) || !sort_dims(call, classes)) return false;
    *problem = (conv_problem){.kind = kind,
                              .is_bf16 = call->precision == WEFT_PRECISION_BF16,
                              .precision = call->precision,
                              .stride = {1, 1},
                              .dilation = {1, 1}};
    for (int s = 0; s < a->n_windows; s++)
        is_one = is_one && set_window(call, problem, s, CONV_SPACE - a->n_windows + s);
    for (int role = 0; role < CONV_TENSORS; role++) {
        is_one = set_shape(call, classes, problem, role) && is_one;
        plays[role] = roles[kind].plays[role];
    }
    return is_one;
}
