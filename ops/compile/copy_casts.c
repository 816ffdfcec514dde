/* copy_casts: a cast of bf16 to f32 that several steps read is done again before each loop among them.
 *
 * fuse makes the copy part of that loop, which widens what it reads. So the f32 is not in memory, nor kept from the forward pass
 * to the backward pass; bf16 of half the bytes is. Kernels that want f32 share the first cast.
 */
#include "passes.h"

#include <stdlib.h>

typedef struct copying {
    weft_plan *plan;
    const weft_step *steps; /* as they were */
    uint32_t *n_reads;      /* [n_placed] of its memory; an output has one more */
    uint32_t *cast; /* [n_placed] the step + 1 that casts it, where it may be copied; 0: none */
} copying;

static bool is_plain(const weft_plan *plan, uint32_t placed)
{
    const weft_placed *p = &plan->placed[placed];
    return p->home == WEFT_TEMPORARY && p->carried == 0 && p->shares == 0 && !p->is_output;
}

static weft_status find_casts(copying *c, uint32_t n_steps, weft_error *error)
{
    const weft_plan *plan = c->plan;
    const size_t bytes = plan->n_placed * sizeof(uint32_t);
    c->n_reads = weft_arena_take(plan->arena, bytes);
    c->cast = weft_arena_take(plan->arena, bytes);
    if (!c->n_reads || !c->cast) return weft_fail_memory(error, bytes);
    for (uint32_t s = 0; s < n_steps; s++) {
        const weft_step *step = &c->steps[s];
        for (int i = 0; i < step->n_in; i++)
            c->n_reads[weft_placed_owner(plan, step->in[i])]++;
        if (weft_is_cast(plan, step, WEFT_BF16, WEFT_F32) && is_plain(plan, step->in[0]) &&
            is_plain(plan, step->out[0]))
            c->cast[step->out[0]] = s + 1;
    }
    for (uint32_t id = 1; id < plan->n_placed; id++)
        c->n_reads[weft_placed_owner(plan, id)] += plan->placed[id].is_output;
    for (uint32_t id = 1; id < plan->n_placed; id++)
        if (c->n_reads[id] < 2) c->cast[id] = 0;
    return WEFT_OK;
}

static weft_status add(copying *c, const weft_step *step, weft_error *error)
{
    return weft_plan_step(c->plan, step) ? WEFT_OK : weft_fail_memory(error, sizeof *step);
}

/* Another cast of an operand of a step, before it; 0: there is no memory. */
static uint32_t copy_cast(copying *c, const weft_step *step, uint32_t operand, weft_error *error)
{
    weft_plan *plan = c->plan;
    weft_step cast = c->steps[c->cast[operand] - 1];
    weft_placed widened = plan->placed[operand];
    const weft_box box = widened.box;
    cast.phase = widened.phase = step->phase;
    const uint32_t made = weft_plan_place(plan, &widened, &box);
    cast.out = &made;
    if (made && add(c, &cast, error) == WEFT_OK) return made;
    weft_fail_memory(error, sizeof widened);
    return 0;
}

/* A loop with casts of its own; any other step as it is, and casts for as long as anybody reads them. */
static weft_status add_step(copying *c, const weft_step *step, weft_error *error)
{
    const bool is_reader = step->kind == WEFT_STEP_LOOP && step->n_segments == 1;
    uint32_t in[WEFT_LOOP_SLOTS];
    weft_step own = *step;
    for (int i = 0; i < step->n_in && is_reader; i++) {
        const uint32_t operand = step->in[i], cast = c->cast[operand];
        in[i] = operand;
        if (!cast || c->steps[cast - 1].scan != step->scan) continue;
        for (int k = 0; k < i; k++)
            if (step->in[k] == operand) in[i] = in[k];
        if (in[i] == operand) in[i] = copy_cast(c, step, operand, error);
        if (in[i] == 0) return WEFT_MEMORY;
        c->n_reads[operand]--;
    }
    if (is_reader) own.in = in;
    return add(c, &own, error);
}

static bool has_any(const copying *c, uint32_t n_placed)
{
    bool any = false;
    for (uint32_t id = 1; id < n_placed && !any; id++)
        any = c->cast[id] != 0;
    return any;
}

/* The first casts stand before their readers, so those whom nobody reads any more go last. */
static void drop_unread(copying *c, uint32_t n_placed)
{
    weft_plan *plan = c->plan;
    uint32_t kept = 0;
    for (uint32_t s = 0; s < plan->n_steps; s++) {
        const weft_step *step = &plan->steps[s];
        const uint32_t made = step->n_out == 1 ? step->out[0] : 0;
        const bool is_unread = made && made < n_placed && c->cast[made] && c->n_reads[made] == 0;
        if (!is_unread) plan->steps[kept++] = *step;
    }
    plan->n_steps = kept;
}

weft_status weft_pass_copy_casts(weft_plan *plan, weft_error *error)
{
    const uint32_t n_steps = plan->n_steps, n_placed = plan->n_placed;
    copying c = {.plan = plan, .steps = plan->steps};
    if (!weft_has_bf16(plan)) return WEFT_OK;
    WEFT_TRY(find_casts(&c, n_steps, error));
    if (!has_any(&c, n_placed)) return WEFT_OK;
    weft_step *steps = plan->steps;
    weft_status status = WEFT_OK;
    plan->steps = NULL;
    plan->n_steps = plan->build.cap_steps = 0;
    for (uint32_t s = 0; s < n_steps && status == WEFT_OK; s++)
        status = add_step(&c, &steps[s], error);
    free(steps);
    drop_unread(&c, n_placed);
    return status;
}
