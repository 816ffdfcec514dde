/* conv_dnn: convolutions of f32, and their gradients, on the device cuda by cuDNN, where an engine does them as a
 * program wants it: in f32, or better. Where products may be computed in bf16, operands and results in f32 are
 * rounded to that on their way. */
#include "conv_graph.h"
#include "kernels.h"

#include "weft/arena.h"

typedef struct convolving {
    conv_problem problem;
    int plays[CONV_TENSORS];
    const dnn_plan *plan;
    void *at[CONV_TENSORS];
    cudnnBackendDescriptor_t pointers;
} convolving;

/* gpu  NULL: the process's first, which is asked for all */
static const dnn_plan *find(const conv_problem *problem, const cuda_gpu *gpu)
{
    gpu = gpu != NULL ? cuda_enter_gpu(gpu) : cuda_enter_first();
    return cuda_dnn_find(gpu, cuda_conv_build, problem, sizeof *problem);
}

static bool takes(const weft_call *call)
{
    conv_problem problem = {.kind = CONV_FORWARD};
    int plays[CONV_TENSORS];
    return cuda_conv_find(call, &problem, plays) && find(&problem, NULL) != NULL;
}

/* ---- scratch: the library's, then what is rounded ------------------------------------------------ */

static int64_t lay_out(const weft_call *call, const convolving *c, const dnn_plan *plan,
                       int64_t at[CONV_TENSORS])
{
    int64_t end = weft_aligned(plan->workspace);
    for (int role = 0; role < CONV_TENSORS; role++) {
        at[role] = end;
        if (c->problem.is_bf16) end += cuda_narrow_bytes(cuda_view_of(call, c->plays[role]));
    }
    return end;
}

static int64_t scratch(const weft_call *call)
{
    convolving c = {.plan = NULL};
    int64_t at[CONV_TENSORS];
    if (!cuda_conv_find(call, &c.problem, c.plays)) return 0;
    return lay_out(call, &c, find(&c.problem, NULL), at);
}

/* ---- once, and each time ------------------------------------------------------------------------- */

static void release(void *prepared)
{
    convolving *c = prepared;
    if (c->pointers != NULL) (void)dnn.cudnnBackendDestroyDescriptor(c->pointers);
}

static weft_status prepare(const weft_call *call, weft_arena *arena, void **prepared,
                           weft_error *error)
{
    const cuda_gpu *gpu = cuda_stream_of(call->stream)->gpu;
    int64_t at[CONV_TENSORS];
    convolving *c = *prepared = weft_arena_take(arena, sizeof *c);
    if (c == NULL) return weft_fail_memory(error, sizeof *c);
    *c = (convolving){.plan = NULL};
    if (!cuda_conv_find(call, &c->problem, c->plays))
        return weft_fail(error, WEFT_INTERNAL, "cuDNN has no convolution that it had before");
    const dnn_plan *first = find(&c->problem, NULL);
    c->plan = find(&c->problem, gpu);
    if (c->plan == NULL || c->plan->workspace > first->workspace)
        return cuda_dnn_fail_unlike(gpu, error);
    (void)lay_out(call, c, first, at);
    dnn_pointers pointers = {.n = CONV_TENSORS, .workspace = call->scratch};
    for (int role = 0; role < CONV_TENSORS; role++) {
        const weft_view *view = cuda_view_of(call, c->plays[role]);
        c->at[role] = c->problem.is_bf16 ? cuda_narrow_at(view, (char *)call->scratch + at[role])
                                         : view->data;
        pointers.id[role] = 1 + role, pointers.at[role] = c->at[role];
    }
    return cuda_dnn_tell(&pointers, &c->pointers, error);
}

static void convert(const weft_call *call, const convolving *c, bool is_result)
{
    for (int role = 0; role < CONV_TENSORS && c->problem.is_bf16; role++) {
        const weft_view *view = cuda_view_of(call, c->plays[role]);
        if ((c->plays[role] == 2) != is_result) continue;
        if (is_result)
            cuda_widen(call, c->at[role], view);
        else
            cuda_narrow(call, view, c->at[role]);
    }
}

static void launch(const weft_call *call)
{
    const convolving *c = call->prepared;
    convert(call, c, false);
    cuda_dnn_run(call->stream, c->plan, c->pointers, "conv");
    convert(call, c, true);
}

weft_status cuda_dnn_convolution_open(weft_device_kind device, weft_error *error)
{
    return cuda_add_kernel(
        "conv",
        (weft_kernel){.name = "cudnn",
                      .dtypes = WEFT_DTYPE_BIT(WEFT_F32) | WEFT_DTYPE_BIT(WEFT_BF16),
                      .priority = 1,
                      .takes = takes,
                      .scratch = scratch,
                      .prepare = prepare,
                      .launch = launch,
                      .release = release,
                      .narrows = true},
        device, error);
}
