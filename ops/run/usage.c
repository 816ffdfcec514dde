/* usage.c: what one run needs of a rank, from the plan alone; and what it really did. */
#include "program.h"

#include <string.h>

weft_traffic *weft_usage_traffic(weft_usage *usage, uint32_t axes, weft_convert_kind kind)
{
    enum { room = sizeof usage->traffic / sizeof usage->traffic[0] };
    for (int i = 0; i < usage->n_traffic; i++)
        if (usage->traffic[i].axes == axes && usage->traffic[i].kind == kind)
            return &usage->traffic[i];
    if (usage->n_traffic == room) return NULL;
    usage->traffic[usage->n_traffic] = (weft_traffic){.axes = axes, .kind = kind};
    return &usage->traffic[usage->n_traffic++];
}

static void add_homes(const weft_plan *plan, int rank, weft_usage *usage)
{
    for (uint32_t id = 1; id < plan->n_placed; id++) {
        const weft_placed *placed = &plan->placed[id];
        if (placed->home == WEFT_TEMPORARY) continue;
        int64_t bytes = weft_placed_bytes(plan, id, rank);
        if (placed->home == WEFT_INPUT_HOME) {
            usage->input_bytes += bytes;
            continue;
        }
        const weft_variable_attributes *variable =
            weft_node_of(plan->graph, placed->value)->attributes;
        *(variable->owner ? &usage->slot_bytes : &usage->variable_bytes) += bytes;
    }
}

static weft_status add_step(const weft_plan *plan, const weft_step *step, int rank,
                            weft_usage *usage, weft_error *error)
{
    usage->n_steps++;
    if (step->kind == WEFT_STEP_KERNEL || step->kind == WEFT_STEP_LOOP)
        usage->flops += weft_step_flops(plan, step, rank);
    if (step->kind != WEFT_STEP_CONVERT || !step->convert.axes) return WEFT_OK;
    const weft_type *type = &plan->placed[step->in[0]].type;
    weft_traffic *traffic = weft_usage_traffic(usage, step->convert.axes, step->convert.kind);
    if (!traffic)
        return weft_fail(error, WEFT_INTERNAL, "more kinds of traffic than a report has room for");
    traffic->count++;
    traffic->bytes +=
        weft_convert_bytes(plan->mesh, &type->shape, type->dtype, &step->convert, rank);
    return WEFT_OK;
}

weft_status weft_plan_usage(const weft_program *program, int rank, weft_usage *usage,
                            weft_error *error)
{
    const weft_plan *plan = program->plan;
    *usage = (weft_usage){0};
    weft_arena *arena = weft_arena_create();
    if (!arena) return weft_fail_memory(error, sizeof *usage);
    weft_memory memory;
    weft_status status = weft_plan_memory(plan, rank, arena, &memory, error);
    if (status == WEFT_OK) {
        memcpy(usage->peak_bytes, memory.peak_bytes, sizeof usage->peak_bytes);
        usage->arena_bytes = memory.arena_bytes;
    }
    weft_arena_destroy(&arena);
    WEFT_TRY(status);
    add_homes(plan, rank, usage);
    for (uint32_t s = 0; s < plan->n_steps; s++)
        WEFT_TRY(add_step(plan, &plan->steps[s], rank, usage, error));
    usage->total_bytes =
        usage->variable_bytes + usage->slot_bytes + usage->input_bytes + usage->arena_bytes;
    return WEFT_OK;
}

/* Highest byte touched, as the plan rounds it: to the alignment of buffers. */
void weft_measured_usage(const weft_program *program, int rank, weft_usage *usage)
{
    const weft_rank *self = weft_rank_of(program, rank);
    *usage = self ? self->measured : (weft_usage){0};
    usage->arena_bytes = (usage->arena_bytes + 63) / 64 * 64;
    if (!self) return;
    add_homes(program->plan, rank, usage);
    usage->total_bytes =
        usage->variable_bytes + usage->slot_bytes + usage->input_bytes + usage->arena_bytes;
}
