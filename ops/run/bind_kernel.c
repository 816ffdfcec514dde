/* bind_kernel.c: a kernel step with pointers: the kernel is chosen, and works out once what it can. */
#include "program.h"

static void point_at(const weft_rank *rank, const weft_step *step, weft_call *call)
{
    for (int i = 0; i < step->n_in; i++)
        call->in[i].data = rank->memory[step->in[i]];
    for (int o = 0; o < step->n_out; o++)
        call->out[o].data = rank->memory[step->out[o]];
}

weft_status weft_bind_kernel(weft_rank *rank, weft_bound_step *bound, weft_error *error)
{
    const weft_plan *plan = rank->program->plan;
    const weft_step *step = bound->step;
    const char *op = plan->graph->nodes[step->node].op->name;
    const int64_t at = rank->layout.scratch[bound - rank->steps];
    weft_kernel_choice choice;
    weft_call *call = weft_arena_take(rank->program->arena, sizeof *call);
    if (!call) return weft_fail_memory(error, sizeof *call);
    weft_step_call(plan, step, rank->rank, call);
    WEFT_TRY(weft_step_kernel(plan, step, call, &choice, error));
    WEFT_TRY(weft_kernel_scratch(op, choice.kernel, call, &bound->scratch_bytes, error));
    point_at(rank, step, call);
    call->stream = rank->stream;
    call->error = &rank->error;
    call->scratch = at >= 0 ? rank->arena + at : NULL;
    if (choice.kernel->prepare)
        WEFT_TRY(choice.kernel->prepare(call, rank->program->arena, &call->prepared, error));
    bound->kernel.call = call;
    bound->kernel.launch = choice.kernel->launch;
    bound->kernel.waits = choice.kernel->waits;
    bound->kernel.release = choice.kernel->prepare ? choice.kernel->release : NULL;
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
