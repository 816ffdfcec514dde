/* attend_dnn: attention and its gradient on the device cuda by cuDNN, where a program lets products of f32 be
 * computed in bf16. Numbers of f32 are rounded to that on their way, and those of bf16 go in and come out unchanged.
 * Without bias, mask and window; rows numbered alike where it is causal.
 *
 * The gradient is given the result and what is kept of each row. The library's is one number, the logsumexp, which it calls stats,
 * numbered by batch and heads before rows: it is kept as a maximum, and a sum of 1.
 */
#include "attend.h"
#include "attend_graph.h"
#include "heads.h"
#include "images.h"
#include "kernels.h"

#include <math.h>
#include <string.h>

#include "weft/arena.h"
#include "weft/extend/op.h"

static cuda_kernel kept_kernel = {"attend_kept", NULL};

/* ---- which problem --------------------------------------------------------------------------- */

enum { OPERANDS = 3 }; /* q, k, v; as they lie, so do the result and gradients */

typedef struct heads_dim {
    int64_t count, stride[OPERANDS];
} heads_dim;

static bool is_one_walk(const heads_dim *outer, const heads_dim *inner)
{
    bool is = true;
    for (int t = 0; t < OPERANDS; t++)
        is = is && outer->stride[t] == inner->stride[t] * inner->count;
    return is;
}

/* What numbers the heads as at most two dims, the last first; returns how many. */
static int join_heads(const weft_heads_call *h, heads_dim dims[WEFT_MAX_DIMS])
{
    int n = 0;
    for (int d = h->n_dims - 1; d >= 0; d--) {
        heads_dim dim = {.count = h->size[d]};
        for (int t = 0; t < OPERANDS; t++)
            dim.stride[t] = cuda_stride_of(h->view[t], h->dim[d]);
        if (dim.count == 1) continue;
        if (n > 0 && is_one_walk(&dim, &dims[n - 1]))
            dims[n - 1].count *= dim.count;
        else
            dims[n++] = dim;
    }
    return n;
}

static bool lies_as(const weft_view *x, const weft_view *y)
{
    return weft_shape_same_order(&x->shape, &y->shape);
}

/* One that the graphs have. */
static bool is_plain(const weft_call *call, const weft_heads_call *h)
{
    const weft_attention_attributes *a = h->attributes;
    const bool is_gradient = weft_heads_is_gradient(call);
    return call->precision == WEFT_PRECISION_BF16 && h->view[WEFT_STATS]->dtype == WEFT_F32 &&
           a->window == 0 && a->blocks == NULL && a->bias == 0 && a->mask == 0 &&
           h->n_grouped == 1 && (!a->causal || h->first_query == h->first_memory) &&
           h->n_heads > 0 && h->n_query > 0 && h->n_memory > 0 && h->n_feature > 0 &&
           lies_as(h->view[WEFT_O], h->view[WEFT_Q]) &&
           (!is_gradient || (lies_as(h->view[WEFT_DQ], h->view[WEFT_Q]) &&
                             lies_as(h->view[WEFT_DK], h->view[WEFT_K]) &&
                             lies_as(h->view[WEFT_DV], h->view[WEFT_V])));
}

static bool find_problem(const weft_call *call, attend_problem *problem)
{
    const weft_heads_call h = weft_heads_of(call, 0);
    heads_dim dims[WEFT_MAX_DIMS] = {{0}};
    if (!is_plain(call, &h)) return false;
    const int n = join_heads(&h, dims);
    *problem = (attend_problem){.batch = n > 1 ? dims[1].count : 1,
                                .heads = n > 0 ? dims[0].count : 1,
                                .n_query = h.n_query,
                                .n_memory = h.n_memory,
                                .n_feature = h.n_feature,
                                .is_causal = h.attributes->causal};
    bool is_near = n <= 2;
    for (int t = 0; t < OPERANDS; t++) {
        int64_t *stride = problem->stride[t];
        stride[2] = cuda_stride_of(h.view[t], weft_heads_row(&h, t));
        stride[1] = n > 0 ? dims[0].stride[t] : stride[2];
        stride[0] = n > 1 ? dims[1].stride[t] : stride[1];
        is_near = is_near && cuda_stride_of(h.view[t], h.attributes->feature) == 1;
    }
    return is_near;
}

/* gpu  NULL: the process's first, which is asked for all */
static const dnn_plan *find(attend_problem problem, attend_kind kind, const cuda_gpu *gpu)
{
    problem.kind = kind;
    gpu = gpu != NULL ? cuda_enter_gpu(gpu) : cuda_enter_first();
    return cuda_dnn_find(gpu, cuda_attend_build, &problem, sizeof problem);
}

static bool takes(const weft_call *call)
{
    attend_problem problem;
    return find_problem(call, &problem) && find(problem, ATTEND_FORWARD, NULL) != NULL;
}

static bool takes_gradient(const weft_call *call)
{
    attend_problem problem;
    return find_problem(call, &problem) && find(problem, ATTEND_BACKWARD, NULL) != NULL;
}

/* ---- scratch --------------------------------------------------------------------------------- */

/* The call's operand or result that an id is; NULL: it is the library's alone, or of another form. */
static const weft_view *view_of(const weft_call *call, int id)
{
    static const int results[ATTEND_IDS] = {
        [ATTEND_ID_DQ] = 1, [ATTEND_ID_DK] = 2, [ATTEND_ID_DV] = 3};
    const bool is_gradient = weft_heads_is_gradient(call);
    if (id <= ATTEND_ID_V) return &call->in[id - ATTEND_ID_Q];
    if (id == ATTEND_ID_OUT) return is_gradient ? &call->in[call->n_in - 3] : &call->out[0];
    if (id == ATTEND_ID_DOUT) return &call->in[call->n_in - 1];
    return results[id] > 0 ? &call->out[results[id] - 1] : NULL;
}

/* Bytes of scratch. */
static int64_t bytes_of(const weft_call *call, const attend_problem *p, int id)
{
    const weft_view *view = view_of(call, id);
    const int64_t rows = p->batch * p->heads * p->n_query;
    if (view != NULL) return cuda_narrow_bytes(view);
    return rows * (id == ATTEND_ID_DQ_SUM ? p->n_feature : 1) * (int64_t)sizeof(float);
}

/* The last that lies in scratch. */
static int last_of(bool is_gradient)
{
    return is_gradient ? ATTEND_ID_DQ_SUM : ATTEND_ID_STATS;
}

static attend_kind kind_of(bool is_gradient)
{
    return is_gradient ? ATTEND_BACKWARD : ATTEND_FORWARD;
}

/* Where each lies, the library's own scratch first, at[0] bytes; returns how many bytes they all take. */
static int64_t lay_out(const weft_call *call, const attend_problem *p, int64_t at[ATTEND_IDS])
{
    const bool is_gradient = weft_heads_is_gradient(call);
    int64_t end = at[0] = weft_aligned(find(*p, kind_of(is_gradient), NULL)->workspace);
    for (int id = ATTEND_ID_Q; id <= last_of(is_gradient); id++) {
        at[id] = end;
        end += weft_aligned(bytes_of(call, p, id));
    }
    return end;
}

static int64_t scratch(const weft_call *call)
{
    attend_problem problem;
    int64_t at[ATTEND_IDS];
    return find_problem(call, &problem) ? lay_out(call, &problem, at) : 0;
}

/* ---- once, and each time --------------------------------------------------------------------- */

typedef struct attending {
    attend_problem problem;
    void *at[ATTEND_IDS]; /* numbers are the host's */
    float scale, hidden, one;
    void *workspace;
    const dnn_plan *plan;
    cudnnBackendDescriptor_t pointers; /* as the library is told them */
} attending;

static void release(void *prepared)
{
    attending *x = prepared;
    if (x->pointers != NULL) (void)dnn.cudnnBackendDestroyDescriptor(x->pointers);
}

/* Which ids a graph has: unused ones are not told. */
static int ids_of(const attend_problem *p, attend_kind kind, int64_t ids[ATTEND_IDS])
{
    static const int all[][ATTEND_IDS] = {
        [ATTEND_FORWARD] = {ATTEND_ID_Q, ATTEND_ID_K, ATTEND_ID_V, ATTEND_ID_OUT, ATTEND_ID_STATS,
                            ATTEND_ID_SCALE},
        [ATTEND_BACKWARD] = {ATTEND_ID_Q, ATTEND_ID_K, ATTEND_ID_V, ATTEND_ID_OUT, ATTEND_ID_DOUT,
                             ATTEND_ID_DQ, ATTEND_ID_DK, ATTEND_ID_DV, ATTEND_ID_STATS,
                             ATTEND_ID_SUMS, ATTEND_ID_DQ_SUM, ATTEND_ID_SCALE,
                             ATTEND_ID_SCALE_BACK, ATTEND_ID_ONE}};
    int n = 0;
    for (; n < ATTEND_IDS && all[kind][n] != 0; n++)
        ids[n] = all[kind][n];
    if (p->is_causal) ids[n++] = ATTEND_ID_HIDDEN;
    return n;
}

static weft_status tell_pointers(attending *x, attend_kind kind, weft_error *error)
{
    dnn_pointers pointers = {.workspace = x->workspace};
    pointers.n = ids_of(&x->problem, kind, pointers.id);
    for (int i = 0; i < pointers.n; i++)
        pointers.at[i] = x->at[pointers.id[i]];
    return cuda_dnn_tell(&pointers, &x->pointers, error);
}

static weft_status prepare(const weft_call *call, weft_arena *arena, void **prepared,
                           weft_error *error)
{
    const bool is_gradient = weft_heads_is_gradient(call);
    const cuda_gpu *gpu = cuda_stream_of(call->stream)->gpu;
    int64_t at[ATTEND_IDS];
    attending *x = *prepared = weft_arena_take(arena, sizeof *x);
    if (x == NULL) return weft_fail_memory(error, sizeof *x);
    *x = (attending){.hidden = -INFINITY, .one = 1, .workspace = call->scratch};
    x->scale = (float)((const weft_attention_attributes *)call->attributes)->scale;
    if (!find_problem(call, &x->problem))
        return weft_fail(error, WEFT_INTERNAL, "cuDNN has no attention that it had before");
    (void)lay_out(call, &x->problem, at);
    for (int id = ATTEND_ID_Q; id <= last_of(is_gradient); id++) {
        const weft_view *view = view_of(call, id);
        x->at[id] = (char *)call->scratch + at[id];
        if (view != NULL) x->at[id] = cuda_narrow_at(view, x->at[id]);
    }
    x->at[ATTEND_ID_SCALE] = x->at[ATTEND_ID_SCALE_BACK] = &x->scale;
    x->at[ATTEND_ID_HIDDEN] = &x->hidden;
    x->at[ATTEND_ID_ONE] = &x->one;
    x->plan = find(x->problem, kind_of(is_gradient), gpu);
    if (x->plan == NULL || x->plan->workspace > at[0]) return cuda_dnn_fail_unlike(gpu, error);
    const weft_status status = tell_pointers(x, kind_of(is_gradient), error);
    if (status != WEFT_OK) release(x);
    return status;
}

static void narrow_all(const weft_call *call, const attending *x)
{
    static const int ids[] = {ATTEND_ID_Q, ATTEND_ID_K, ATTEND_ID_V, ATTEND_ID_OUT, ATTEND_ID_DOUT};
    const int n = weft_heads_is_gradient(call) ? 5 : OPERANDS;
    for (int i = 0; i < n; i++)
        cuda_narrow(call, view_of(call, ids[i]), x->at[ids[i]]);
}

/* Of the op, whose rows and heads stand as those of q: a feature is one step there. */
static void copy_stats(const weft_call *call, const attending *x, const weft_view *kept,
                       bool is_ours)
{
    const attend_problem *p = &x->problem;
    const weft_attention_attributes *a = call->attributes;
    cuda_attend_kept work = {.ours = kept->data,
                             .theirs = x->at[ATTEND_ID_STATS],
                             .n = p->batch * p->heads * p->n_query,
                             .size = {p->batch, p->heads, p->n_query},
                             .plane = cuda_stride_of(kept, a->feature),
                             .is_ours = is_ours};
    for (int i = 0; i < 3; i++)
        work.stride[i] = p->stride[0][i] / p->n_feature;
    cuda_launch(call->stream, WEFT_COMPUTE, &kept_kernel, work.n, &work);
}

static void run(const weft_call *call, const attending *x)
{
    cuda_dnn_run(call->stream, x->plan, x->pointers, "attention");
}

static void launch(const weft_call *call)
{
    const attending *x = call->prepared;
    narrow_all(call, x);
    run(call, x);
    cuda_widen(call, x->at[ATTEND_ID_OUT], &call->out[0]);
    copy_stats(call, x, &call->out[1], false);
}

static void launch_gradient(const weft_call *call)
{
    static const int ids[] = {ATTEND_ID_DQ, ATTEND_ID_DK, ATTEND_ID_DV};
    const attending *x = call->prepared;
    narrow_all(call, x);
    copy_stats(call, x, &call->in[call->n_in - 2], true);
    cuda_clear(call->stream, WEFT_COMPUTE, x->at[ATTEND_ID_DQ_SUM],
               (size_t)bytes_of(call, &x->problem, ATTEND_ID_DQ_SUM));
    run(call, x);
    for (int o = 0; o < OPERANDS; o++)
        cuda_widen(call, x->at[ids[o]], &call->out[o]);
}

weft_status cuda_dnn_attention_open(weft_device_kind device, weft_error *error)
{
    const weft_kernel attention = {.name = "cudnn",
                                   .dtypes = WEFT_DTYPE_BIT(WEFT_F32) | WEFT_DTYPE_BIT(WEFT_BF16),
                                   .priority = 1,
                                   .takes = takes,
                                   .scratch = scratch,
                                   .prepare = prepare,
                                   .launch = launch,
                                   .release = release,
                                   .narrows = true};
    cuda_kernel *const all[] = {&kept_kernel};
    weft_kernel gradient = attention;
    gradient.takes = takes_gradient;
    gradient.launch = launch_gradient;
    cuda_library_add(cuda_dnn_look);
    WEFT_TRY(cuda_load_image(cuda_image_attend, all, 1, error));
    WEFT_TRY(cuda_add_kernel("attention", attention, device, error));
    return cuda_add_kernel("attention_grad", gradient, device, error);
}
