/* plan_facts: the plan as data: what a step, a tensor, a decision is, as a rank sees it. */
#include "passes.h"
#include "program.h"
#include "regions.h"

#include <stdlib.h>
#include <string.h>

static const char *name_in(const char *const *names, unsigned at, unsigned end)
{
    return at < end ? names[at] : "?";
}

const char *weft_way_kind_name(weft_way_kind kind)
{
    static const char *const names[WEFT_WAYS] = {"cut", "partial", "whole"};
    return name_in(names, (unsigned)kind, WEFT_WAYS);
}

const char *weft_tensor_kind_name(weft_tensor_kind kind)
{
    static const char *const names[WEFT_TENSOR_KINDS] = {"temporary", "input", "parameter", "slot"};
    return name_in(names, (unsigned)kind, WEFT_TENSOR_KINDS);
}

const char *weft_step_reason_name(weft_step_reason reason)
{
    static const char *const names[WEFT_REASONS] = {"op",     "partial", "operand",
                                                    "output", "store",   "old"};
    return name_in(names, (unsigned)reason, WEFT_REASONS);
}

/* For steps that keep no text of their own. */
static const char *reason_text(weft_step_reason reason)
{
    static const char *const texts[WEFT_REASONS] = {
        [WEFT_BECAUSE_OP] = "the op's own work",
        [WEFT_BECAUSE_PARTIAL] = "a partial result is finished",
        [WEFT_BECAUSE_OPERAND] = "its consumer needs it so",
        [WEFT_BECAUSE_OUTPUT] = "it is read after the run",
        [WEFT_BECAUSE_STORE] = "what is kept gets its new value",
        [WEFT_BECAUSE_OLD] = "the old value is needed beside the new one",
    };
    return name_in(texts, (unsigned)reason, WEFT_REASONS);
}

static weft_status check_index(int index, uint32_t end, const char *function, const char *what,
                               weft_error *error)
{
    if (index >= 0 && (uint32_t)index < end) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE, "%s: there is no %s %d; the plan has %u, counted from 0",
                     function, what, index, end);
}

/* ---- the whole ------------------------------------------------------------------------------- */

const weft_layout *weft_plan_layout(const weft_program *program)
{
    return program ? program->plan->layout : NULL;
}

const char *weft_plan_policy(const weft_program *program)
{
    return program ? program->plan->policy_name : NULL;
}

/* ---- tensors --------------------------------------------------------------------------------- */

int weft_plan_n_tensors(const weft_program *program)
{
    return program && program->plan->n_placed ? (int)program->plan->n_placed - 1 : 0;
}

static weft_tensor_kind kind_of(const weft_plan *plan, const weft_placed *placed)
{
    if (placed->home == WEFT_TEMPORARY) return WEFT_TENSOR_TEMPORARY;
    if (placed->home == WEFT_INPUT_HOME) return WEFT_TENSOR_INPUT;
    const weft_variable_attributes *variable = weft_node_of(plan->graph, placed->value)->attributes;
    return variable->owner ? WEFT_TENSOR_SLOT : WEFT_TENSOR_PARAMETER;
}

static weft_status specs_of(const weft_plan *plan, const weft_placed *placed,
                            weft_planned_tensor *tensor, weft_error *error)
{
    tensor->spec = placed->spec;
    WEFT_TRY(weft_wanted_spec(plan, placed->value, &tensor->wanted, error));
    tensor->storage = tensor->wanted;
    if (weft_node_of(plan->graph, placed->value)->op == &weft_op_variable)
        WEFT_TRY(weft_home_spec(plan, placed->value, &tensor->storage, error));
    return WEFT_OK;
}

weft_status weft_plan_tensor_at(const weft_program *program, uint32_t id, int rank,
                                weft_planned_tensor *tensor, weft_error *error)
{
    WEFT_GIVEN(program, error);
    WEFT_GIVEN(tensor, error);
    const weft_plan *plan = program->plan;
    WEFT_GIVEN_RANGE(id, 1, weft_plan_n_tensors(program), error);
    WEFT_GIVEN_RANGE(rank, 0, weft_mesh_n_ranks(plan->mesh) - 1, error);
    const weft_placed *placed = &plan->placed[id];
    const weft_tensor *value = &plan->graph->tensors[placed->value];
    const weft_node *node = &plan->graph->nodes[value->node];
    *tensor = (weft_planned_tensor){
        .id = id,
        .value = placed->value,
        .next = placed->next,
        .user = {(weft_graph *)(uintptr_t)program->user, plan->user_of[placed->value]},
        .name = value->name,
        .node = value->node,
        .op = node->op->name,
        .builder = node->origin.builder,
        .file = node->origin.file,
        .line = node->origin.line,
        .phase = (weft_phase)placed->phase,
        .kind = kind_of(plan, placed),
        .is_output = placed->is_output,
        .dtype = placed->type.dtype,
        .shape = &placed->type.shape,
        .bytes = weft_placed_bytes(plan, id, rank),
        .shares = placed->shares,
        .first_step = placed->first_step,
        .last_step = placed->last_step};
    weft_spec_box(&placed->spec, plan->mesh, &placed->type.shape, rank, &tensor->box);
    return specs_of(plan, placed, tensor, error);
}

uint32_t weft_plan_tensor_of(const weft_program *program, weft_value value)
{
    if (!program || value.graph != program->user || value.id >= program->plan->n_user_values)
        return 0;
    uint32_t own = program->plan->user_value[value.id];
    return own ? program->plan->version[own] : 0;
}

weft_status weft_plan_offsets(const weft_program *program, int rank, int64_t *offsets, int room,
                              weft_error *error)
{
    WEFT_GIVEN(program, error);
    WEFT_GIVEN(offsets, error);
    const weft_plan *plan = program->plan;
    WEFT_GIVEN_RANGE(rank, 0, weft_mesh_n_ranks(plan->mesh) - 1, error);
    WEFT_GIVEN_RANGE(room, weft_plan_n_tensors(program) + 1, INT32_MAX, error);
    weft_arena *arena = weft_arena_create();
    if (!arena) return weft_fail_memory(error, sizeof *offsets);
    weft_memory memory;
    weft_status status = weft_plan_memory(plan, rank, arena, &memory, error);
    offsets[0] = -1;
    for (uint32_t id = 1; status == WEFT_OK && id < plan->n_placed; id++)
        offsets[id] = memory.offset[id];
    weft_arena_destroy(&arena);
    return status;
}

/* ---- steps ----------------------------------------------------------------------------------- */

int weft_plan_n_steps(const weft_program *program)
{
    return program ? (int)program->plan->n_steps : 0;
}

static weft_status kernel_of(const weft_plan *plan, const weft_step *from, int rank,
                             weft_planned_step *step, weft_error *error)
{
    weft_call call;
    weft_kernel_choice choice;
    weft_step_call(plan, from, rank, &call);
    WEFT_TRY(weft_step_kernel(plan, from, &call, &choice, error));
    step->kernel = choice.kernel->name;
    step->n_kernels = choice.n_could;
    return WEFT_OK;
}

static weft_status amounts_of(const weft_plan *plan, const weft_step *from, int rank,
                              weft_planned_step *step, weft_error *error)
{
    for (int i = 0; i < from->n_in; i++)
        step->in_bytes += weft_placed_bytes(plan, from->in[i], rank);
    for (int o = 0; o < from->n_out; o++)
        step->out_bytes += weft_placed_bytes(plan, from->out[o], rank);
    const uint32_t index = (uint32_t)step->index, end = weft_step_end(from, index);
    step->flops = weft_step_flops(plan, from, rank);
    if (from->kind == WEFT_STEP_KERNEL) WEFT_TRY(kernel_of(plan, from, rank, step, error));
    WEFT_TRY(weft_step_scratch(plan, from, rank, &step->scratch_bytes, error));
    if (from->kind != WEFT_STEP_CONVERT) return WEFT_OK;
    step->collective = from->convert.kind;
    step->axes = from->convert.axes;
    if (step->axes) step->wire_bytes = weft_step_wire_bytes(plan, from, rank);
    step->n_beside = (int)(end - index);
    step->beside_flops = weft_flops_between(plan, index + 1, end + 1, rank);
    return WEFT_OK;
}

weft_status weft_plan_step_at(const weft_program *program, int index, int rank,
                              weft_planned_step *step, weft_error *error)
{
    WEFT_GIVEN(program, error);
    WEFT_GIVEN(step, error);
    const weft_plan *plan = program->plan;
    WEFT_TRY(check_index(index, plan->n_steps, __func__, "step", error));
    WEFT_GIVEN_RANGE(rank, 0, weft_mesh_n_ranks(plan->mesh) - 1, error);
    const weft_step *from = &plan->steps[index];
    const weft_node *node = &plan->graph->nodes[from->node];
    *step = (weft_planned_step){.index = index,
                                .kind = from->kind,
                                .phase = (weft_phase)from->phase,
                                .node = from->node,
                                .op = node->op->name,
                                .builder = node->origin.builder,
                                .file = node->origin.file,
                                .line = node->origin.line,
                                .why = (weft_step_reason)from->why,
                                .reason = from->reason ? from->reason
                                                       : reason_text((weft_step_reason)from->why),
                                .n_in = from->n_in,
                                .n_out = from->n_out,
                                .in = from->in,
                                .out = from->out,
                                .n_links = from->kind == WEFT_STEP_LOOP ? from->n_links : 0,
                                .n_segments = from->n_segments,
                                .n_row_dims = __builtin_popcount(from->row_dims),
                                .queue = (int)plan->timings[index].queue,
                                .n_waits = (int)plan->timings[index].n_waits,
                                .waits = plan->timings[index].waits,
                                .trips = weft_times_of(plan, from),
                                .is_ahead = from->is_ahead};
    return amounts_of(plan, from, rank, step, error);
}

static void count_exchange(const weft_plan *plan, uint32_t s, int rank, uint32_t *end,
                           weft_planned_queue *queue)
{
    const weft_step *step = &plan->steps[s];
    const int64_t bytes =
        (int64_t)weft_times_of(plan, step) * weft_step_wire_bytes(plan, step, rank);
    const uint32_t last = weft_step_end(step, s);
    const double beside = weft_flops_between(plan, s + 1, last + 1, rank);
    if (last + 1 > *end) *end = last + 1;
    queue->wire_bytes += bytes;
    queue->n_beside += beside > 0;
    if (beside > 0) queue->beside_bytes += bytes;
}

const char *weft_plan_link(const weft_program *program)
{
    return program ? program->plan->link_text : NULL;
}

const char *weft_plan_machine(const weft_program *program)
{
    return program ? program->plan->machine_name : NULL;
}

int weft_plan_n_pricings(const weft_program *program)
{
    return program ? program->plan->n_pricings : 0;
}

weft_status weft_plan_pricing_at(const weft_program *program, int index,
                                 weft_planned_pricing *pricing, weft_error *error)
{
    WEFT_GIVEN(program, error);
    WEFT_GIVEN(pricing, error);
    WEFT_TRY(check_index(index, (uint32_t)program->plan->n_pricings, __func__, "pricing", error));
    *pricing = program->plan->pricings[index];
    return WEFT_OK;
}

int weft_plan_n_queues(const weft_program *program)
{
    return program ? (int)program->plan->n_queues : 0;
}

weft_status weft_plan_queue_at(const weft_program *program, int index, int rank,
                               weft_planned_queue *queue, weft_error *error)
{
    WEFT_GIVEN(program, error);
    WEFT_GIVEN(queue, error);
    const weft_plan *plan = program->plan;
    WEFT_TRY(check_index(index, plan->n_queues, __func__, "queue", error));
    WEFT_GIVEN_RANGE(rank, 0, weft_mesh_n_ranks(plan->mesh) - 1, error);
    *queue = (weft_planned_queue){.index = index, .axes = plan->queues[index]};
    uint32_t end = 0; /* the first step by which all that were begun are finished */
    for (uint32_t s = 0; s < plan->n_steps; s++) {
        const double flops =
            weft_times_of(plan, &plan->steps[s]) * weft_step_flops(plan, &plan->steps[s], rank);
        if (s < end) queue->beside_flops += flops;
        if (plan->timings[s].queue != (uint32_t)index) continue;
        queue->n_steps++;
        queue->flops += flops;
        if (index > 0) count_exchange(plan, s, rank, &end, queue);
    }
    return WEFT_OK;
}

weft_status weft_plan_link_at(const weft_program *program, int step, int index,
                              weft_planned_link *link, weft_error *error)
{
    WEFT_GIVEN(program, error);
    WEFT_GIVEN(link, error);
    const weft_plan *plan = program->plan;
    WEFT_TRY(check_index(step, plan->n_steps, __func__, "step", error));
    const weft_step *loop = &plan->steps[step];
    uint32_t n = loop->kind == WEFT_STEP_LOOP ? (uint32_t)loop->n_links : 0;
    WEFT_TRY(check_index(index, n, __func__, "op of that loop", error));
    const weft_fused_op *from = &loop->links[index];
    const weft_node *node = &plan->graph->nodes[from->node];
    *link = (weft_planned_link){.node = from->node,
                                .op = weft_link_op(plan, from)->name,
                                .builder = node->origin.builder,
                                .file = node->origin.file,
                                .line = node->origin.line,
                                .n_in = from->n_in,
                                .in = from->in,
                                .n_out = from->n_out,
                                .out = from->out};
    return WEFT_OK;
}

/* ---- rules, decisions, cost ------------------------------------------------------------------ */

int weft_plan_n_skipped(const weft_program *program)
{
    return program ? (int)program->plan->n_skips : 0;
}

weft_status weft_plan_skipped_at(const weft_program *program, int index, weft_planned_skip *skip,
                                 weft_error *error)
{
    WEFT_GIVEN(program, error);
    WEFT_GIVEN(skip, error);
    WEFT_TRY(check_index(index, program->plan->n_skips, __func__, "skipped rule", error));
    *skip = program->plan->skips[index];
    return WEFT_OK;
}

int weft_plan_n_candidates(const weft_program *program)
{
    return program ? program->plan->n_candidates : 0;
}

weft_status weft_plan_candidate_at(const weft_program *program, int index,
                                   weft_planned_candidate *candidate, weft_error *error)
{
    WEFT_GIVEN(program, error);
    WEFT_GIVEN(candidate, error);
    WEFT_TRY(
        check_index(index, (uint32_t)program->plan->n_candidates, __func__, "candidate", error));
    *candidate = program->plan->candidates[index];
    return WEFT_OK;
}

int weft_plan_n_variants(const weft_program *program)
{
    return program ? program->plan->n_variants : 0;
}

weft_status weft_plan_variant_at(const weft_program *program, int index,
                                 weft_planned_variant *variant, weft_error *error)
{
    WEFT_GIVEN(program, error);
    WEFT_GIVEN(variant, error);
    WEFT_TRY(check_index(index, (uint32_t)program->plan->n_variants, __func__, "variant", error));
    *variant = program->plan->variants[index];
    return WEFT_OK;
}

int weft_plan_n_decisions(const weft_program *program)
{
    return program ? (int)program->plan->n_decisions : 0;
}

const weft_decision *weft_plan_decision_at(const weft_program *program, int index)
{
    bool is_there = program && index >= 0 && (uint32_t)index < program->plan->n_decisions;
    return is_there ? &program->plan->decisions[index] : NULL;
}

weft_status weft_plan_cost(const weft_program *program, int rank, const weft_cost *cost,
                           weft_planned_cost *planned, weft_error *error)
{
    static const weft_cost usual = {0};
    WEFT_GIVEN(program, error);
    WEFT_GIVEN(planned, error);
    const weft_plan *plan = program->plan;
    WEFT_GIVEN_RANGE(rank, 0, weft_mesh_n_ranks(plan->mesh) - 1, error);
    *planned = (weft_planned_cost){0};
    for (uint32_t s = 0; s < plan->n_steps; s++) {
        weft_exchange exchange;
        const double times = weft_times_of(plan, &plan->steps[s]);
        planned->flops += times * weft_step_flops(plan, &plan->steps[s], rank);
        if (!weft_step_exchange(plan, &plan->steps[s], rank, &exchange)) continue;
        planned->link_bytes += times * exchange.link_bytes;
        planned->exchange += times * weft_exchange_price(plan, cost ? cost : &usual, &exchange);
    }
    planned->work = weft_work_price(cost ? cost : &usual, planned->flops);
    planned->total = planned->exchange + planned->work;
    if (planned->exchange >= 0 && planned->work >= 0) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "%s: the cost function gives %g for exchanges and %g for work; give 0 or more",
                     __func__, planned->exchange, planned->work);
}
