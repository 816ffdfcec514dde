/* lower: a conversion becomes the collectives that carry it out, one step each, with tensors in
 * between.
 *
 * A kernel step of an element op becomes a loop of one link, which fuse can then join with others.
 */
#include "loops.h"

#include <stdlib.h>

static weft_status lower_convert(weft_plan *plan, const weft_step *step, weft_error *error)
{
    weft_convert_step parts[WEFT_MAX_CONVERT];
    weft_placed from = plan->placed[step->in[0]];
    weft_placed to = plan->placed[step->out[0]];
    int n = weft_convert_plan(plan->mesh, &from.type.shape, &from.spec, &to.spec, parts);
    if (n < 0)
        return weft_fail(error, WEFT_INTERNAL, "a conversion was planned to where none leads");
    uint32_t at = step->in[0], made;
    for (int i = 0; i < n; i++) {
        weft_step part = *step;
        part.convert = (weft_step_conversion){
            .kind = parts[i].kind, .axes = parts[i].axes, .is_lowered = true};
        part.in = &at;
        if (i < n - 1) {
            weft_placed between = {.value = from.value,
                                   .type = from.type,
                                   .spec = parts[i].to,
                                   .phase = step->phase,
                                   .reason = from.reason};
            made = weft_plan_place(plan, &between, NULL);
            if (!made) return weft_fail_memory(error, sizeof between);
        } else {
            made = step->out[0];
        }
        part.out = &made;
        if (!weft_plan_step(plan, &part)) return weft_fail_memory(error, sizeof part);
        at = made;
    }
    if (n == 0)
        plan->placed[step->out[0]].shares = step->in[0]; /* another word for the same boxes */
    return WEFT_OK;
}

/* Ops that have no kernel, or whose numbers would not be the same in a loop as in it, are loops from the start; others
 * become part of a loop when they join one. */
static weft_status lower_kernel(weft_plan *plan, const weft_step *step, weft_error *error)
{
    weft_fused_op links[2];
    weft_step loop;
    const weft_op *op = plan->graph->nodes[step->node].op;
    const bool is_loop =
        (op->element || (op->row && op->row->each)) && weft_as_loop(plan, step, links, &loop);
    return weft_plan_step(plan, is_loop ? &loop : step) ? WEFT_OK
                                                        : weft_fail_memory(error, sizeof loop);
}

/* From here on passes ask for it again and again. */
static weft_status keep_scratch(weft_plan *plan, weft_error *error)
{
    int64_t bytes;
    WEFT_TRY(weft_known_moves_open(plan->arena, 0, &plan->build.moves, error));
    for (uint32_t s = 0; s < plan->n_steps; s++)
        if (plan->steps[s].kind == WEFT_STEP_CONVERT)
            WEFT_TRY(weft_keep_scratch(plan->build.moves, plan, &plan->steps[s], &bytes, error));
    return WEFT_OK;
}

weft_status weft_pass_lower(weft_plan *plan, weft_error *error)
{
    uint32_t n_steps = plan->n_steps;
    weft_step *steps = plan->steps;
    weft_status status = WEFT_OK;
    plan->steps = NULL;
    plan->n_steps = plan->build.cap_steps = 0;
    for (uint32_t s = 0; s < n_steps && status == WEFT_OK; s++)
        status = (steps[s].kind == WEFT_STEP_CONVERT ? lower_convert
                                                     : lower_kernel)(plan, &steps[s], error);
    free(steps);
    return status == WEFT_OK ? keep_scratch(plan, error) : status;
}
