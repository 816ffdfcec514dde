/* index: what is looked up in a plan that is done: which user's value a tensor stands for, the
 * versions of a value, from which step to which a tensor is used, and the kinds of traffic.
 */
#include "plan.h"

static void index_values(weft_plan *plan)
{
    for (uint32_t user = plan->n_user_values; user-- > 1;)
        if (plan->user_value[user]) plan->user_of[plan->user_value[user]] = user;
    for (uint32_t id = plan->n_placed; id-- > 1;) { /* from the last, so that chains go up */
        weft_placed *placed = &plan->placed[id];
        placed->next = plan->version[placed->value];
        plan->version[placed->value] = id;
    }
}

static void use(weft_plan *plan, uint32_t id, int32_t step)
{
    weft_placed *placed = &plan->placed[id];
    if (placed->first_step < 0 && placed->home == WEFT_TEMPORARY) placed->first_step = step;
    if (step > placed->last_step) placed->last_step = step;
}

/* A tensor that shares another's memory keeps that one alive. */
static void index_lifetimes(weft_plan *plan)
{
    int32_t last = (int32_t)plan->n_steps - 1;
    for (uint32_t id = 1; id < plan->n_placed; id++)
        plan->placed[id].first_step = plan->placed[id].last_step = -1;
    for (uint32_t s = 0; s < plan->n_steps; s++) {
        const weft_step *step = &plan->steps[s];
        for (int o = 0; o < step->n_out; o++)
            use(plan, step->out[o], (int32_t)s);
        for (int i = 0; i < step->n_in; i++)
            use(plan, step->in[i], (int32_t)s);
    }
    for (uint32_t id = 1; id < plan->n_placed; id++) {
        weft_placed *placed = &plan->placed[id];
        if (placed->is_output || placed->home != WEFT_TEMPORARY) placed->last_step = last;
        for (uint32_t at = id; plan->placed[at].shares; at = plan->placed[at].shares) {
            weft_placed *owner = &plan->placed[plan->placed[at].shares];
            if (placed->last_step > owner->last_step) owner->last_step = placed->last_step;
            if (placed->first_step < 0 && placed->last_step >= 0)
                placed->first_step = owner->first_step; /* another word for what was there before */
        }
    }
}

int weft_step_traffic(const weft_plan *plan, const weft_step *step)
{
    if (step->kind != WEFT_STEP_CONVERT || !step->convert.axes) return -1;
    for (int i = 0; i < plan->n_traffic; i++)
        if (plan->traffic[i].axes == step->convert.axes &&
            plan->traffic[i].kind == step->convert.kind)
            return i;
    return -1;
}

static weft_status index_traffic(weft_plan *plan, weft_error *error)
{
    enum { most = (1 << WEFT_MAX_AXES) * WEFT_CONVERTS };
    plan->traffic = weft_arena_take(plan->arena, most * sizeof *plan->traffic);
    if (!plan->traffic) return weft_fail_memory(error, most * sizeof *plan->traffic);
    for (uint32_t s = 0; s < plan->n_steps; s++) {
        const weft_step *step = &plan->steps[s];
        if (step->kind != WEFT_STEP_CONVERT || !step->convert.axes) continue;
        if (weft_step_traffic(plan, step) >= 0) continue;
        plan->traffic[plan->n_traffic++] =
            (weft_traffic){.axes = step->convert.axes, .kind = step->convert.kind};
    }
    return WEFT_OK;
}

weft_status weft_plan_index(weft_plan *plan, weft_error *error)
{
    const size_t bytes = plan->graph->n_tensors * sizeof *plan->user_of;
    plan->user_of = weft_arena_take(plan->arena, bytes);
    plan->version = weft_arena_take(plan->arena, bytes);
    if (!plan->user_of || !plan->version) return weft_fail_memory(error, bytes);
    index_values(plan);
    index_lifetimes(plan);
    WEFT_TRY(index_traffic(plan, error));
    return weft_find_queues(plan, error);
}
