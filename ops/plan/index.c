/* index: what is looked up in a plan that is done: which user's value a tensor stands for, the
 * versions of a value, from which step to which a tensor is used, and the kinds of traffic.
 */
#include "likes.h"
#include "regions.h"

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

/* A view is used where its owner is. */
static void use(const weft_plan *plan, const weft_regions *regions, weft_life *lives,
                uint32_t placed, uint32_t scan, uint32_t s)
{
    weft_live(regions, &lives[placed], scan, s);
    for (; plan->placed[placed].through != 0; placed = plan->placed[placed].shares)
        weft_live(regions, &lives[plan->placed[placed].shares], scan, s);
}

static void find_lifetimes(weft_plan *plan, const weft_regions *regions, weft_life *lives)
{
    for (uint32_t s = 0; s < plan->n_steps; s++) {
        const weft_step *step = &plan->steps[s];
        for (int o = 0; o < step->n_out; o++)
            use(plan, regions, lives, step->out[o], step->scan, s);
        for (int i = 0; i < step->n_in; i++)
            use(plan, regions, lives, step->in[i], step->scan, s);
    }
    for (uint32_t id = 1; id < plan->n_placed; id++) {
        weft_placed *placed = &plan->placed[id];
        const bool is_temporary = placed->home == WEFT_TEMPORARY;
        placed->first_step = lives[id].is_used && is_temporary ? (int32_t)lives[id].first : -1;
        placed->last_step = lives[id].is_used ? (int32_t)lives[id].last : -1;
    }
}

/* A tensor that shares another's memory keeps that one alive. */
static weft_status index_lifetimes(weft_plan *plan, weft_error *error)
{
    int32_t last = (int32_t)plan->n_steps - 1;
    weft_regions regions;
    weft_life *lives = weft_arena_take(plan->arena, (plan->n_placed + 1) * sizeof *lives);
    if (!lives) return weft_fail_memory(error, plan->n_placed * sizeof *lives);
    WEFT_TRY(weft_find_regions(plan, plan->arena, &regions, error));
    find_lifetimes(plan, &regions, lives);
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
    return WEFT_OK;
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

static weft_status index_flops(weft_plan *plan, weft_error *error)
{
    const size_t bytes = ((size_t)plan->n_steps + 1) * sizeof *plan->flops;
    plan->flops = weft_arena_take(plan->arena, bytes);
    double *of_kind = weft_arena_take(plan->arena, plan->likes.n_steps * sizeof *of_kind);
    if (!plan->flops || !of_kind) return weft_fail_memory(error, bytes);
    for (uint32_t k = 0; k < plan->likes.n_steps; k++)
        of_kind[k] = weft_step_flops(plan, &plan->steps[plan->likes.steps[k]], 0);
    for (uint32_t s = 0; s < plan->n_steps; s++)
        plan->flops[s + 1] = plan->flops[s] + of_kind[plan->likes.of_step[s]];
    return WEFT_OK;
}

double weft_flops_between(const weft_plan *plan, uint32_t begin, uint32_t end, int rank)
{
    double flops = 0;
    if (rank == 0) return plan->flops[end] - plan->flops[begin];
    for (uint32_t s = begin; s < end; s++)
        flops += weft_step_flops(plan, &plan->steps[s], rank);
    return flops;
}

weft_status weft_plan_index(weft_plan *plan, weft_error *error)
{
    const size_t bytes = plan->graph->n_tensors * sizeof *plan->user_of;
    plan->user_of = weft_arena_take(plan->arena, bytes);
    plan->version = weft_arena_take(plan->arena, bytes);
    if (!plan->user_of || !plan->version) return weft_fail_memory(error, bytes);
    index_values(plan);
    WEFT_TRY(weft_find_likes(plan, error));
    WEFT_TRY(weft_sizes_of(plan, 0, plan->arena, plan->build.moves, &plan->packed.sizes, error));
    WEFT_TRY(index_lifetimes(plan, error));
    WEFT_TRY(index_traffic(plan, error));
    WEFT_TRY(index_flops(plan, error));
    return weft_find_queues(plan, error);
}
