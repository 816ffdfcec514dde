/* cudnn_graph: graphs of the emulated cuDNN, done operation by operation: see cudnn.c. */
#include "cudnn_parts.h"

/* ---- tensors ----------------------------------------------------------------------------------- */

typedef struct tensor {
    const descriptor *of;
    int64_t size[DIMS], stride[DIMS], id, count; /* numbers in memory, gaps too */
    int type;
    bool is_between, is_number;
    float *numbers;
} tensor;

typedef struct graph_run {
    const graph_work *work;
    tensor tensors[MOST_TENSORS];
    int n_tensors;
} graph_run;

static void *memory_of(const graph_work *work, int64_t id, float *number)
{
    for (int i = 0; i < work->n; i++)
        if (work->id[i] == id) {
            *number = work->number[i];
            return work->at[i];
        }
    fprintf(stderr, "emulated cuDNN: nobody says where tensor %lld is\n", (long long)id);
    abort();
}

static void read_tensor(const graph_run *run, tensor *t)
{
    float number = 0;
    void *handed = t->is_between ? NULL : memory_of(run->work, t->id, &number);
    const void *at = handed != NULL && !t->is_number ? GLOBAL(handed) : NULL;
    for (int64_t i = 0; i < t->count && !t->is_between; i++)
        t->numbers[i] = t->is_number ? number
                        : t->type == CUDNN_DATA_BFLOAT16
                            ? weft_f32_of_bf16(((const uint16_t *)at)[i])
                            : ((const float *)at)[i];
}

/* Known by its descriptor; the first time it is read. */
static tensor *tensor_of(graph_run *run, const descriptor *of)
{
    for (int i = 0; i < run->n_tensors; i++)
        if (run->tensors[i].of == of) return &run->tensors[i];
    tensor *t = &run->tensors[run->n_tensors++];
    *t = (tensor){.of = of,
                  .id = number_of(of, CUDNN_ATTR_TENSOR_UNIQUE_ID),
                  .count = 1,
                  .type = enumerator_of(of, CUDNN_ATTR_TENSOR_DATA_TYPE),
                  .is_between = is_true(of, CUDNN_ATTR_TENSOR_IS_VIRTUAL),
                  .is_number = is_true(of, CUDNN_ATTR_TENSOR_IS_BY_VALUE)};
    memcpy(t->size, find(of, CUDNN_ATTR_TENSOR_DIMENSIONS)->value, sizeof t->size);
    memcpy(t->stride, find(of, CUDNN_ATTR_TENSOR_STRIDES)->value, sizeof t->stride);
    for (int d = 0; d < DIMS; d++)
        t->count += (t->size[d] - 1) * t->stride[d];
    t->numbers = calloc((size_t)t->count, sizeof *t->numbers);
    read_tensor(run, t);
    return t;
}

/* A dim of one goes with any. */
static float *number_at(const tensor *t, const int64_t at[DIMS])
{
    int64_t offset = 0;
    for (int d = 0; d < DIMS; d++)
        offset += t->size[d] == 1 ? 0 : at[d] * t->stride[d];
    return &t->numbers[offset];
}

static void write_tensor(const graph_run *run, tensor *t)
{
    float number;
    for (int64_t i = 0; i < t->count && t->type == CUDNN_DATA_BFLOAT16; i++)
        t->numbers[i] = weft_bf16_round(t->numbers[i]);
    if (t->is_between) return;
    void *at = GLOBAL(memory_of(run->work, t->id, &number));
    for (int64_t i = 0; i < t->count; i++)
        if (t->type == CUDNN_DATA_BFLOAT16)
            ((uint16_t *)at)[i] = weft_bf16_of_f32(t->numbers[i]);
        else
            ((float *)at)[i] = t->numbers[i];
}

/* The next place of a tensor; false: that was the last. */
static bool next(const tensor *t, int64_t at[DIMS])
{
    for (int d = DIMS - 1; d >= 0; d--) {
        if (++at[d] < t->size[d]) return true;
        at[d] = 0;
    }
    return false;
}

/* ---- operations ------------------------------------------------------------------------------ */

/* Of x, y, what selects, and the place along an axis. */
#define POINTWISE(name, expression)                                                                \
    static float name(float x, float y, float truth, float along)                                  \
    {                                                                                              \
        (void)x, (void)y, (void)truth, (void)along;                                                \
        return expression;                                                                         \
    }
POINTWISE(add_of, x + y)
POINTWISE(sub_of, x - y)
POINTWISE(mul_of, x *y)
POINTWISE(div_of, x / y)
POINTWISE(exp_of, expf(x))
POINTWISE(log_of, logf(x))
POINTWISE(identity_of, x)
POINTWISE(is_at_least, has_fault("mask") ? x > y : x >= y)
POINTWISE(select_of, truth != 0 ? x : y)
POINTWISE(index_of, along)

static float (*const pointwise[])(float x, float y, float truth, float along) = {
    [CUDNN_POINTWISE_ADD] = add_of,
    [CUDNN_POINTWISE_SUB] = sub_of,
    [CUDNN_POINTWISE_MUL] = mul_of,
    [CUDNN_POINTWISE_DIV] = div_of,
    [CUDNN_POINTWISE_EXP] = exp_of,
    [CUDNN_POINTWISE_LOG] = log_of,
    [CUDNN_POINTWISE_IDENTITY] = identity_of,
    [CUDNN_POINTWISE_CMP_GE] = is_at_least,
    [CUDNN_POINTWISE_BINARY_SELECT] = select_of,
    [CUDNN_POINTWISE_GEN_INDEX] = index_of,
};

static void run_pointwise(graph_run *run, const descriptor *o)
{
    const descriptor *how = descriptor_of(o, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR),
                     *y_is = descriptor_of(o, CUDNN_ATTR_OPERATION_POINTWISE_BDESC),
                     *truth_is = descriptor_of(o, CUDNN_ATTR_OPERATION_POINTWISE_TDESC);
    const tensor *x = tensor_of(run, descriptor_of(o, CUDNN_ATTR_OPERATION_POINTWISE_XDESC));
    const tensor *y = y_is != NULL ? tensor_of(run, y_is) : x;
    const tensor *truth = truth_is != NULL ? tensor_of(run, truth_is) : x;
    tensor *to = tensor_of(run, descriptor_of(o, CUDNN_ATTR_OPERATION_POINTWISE_YDESC));
    const int mode = enumerator_of(how, CUDNN_ATTR_POINTWISE_MODE);
    const int64_t axis = number_of(how, CUDNN_ATTR_POINTWISE_AXIS);
    int64_t at[DIMS] = {0};
    do
        *number_at(to, at) = pointwise[mode](*number_at(x, at), *number_at(y, at),
                                             *number_at(truth, at), (float)at[axis]);
    while (next(to, at));
    write_tensor(run, to);
}

/* Onto f32 in memory is added up what is there: whoever does not clear it finds what fresh memory has. */
static void run_product(graph_run *run, const descriptor *o)
{
    const tensor *x = tensor_of(run, descriptor_of(o, CUDNN_ATTR_OPERATION_MATMUL_ADESC));
    const tensor *y = tensor_of(run, descriptor_of(o, CUDNN_ATTR_OPERATION_MATMUL_BDESC));
    tensor *to = tensor_of(run, descriptor_of(o, CUDNN_ATTR_OPERATION_MATMUL_CDESC));
    const bool goes_on = !to->is_between && to->type == CUDNN_DATA_FLOAT;
    int64_t at[DIMS] = {0};
    do {
        float sum = goes_on ? *number_at(to, at) : 0;
        for (int64_t k = 0; k < x->size[3]; k++)
            sum += *number_at(x, (int64_t[]){at[0], at[1], at[2], k}) *
                   *number_at(y, (int64_t[]){at[0], at[1], k, at[3]});
        *number_at(to, at) = sum;
    } while (next(to, at));
    write_tensor(run, to);
}

static void run_reduction(graph_run *run, const descriptor *o)
{
    const descriptor *how = descriptor_of(o, CUDNN_ATTR_OPERATION_REDUCTION_DESC);
    const bool adds = enumerator_of(how, CUDNN_ATTR_REDUCTION_OPERATOR) == CUDNN_REDUCE_TENSOR_ADD;
    const tensor *x = tensor_of(run, descriptor_of(o, CUDNN_ATTR_OPERATION_REDUCTION_XDESC));
    tensor *to = tensor_of(run, descriptor_of(o, CUDNN_ATTR_OPERATION_REDUCTION_YDESC));
    int64_t at[DIMS] = {0};
    do
        *number_at(to, at) = adds ? 0 : -INFINITY;
    while (next(to, at));
    do {
        float *into = number_at(to, at);
        const float number = *number_at(x, at);
        *into = adds ? *into + number : number > *into ? number : *into;
    } while (next(x, at));
    write_tensor(run, to);
}

/* The same memory by other strides. */
static void run_reshape(graph_run *run, const descriptor *o)
{
    const tensor *x = tensor_of(run, descriptor_of(o, CUDNN_ATTR_OPERATION_RESHAPE_XDESC));
    tensor *to = tensor_of(run, descriptor_of(o, CUDNN_ATTR_OPERATION_RESHAPE_YDESC));
    if (x->count != to->count) abort();
    memcpy(to->numbers, x->numbers, (size_t)x->count * sizeof *x->numbers);
    write_tensor(run, to);
}

/* x, w and y of each kind, and which of them is made. */
static const struct {
    cudnnBackendDescriptorType_t type;
    int how, tensor[3], made;
} convolutions[] = {
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
     {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y},
     2},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
     {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY},
     0},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
     {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY},
     1}};

static float tf32(float x)
{
    const uint32_t bits = weft_bits_of_f32(x);
    return x != x ? x : weft_f32_of_bits((bits + 0x1000u) & 0xFFFFE000u);
}

/* What element of x goes with one of y and one of the filter, whose groups of channels are apart; false: none. */
static bool place_in_x(const descriptor *how, const tensor *x, const tensor *filter,
                       const int64_t y[DIMS], const int64_t w[DIMS], int64_t at[DIMS])
{
    const int64_t groups = x->size[1] / filter->size[1];
    const int64_t *stride = find(how, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES)->value,
                  *dilation = find(how, CUDNN_ATTR_CONVOLUTION_DILATIONS)->value,
                  *before = find(how, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS)->value;
    bool is_in = true;
    at[0] = y[0], at[1] = w[0] / (filter->size[0] / groups) * filter->size[1] + w[1];
    for (int d = 0; d < 2; d++) {
        at[2 + d] =
            stride[d] * y[2 + d] + dilation[d] * w[2 + d] - (has_fault("padding") ? 0 : before[d]);
        is_in = is_in && at[2 + d] >= 0 && at[2 + d] < x->size[2 + d];
    }
    return is_in;
}

/* The size of y that x, the filter and the windows make is the one that it has. */
static bool is_sound(const descriptor *how, tensor *const of[3])
{
    bool is = of[0]->size[0] == of[2]->size[0] && of[0]->size[1] % of[1]->size[1] == 0 &&
              of[1]->size[0] % (of[0]->size[1] / of[1]->size[1]) == 0 &&
              of[1]->size[0] == of[2]->size[1];
    for (int d = 0; d < 2 && is; d++) {
        const int64_t *stride = find(how, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES)->value,
                      *dilation = find(how, CUDNN_ATTR_CONVOLUTION_DILATIONS)->value,
                      *before = find(how, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS)->value,
                      *after = find(how, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS)->value;
        const int64_t reach = dilation[d] * (of[1]->size[2 + d] - 1) + 1,
                      room = of[0]->size[2 + d] + before[d] + after[d] - reach;
        is = room >= 0 && room / stride[d] + 1 == of[2]->size[2 + d] && before[d] >= 0 &&
             after[d] >= 0 && stride[d] > 0 && dilation[d] > 0;
    }
    return is;
}

static void run_convolution(graph_run *run, const descriptor *o, int kind)
{
    const descriptor *how = descriptor_of(o, convolutions[kind].how);
    tensor *of[3];
    for (int t = 0; t < 3; t++)
        of[t] = tensor_of(run, descriptor_of(o, convolutions[kind].tensor[t]));
    tensor *made = of[convolutions[kind].made];
    if (!is_sound(how, of)) emulated_die("a convolution of cuDNN contradicts itself");
    for (int t = 0; t < 3; t++)
        for (int64_t i = 0; i < of[t]->count; i++)
            of[t]->numbers[i] = of[t] == made           ? 0
                                : run->work->is_rounded ? tf32(of[t]->numbers[i])
                                                        : of[t]->numbers[i];
    int64_t y[DIMS] = {0}, w[DIMS] = {0}, x[DIMS];
    do
        do {
            if (w[0] != y[1] || !place_in_x(how, of[0], of[1], y, w, x)) continue;
            float *at[] = {number_at(of[0], x), number_at(of[1], w), number_at(of[2], y)};
            const int a = (convolutions[kind].made + 1) % 3, b = (convolutions[kind].made + 2) % 3;
            *at[convolutions[kind].made] += *at[a] * *at[b];
        } while (next(of[1], w));
    while (next(of[2], y));
    write_tensor(run, made);
}

static void run_operation(graph_run *run, const descriptor *o)
{
    for (int k = 0; k < 3; k++)
        if (o->type == convolutions[k].type) run_convolution(run, o, k);
    if (o->type == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR) run_pointwise(run, o);
    if (o->type == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR) run_product(run, o);
    if (o->type == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR) run_reduction(run, o);
    if (o->type == CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR) run_reshape(run, o);
}

KERNEL(emulated_graph, graph_work)
{
    graph_run *run = calloc(1, sizeof *run);
    const attribute *all = find(work.graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);
    if (run == NULL) abort();
    memset(GLOBAL(work.space), -1, WORKSPACE);
    run->work = &work;
    for (int64_t i = 0; i < all->n; i++)
        run_operation(run, ((const descriptor *const *)all->value)[i]);
    for (int i = 0; i < run->n_tensors; i++)
        free(run->tensors[i].numbers);
    free(run);
}
