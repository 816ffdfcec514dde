/* kernels.c: which kernel a step takes on a rank, asked before there is memory. */
#include "plan.h"

void weft_step_call(const weft_plan *plan, const weft_step *step, int rank, weft_call *call)
{
    call->stream = NULL;
    call->attributes = plan->graph->nodes[step->node].attributes;
    call->prepared = call->scratch = NULL;
    call->n_in = step->n_in;
    call->n_out = step->n_out;
    call->accumulates = weft_step_accumulates(plan, step);
    call->precision = plan->precision;
    for (int i = 0; i < step->n_in; i++)
        weft_placed_view(plan, step->in[i], rank, &call->in[i]);
    for (int o = 0; o < step->n_out; o++)
        weft_placed_view(plan, step->out[o], rank, &call->out[o]);
}

weft_status weft_step_kernel(const weft_plan *plan, const weft_step *step, const weft_call *call,
                             weft_kernel_choice *choice, weft_error *error)
{
    const weft_node *node = &plan->graph->nodes[step->node];
    weft_error why = {0};
    const weft_device_kind device = weft_mesh_device(plan->mesh);
    if (weft_kernel_find(node->op->name, device, call, choice, &why) == WEFT_OK) return WEFT_OK;
    if (!node->origin.file) return weft_fail(error, why.status, "%s", why.message);
    return weft_fail(error, why.status, "%s at %s:%d: %s", node->origin.builder, node->origin.file,
                     node->origin.line, why.message);
}

weft_status weft_kernel_scratch(const char *op, const weft_kernel *kernel, const weft_call *call,
                                int64_t *bytes, weft_error *error)
{
    *bytes = kernel->scratch ? kernel->scratch(call) : 0;
    if (*bytes >= 0) return WEFT_OK;
    return weft_fail(error, WEFT_INTERNAL, "kernel %s of %s asks for %lld bytes of scratch",
                     kernel->name, op, (long long)*bytes);
}
