/* bind.c: one rank's steps with pointers in place of names: after this, a run allocates nothing. */
#include "program.h"

#include <stdio.h>
#include <string.h>

static int64_t top_of(const weft_rank *rank, uint32_t placed)
{
    const weft_plan *plan = rank->program->plan;
    if (rank->layout.offset[placed] < 0) return 0;
    return rank->layout.offset[placed] + weft_placed_bytes(plan, placed, rank->rank);
}

static weft_status bind_convert(weft_rank *rank, weft_bound_step *bound, weft_error *error)
{
    const weft_step *step = bound->step;
    const weft_plan *plan = rank->program->plan;
    const weft_type *type = &plan->placed[step->in[0]].type;
    bound->from = rank->memory[step->in[0]];
    bound->to = rank->memory[step->out[0]];
    if (step->convert.axes)
        bound->comm = weft_comm_of(rank->program->comms, rank->rank, step->convert.axes);
    WEFT_TRY(weft_move_create(plan->mesh, &type->shape, type->dtype, &step->convert, rank->rank,
                              &bound->move, error));
    bound->scratch_bytes = weft_move_scratch(bound->move);
    return weft_flight_create(bound->move, bound->comm, &bound->flight, error);
}

static weft_status bind_copy(weft_rank *rank, weft_bound_step *bound, weft_error *error)
{
    (void)error;
    const weft_step *step = bound->step;
    bound->from = rank->memory[step->in[0]];
    bound->to = rank->memory[step->out[0]];
    bound->bytes = weft_placed_bytes(rank->program->plan, step->in[0], rank->rank);
    return WEFT_OK;
}

static const weft_step_run binders[WEFT_STEPS] = {[WEFT_STEP_KERNEL] = weft_bind_kernel,
                                                  [WEFT_STEP_LOOP] = weft_bind_loop,
                                                  [WEFT_STEP_CONVERT] = bind_convert,
                                                  [WEFT_STEP_COPY] = bind_copy};

/* What reports call the step: the tensor, and the place in the user's program. */
static void bind_spot(weft_rank *rank, weft_bound_step *bound)
{
    char what[WEFT_SPOT_BYTES], where[64] = "", shape[96];
    const weft_plan *plan = rank->program->plan;
    const weft_step *step = bound->step;
    const weft_node *node = &plan->graph->nodes[step->node];
    const uint32_t placed = step->n_out > 0 ? step->out[0] : step->n_in > 0 ? step->in[0] : 0;
    if (rank->recorder == NULL || placed == 0) return;
    const weft_placed *p = &plan->placed[placed];
    const weft_node *maker = weft_node_of(plan->graph, p->value);
    const bool is_variable = p->home == WEFT_VARIABLE_HOME;
    weft_shape_print(&p->type.shape, shape, sizeof shape);
    snprintf(what, sizeof what, "of %.48s%s %.64s %s",
             is_variable ? ((const weft_variable_attributes *)maker->attributes)->name
                         : maker->op->name,
             is_variable ? "" : "'s result", shape, weft_dtype_name(p->type.dtype));
    if (node->origin.file)
        snprintf(where, sizeof where, ", called at %.40s:%d", node->origin.file, node->origin.line);
    if (bound->move != NULL && bound->comm != NULL) {
        weft_flight_name(bound->flight, rank->program->mark, what, where);
    } else {
        strncat(what, where, sizeof what - strlen(what) - 1);
        bound->spot = weft_recorder_spot(rank->recorder, weft_digest(0, what, strlen(what)), what);
    }
}

static void bind_scratch(const weft_rank *rank, uint32_t s, weft_bound_step *bound)
{
    int64_t at = rank->layout.scratch[s];
    if (at >= 0) bound->scratch = rank->arena + at;
    int64_t top = at >= 0 ? at + bound->scratch_bytes : 0;
    for (int i = 0; i < bound->step->n_in + bound->step->n_out; i++) {
        bool is_in = i < bound->step->n_in;
        uint32_t placed = is_in ? bound->step->in[i] : bound->step->out[i - bound->step->n_in];
        int64_t its = top_of(rank, placed);
        if (its > top) top = its;
    }
    bound->top_bytes = top;
}

weft_status weft_bind(weft_rank *rank, weft_error *error)
{
    const weft_plan *plan = rank->program->plan;
    for (uint32_t s = 0; s < plan->n_steps; s++) {
        weft_bound_step *bound = &rank->steps[s];
        bound->step = &plan->steps[s];
        bound->traffic = weft_step_traffic(plan, bound->step);
        WEFT_TRY(binders[bound->step->kind](rank, bound, error));
        bind_scratch(rank, s, bound);
        bind_spot(rank, bound);
    }
    return WEFT_OK;
}

void weft_unbind(weft_rank *rank)
{
    if (!rank->steps) return;
    for (uint32_t s = 0; s < rank->program->plan->n_steps; s++) {
        weft_flight_destroy(&rank->steps[s].flight);
        weft_move_destroy(&rank->steps[s].move);
        weft_unbind_kernel(&rank->steps[s]);
    }
}
