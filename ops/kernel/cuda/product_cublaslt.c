/* product_cublaslt: einsum on the device cuda as products of matrices by cuBLASLt (matrices.h): of the float dtypes,
 * where the library is. A tensor with unsuitable strides is copied into scratch before, or out of it afterwards. */
#include "cublaslt.h"
#include "kernels.h"

#include "weft/arena.h"

typedef struct product {
    matrices plan;
    const cublaslt_product *product;
    void *at[MATRICES_TENSORS]; /* where the products read and write */
    const void *begin;          /* the sum so far, as the result lies; NULL: there is none */
    void *workspace;
    weft_box_copy copy_begin;
    size_t bytes[MATRICES_TENSORS]; /* of an element */
} product;

static size_t element_of(const weft_call *call, int tensor)
{
    return weft_dtype_bytes(cuda_view_of(call, tensor)->dtype);
}

/* ---- which product --------------------------------------------------------------------------- */

/* All products but the first begin somewhere within the tensors. */
static int64_t alignment_of(const weft_call *call, const matrices *plan)
{
    uint64_t all = WEFT_ALIGNMENT;
    for (int l = 0; l < plan->n_loops; l++)
        for (int t = 0; t < MATRICES_TENSORS; t++)
            all |= (uint64_t)plan->loop[l].stride[t] * element_of(call, t);
    return (int64_t)(all & (~all + 1));
}

static cublaslt_problem problem_of(const weft_call *call, const matrices *plan)
{
    cublaslt_problem problem = {.dtype = call->in[0].dtype,
                                .precision = call->precision,
                                .batch = plan->group[MATRICES_BATCH].count,
                                .alignment = alignment_of(call, plan),
                                .is_turned = {plan->is_turned[0], plan->is_turned[1]}};
    for (int i = 0; i < 3; i++)
        problem.matrix[i] = plan->matrix[i];
    return problem;
}

/* Many dots, or many products of two numbers: a thread for each of them does better than a matrix for each. */
static bool is_of_matrices(const matrices *plan)
{
    int n = 0;
    for (int g = 0; g < MATRICES_BATCH; g++)
        n += plan->group[g].count > 1;
    return n > 1 || (plan->group[MATRICES_BATCH].count == 1 && plan->n_loops == 0);
}

static bool fits(const matrices *plan)
{
    bool is_small = true;
    for (int g = 0; g < MATRICES_GROUPS; g++)
        is_small = is_small && plan->group[g].count <= INT32_MAX;
    return is_small;
}

static const cublaslt_product *find(const weft_call *call, matrices *plan)
{
    if (!cuda_matrices_plan(call, plan) || !is_of_matrices(plan) || !fits(plan)) return NULL;
    const cublaslt_problem problem = problem_of(call, plan);
    return cuda_cublaslt_find(&problem);
}

static bool takes(const weft_call *call)
{
    matrices plan;
    return find(call, &plan) != NULL;
}

/* ---- scratch: the library's, then what is copied -------------------------------------------------- */

/* Where each tensor that is copied lies, in bytes; returns how many they all take. */
static int64_t lay_out(const weft_call *call, const matrices *plan, const cublaslt_product *p,
                       int64_t at[MATRICES_TENSORS])
{
    int64_t end = weft_aligned(cuda_cublaslt_workspace(p));
    for (int t = 0; t < MATRICES_TENSORS; t++) {
        at[t] = end;
        if (plan->is_copied[t])
            end +=
                weft_aligned(weft_view_count(cuda_view_of(call, t)) * (int64_t)element_of(call, t));
    }
    return end;
}

static int64_t scratch(const weft_call *call)
{
    matrices plan;
    int64_t at[MATRICES_TENSORS];
    const cublaslt_product *p = find(call, &plan);
    return p != NULL ? lay_out(call, &plan, p, at) : 0;
}

/* ---- once, and each time --------------------------------------------------------------------- */

static weft_box_copy backwards(const weft_box_copy *copy)
{
    weft_box_copy back = *copy;
    for (int l = 0; l < copy->n_loops; l++) {
        back.from_stride[l] = copy->to_stride[l];
        back.to_stride[l] = copy->from_stride[l];
    }
    return back;
}

static weft_status prepare(const weft_call *call, weft_arena *arena, void **prepared,
                           weft_error *error)
{
    int64_t at[MATRICES_TENSORS];
    product *p = *prepared = weft_arena_take(arena, sizeof *p);
    if (p == NULL) return weft_fail_memory(error, sizeof *p);
    *p = (product){.workspace = call->scratch};
    p->product = find(call, &p->plan);
    if (p->product == NULL || !cuda_cublaslt_begin(cuda_stream_of(call->stream)->gpu))
        return weft_fail(error, WEFT_INTERNAL, "cuBLASLt has no product that it had before");
    (void)lay_out(call, &p->plan, p->product, at);
    for (int t = 0; t < MATRICES_TENSORS; t++) {
        p->bytes[t] = element_of(call, t);
        p->at[t] =
            p->plan.is_copied[t] ? (char *)call->scratch + at[t] : cuda_view_of(call, t)->data;
    }
    p->copy_begin = backwards(&p->plan.copy[MATRICES_OUT]);
    if (call->accumulates)
        p->begin = p->plan.is_copied[MATRICES_OUT] ? p->at[MATRICES_OUT] : call->in[2].data;
    return WEFT_OK;
}

static void copy_in(const weft_call *call, const product *p)
{
    for (int t = 0; t < MATRICES_OUT; t++)
        if (p->plan.is_copied[t])
            cuda_copy_box(call->stream, WEFT_COMPUTE, p->at[t], call->in[t].data, &p->plan.copy[t],
                          p->bytes[t]);
    if (call->accumulates && p->plan.is_copied[MATRICES_OUT])
        cuda_copy_box(call->stream, WEFT_COMPUTE, p->at[MATRICES_OUT], call->in[2].data,
                      &p->copy_begin, p->bytes[MATRICES_OUT]);
}

static void multiply(const weft_call *call, const product *p, int64_t number)
{
    int64_t offset[MATRICES_TENSORS];
    const int left = p->plan.left, right = left == MATRICES_A ? MATRICES_B : MATRICES_A;
    cuda_matrices_offset(&p->plan, number, offset);
    for (int t = 0; t < MATRICES_TENSORS; t++)
        offset[t] *= (int64_t)p->bytes[t];
    const int64_t out = offset[MATRICES_OUT];
    const cublaslt_pointers at = {.left = (const char *)p->at[left] + offset[left],
                                  .right = (const char *)p->at[right] + offset[right],
                                  .begin = p->begin != NULL ? (const char *)p->begin + out : NULL,
                                  .out = (char *)p->at[MATRICES_OUT] + out};
    cuda_cublaslt_run(call->stream, p->product, &at, p->workspace);
}

static void launch(const weft_call *call)
{
    const product *p = call->prepared;
    const int64_t n = cuda_matrices_products(&p->plan);
    copy_in(call, p);
    for (int64_t i = 0; i < n; i++)
        multiply(call, p, i);
    if (p->plan.is_copied[MATRICES_OUT])
        cuda_copy_box(call->stream, WEFT_COMPUTE, call->out[0].data, p->at[MATRICES_OUT],
                      &p->plan.copy[MATRICES_OUT], p->bytes[MATRICES_OUT]);
}

weft_status cuda_cublaslt_open(weft_device_kind device, weft_error *error)
{
    cuda_library_add(cuda_cublaslt_look);
    return cuda_add_kernel("einsum",
                           (weft_kernel){.name = "cublaslt",
                                         .dtypes = WEFT_FLOAT_DTYPES | WEFT_HALF_DTYPES,
                                         .priority = 1,
                                         .takes = takes,
                                         .scratch = scratch,
                                         .prepare = prepare,
                                         .launch = launch,
                                         .accumulates = true},
                           device, error);
}
