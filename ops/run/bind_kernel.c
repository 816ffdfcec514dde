/* bind_kernel.c: a kernel step with pointers: the kernel is chosen, and works out once what it can.
 *
 * Steps that are alike have one call, which gets the addresses of each before it is launched. */
#include "program.h"

/* The kernel, the call and the scratch of all steps that are alike. */
static weft_status find_like(const weft_rank *rank, const weft_step *step, weft_bound_like *like,
                             weft_error *error)
{
    const weft_plan *plan = rank->program->plan;
    const char *op = plan->graph->nodes[step->node].op->name;
    weft_kernel_choice choice;
    if (like->kernel) return WEFT_OK;
    weft_call *call = like->call = weft_arena_take(rank->program->arena, sizeof *call);
    if (!call) return weft_fail_memory(error, sizeof *call);
    weft_step_call(plan, step, rank->rank, call);
    WEFT_TRY(weft_step_kernel(plan, step, call, &choice, error));
    WEFT_TRY(weft_kernel_scratch(op, choice.kernel, call, &like->scratch_bytes, error));
    like->kernel = choice.kernel;
    return WEFT_OK;
}

/* What a kernel has prepared may have to do with the addresses it saw; those of what is shared with other ranks are changed while
 * it is bound. */
static bool has_own_call(const weft_bound_step *bound, const weft_kernel *kernel)
{
    return bound->shared || (kernel->prepare && (!kernel->prepares_alike || kernel->release));
}

weft_status weft_bind_kernel(weft_rank *rank, weft_bound_step *bound, weft_error *error)
{
    const weft_plan *plan = rank->program->plan;
    const uint32_t s = (uint32_t)(bound - rank->steps), kind = plan->likes.of_step[s];
    const int64_t at = rank->layout.scratch[s];
    weft_bound_like *like = &rank->likes[kind];
    WEFT_TRY(find_like(rank, bound->step, like, error));
    const weft_kernel *kernel = like->kernel;
    const bool is_own = has_own_call(bound, kernel);
    weft_call *call =
        is_own ? weft_arena_copy(rank->program->arena, like->call, sizeof *call) : like->call;
    if (!call) return weft_fail_memory(error, sizeof *call);
    weft_point_call(rank, bound->step, call);
    call->stream = rank->stream;
    call->error = &rank->error;
    call->scratch = at >= 0 ? rank->arena + at : NULL;
    if (kernel->prepare && (is_own || !call->prepared))
        WEFT_TRY(kernel->prepare(call, rank->program->arena, &call->prepared, error));
    bound->scratch_bytes = like->scratch_bytes;
    bound->kernel.call = call;
    bound->kernel.is_shared = !is_own && plan->likes.n_of_step[kind] > 1;
    bound->kernel.launch = kernel->launch;
    bound->kernel.waits = kernel->waits;
    bound->kernel.release = kernel->prepare ? kernel->release : NULL;
    return WEFT_OK;
}

void weft_unbind_kernel(weft_bound_step *bound)
{
    if (bound->kernel.release) bound->kernel.release(bound->kernel.call->prepared);
    bound->kernel.release = NULL;
}

weft_status weft_check_kernels(const weft_plan *plan, weft_error *error)
{
    for (uint32_t s = 0; s < plan->n_steps; s++) {
        weft_call call;
        weft_kernel_choice choice;
        if (plan->steps[s].kind != WEFT_STEP_KERNEL) continue;
        weft_step_call(plan, &plan->steps[s], 0, &call);
        WEFT_TRY(weft_step_kernel(plan, &plan->steps[s], &call, &choice, error));
    }
    return WEFT_OK;
}
