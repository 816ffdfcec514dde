/* usage.c: what one run needs of a rank, from the plan alone; and what it really did. */
#include "program.h"
#include "regions.h"

#include <stdlib.h>
#include <string.h>

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

static void add_layout(const weft_memory *memory, weft_usage *usage)
{
    memcpy(usage->peak_bytes, memory->peak_bytes, sizeof usage->peak_bytes);
    usage->arena_bytes = memory->arena_bytes;
}

/* A rank that is here has its arena laid out already. */
static weft_status add_memory(const weft_program *program, int rank, weft_usage *usage,
                              weft_error *error)
{
    const weft_rank *self = weft_rank_of(program, rank);
    if (self) {
        add_layout(&self->layout, usage);
        return WEFT_OK;
    }
    weft_arena *arena = weft_arena_create();
    if (!arena) return weft_fail_memory(error, sizeof *usage);
    weft_memory memory;
    weft_status status = weft_plan_memory(program->plan, rank, arena, &memory, error);
    if (status == WEFT_OK) add_layout(&memory, usage);
    weft_arena_destroy(&arena);
    return status;
}

static void add_up(weft_usage *usage)
{
    usage->total_bytes =
        usage->variable_bytes + usage->slot_bytes + usage->input_bytes + usage->arena_bytes;
}

/* ---- what is left to the backward pass ---------------------------------------------------------- */

static bool is_forward(const weft_plan *plan, int32_t step)
{
    return step >= 0 && plan->steps[step].phase == WEFT_FORWARD;
}

static void add_kept(const weft_plan *plan, int rank, weft_usage *usage)
{
    for (uint32_t id = 1; id < plan->n_placed; id++) {
        const weft_placed *placed = &plan->placed[id];
        if (placed->home == WEFT_TEMPORARY && placed->shares == 0 && !placed->is_output &&
            is_forward(plan, placed->first_step) && !is_forward(plan, placed->last_step))
            usage->kept_bytes += weft_placed_bytes(plan, id, rank);
    }
}

/* Who reads a value on the way back: what is computed again, or what is computed there anyway. */
enum { READ_AGAIN = 1, READ_ANYWAY = 2 };

static void find_readers(const weft_graph *graph, uint8_t *readers)
{
    for (uint32_t id = 1; id < graph->n_nodes; id++) {
        const weft_node *node = &graph->nodes[id];
        if (node->phase == WEFT_FORWARD) continue;
        for (int i = 0; i < node->n_in; i++)
            readers[node->in[i]] |= node->repeats ? READ_AGAIN : READ_ANYWAY;
    }
}

/* What is computed again and read anyway would be kept without; what is read by that alone would not. */
static void add_spared(const weft_plan *plan, const uint8_t *readers, int rank, weft_usage *usage)
{
    for (uint32_t value = 1; value < plan->graph->n_tensors; value++) {
        const weft_node *node = weft_node_of(plan->graph, value);
        const uint32_t placed = plan->version[value];
        if (placed == 0 || plan->placed[placed].home != WEFT_TEMPORARY || node->n_in == 0) continue;
        const int64_t bytes = weft_placed_bytes(plan, placed, rank);
        if (node->repeats && readers[value] & READ_ANYWAY)
            usage->spared_bytes += bytes;
        else if (node->phase == WEFT_FORWARD && readers[value] == READ_AGAIN)
            usage->spared_bytes -= bytes;
    }
}

static weft_status add_parts(const weft_plan *plan, int rank, weft_usage *usage, weft_error *error)
{
    for (uint32_t s = 0; s < plan->n_steps; s++)
        usage->again_flops += weft_step_again_flops(plan, &plan->steps[s], rank);
    if (usage->again_flops == 0) return WEFT_OK;
    uint8_t *readers = calloc(plan->graph->n_tensors, sizeof *readers);
    if (!readers) return weft_fail_memory(error, plan->graph->n_tensors);
    find_readers(plan->graph, readers);
    add_spared(plan, readers, rank, usage);
    free(readers);
    return WEFT_OK;
}

weft_status weft_plan_usage(const weft_program *program, int rank, weft_usage *usage,
                            weft_error *error)
{
    WEFT_GIVEN(program, error);
    WEFT_GIVEN(usage, error);
    const weft_plan *plan = program->plan;
    *usage = (weft_usage){0};
    WEFT_GIVEN_RANGE(rank, 0, weft_mesh_n_ranks(plan->mesh) - 1, error);
    WEFT_TRY(add_memory(program, rank, usage, error));
    add_homes(plan, rank, usage);
    for (uint32_t s = 0; s < plan->n_steps; s++) {
        const double times = weft_times_of(plan, &plan->steps[s]);
        usage->flops += times * weft_step_flops(plan, &plan->steps[s], rank);
        usage->n_steps += (int)times;
    }
    add_up(usage);
    add_kept(plan, rank, usage);
    return add_parts(plan, rank, usage, error);
}

int weft_plan_traffic(const weft_program *program, int rank, weft_traffic *traffic, int room)
{
    if (!program || rank < 0 || rank >= weft_mesh_n_ranks(program->mesh)) return 0;
    const weft_plan *plan = program->plan;
    if (!traffic) room = 0;
    for (int i = 0; i < plan->n_traffic && i < room; i++)
        traffic[i] = plan->traffic[i];
    for (uint32_t s = 0; s < plan->n_steps; s++) {
        const weft_step *step = &plan->steps[s];
        int at = weft_step_traffic(plan, step);
        if (at < 0 || at >= room) continue;
        const int64_t times = (int64_t)weft_times_of(plan, step);
        traffic[at].count += times;
        traffic[at].bytes += times * weft_step_wire_bytes(plan, step, rank);
    }
    return plan->n_traffic;
}

/* ---- measured -------------------------------------------------------------------------------- */

/* Highest byte touched, as the plan rounds it: to the alignment of buffers. */
void weft_measured_usage(const weft_program *program, int rank, weft_usage *usage)
{
    if (!usage) return;
    *usage = (weft_usage){0};
    const weft_rank *self = program ? weft_rank_of(program, rank) : NULL;
    if (!self) return;
    *usage = self->measured;
    usage->why_apart = weft_why_apart(self);
    usage->arena_bytes = weft_aligned(usage->arena_bytes);
    add_homes(program->plan, rank, usage);
    add_up(usage);
}

int weft_measured_traffic(const weft_program *program, int rank, weft_traffic *traffic, int room)
{
    if (!program || rank < 0 || rank >= weft_mesh_n_ranks(program->mesh)) return 0;
    const weft_rank *self = weft_rank_of(program, rank);
    if (!traffic) room = 0;
    for (int i = 0; i < program->plan->n_traffic && i < room; i++)
        traffic[i] = self ? self->traffic[i] : program->plan->traffic[i];
    return program->plan->n_traffic;
}
