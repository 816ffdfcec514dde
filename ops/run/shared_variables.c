/* shared_variables: the ranks of one host keep a single copy of a variable.
 *
 * Where ranks see each other's memory - threads, and processes of one host -, those that would hold equal copies of a
 * variable hold it once. Its writers then run once: each rank does its part of the work, as its lanes do theirs, so
 * there are the same bits. An update rule of replicated parameters costs what it does on one rank, whatever the
 * number of ranks, and so do their bytes in memory.
 *
 * That can be done where a variable is written by loops, copies and all_gathers alone, if all their results are
 * variables that the same ranks hold in common; each rank keeps its own where it cannot. Of a gathered one each rank
 * brings its own part, and nobody copies the others': so the parameters of ZeRO 1 are there once. Which it is the
 * program decides that takes the memory. Where the host does not see the device's memory, ranks do not see each
 * other's. One that shares its variables may write them otherwise: then one rank does the step where they lie, and
 * the others in copies made before, so that what else it makes is made on all.
 */
#include "program.h"

#include <stdlib.h>
#include <string.h>

/* ---- which ----------------------------------------------------------------------------------- */

static uint32_t replicated_axes(const weft_program *program, uint32_t placed)
{
    const weft_plan *plan = program->plan;
    const weft_placed *p = &plan->placed[placed];
    uint32_t axes = 0;
    for (int a = 0; a < weft_mesh_n_axes(plan->mesh); a++)
        if (weft_mesh_axis_size(plan->mesh, a) > 1 && program->seen >> a & 1 &&
            weft_spec_state(&p->spec, p->type.shape.n_dims, a) == WEFT_REPLICATED)
            axes |= 1u << a;
    return axes;
}

/* The axes over which ranks hold in common what result `o` is written to; 0: none do. */
static uint32_t axes_of(const weft_program *program, const weft_step *step, int o)
{
    return program->common[weft_placed_owner(program->plan, step->out[o])];
}

static bool gathers(const weft_step *step)
{
    return step->kind == WEFT_STEP_CONVERT && step->convert.kind == WEFT_ALL_GATHER;
}

/* The axes over which the ranks can share the step out among them; 0: they cannot. */
static uint32_t axes_shared_out(const weft_program *program, const weft_step *step)
{
    const bool has_parts = step->kind == WEFT_STEP_LOOP || step->kind == WEFT_STEP_COPY;
    if ((!has_parts && !gathers(step)) || step->n_out == 0) return 0;
    const uint32_t axes = axes_of(program, step, 0);
    for (int o = 1; o < step->n_out; o++)
        if (axes_of(program, step, o) != axes) return 0;
    return gathers(step) && step->convert.axes & ~axes ? 0 : axes;
}

/* What it writes is held by each rank, if it cannot be shared out. Whether that is new. */
static bool settle(weft_program *program, const weft_step *step)
{
    bool is_new = false;
    if (axes_shared_out(program, step)) return false;
    for (int o = 0; o < step->n_out; o++) {
        const uint32_t owner = weft_placed_owner(program->plan, step->out[o]);
        if (!program->common[owner] || program->given[owner]) continue;
        program->common[owner] = 0;
        is_new = true;
    }
    return is_new;
}

weft_status weft_find_common(weft_program *program, weft_error *error)
{
    const weft_plan *plan = program->plan;
    program->common = weft_arena_take(program->arena, plan->n_placed * sizeof *program->common);
    if (!program->common) return weft_fail_memory(error, plan->n_placed * sizeof *program->common);
    for (uint32_t id = 1; id < plan->n_placed; id++)
        if (plan->placed[id].home == WEFT_VARIABLE_HOME)
            program->common[id] = program->given[id] ? program->share->common[program->given[id]]
                                                     : replicated_axes(program, id);
    for (bool is_settled = false; !is_settled;) {
        is_settled = true;
        for (uint32_t s = 0; s < plan->n_steps; s++)
            if (settle(program, &plan->steps[s])) is_settled = false;
    }
    return WEFT_OK;
}

int weft_first_along(const weft_mesh *mesh, uint32_t axes, int rank)
{
    int coordinates[WEFT_MAX_AXES];
    weft_mesh_coordinates(mesh, rank, coordinates);
    for (int a = 0; a < WEFT_MAX_AXES; a++)
        if (axes >> a & 1) coordinates[a] = 0;
    return weft_mesh_rank(mesh, coordinates);
}

int weft_holder_of(const weft_program *program, uint32_t placed, int rank)
{
    const uint32_t axes = program->common[placed];
    return axes ? weft_first_along(program->mesh, axes, rank) : rank;
}

/* ---- bound ----------------------------------------------------------------------------------- */

static size_t n_sets(const weft_program *program)
{
    return (size_t)1 << weft_mesh_n_axes(program->mesh);
}

/* Whether this process sees all ranks that differ from its own along one axis. */
static bool sees_along(const weft_program *program, int axis)
{
    const weft_rank *rank = program->ranks;
    int coordinates[WEFT_MAX_AXES];
    weft_mesh_coordinates(program->mesh, rank->rank, coordinates);
    for (int i = 0; i < weft_mesh_axis_size(program->mesh, axis); i++) {
        coordinates[axis] = i;
        const int r = weft_mesh_rank(program->mesh, coordinates);
        if (r != rank->rank && !weft_comms_see(program->comms, program->barriers, r)) return false;
    }
    return true;
}

/* Programs that share variables meet where the first of them does: what one sees of memory, so does the other. */
weft_status weft_open_barriers(weft_program *program, weft_error *error)
{
    const bool has_others = weft_has_others(program);
    void *memory;
    if (has_others && program->share) {
        program->barriers = program->share->barriers;
        program->seen = program->share->seen;
        return WEFT_OK;
    }
    const size_t bytes = (size_t)program->n_local * n_sets(program) * sizeof(weft_barrier);
    WEFT_TRY(weft_comms_take(program->comms, (int64_t)bytes, &memory, error));
    program->barriers = memory;
    if (!weft_devices[weft_mesh_device(program->mesh)]->is_open) return WEFT_OK;
    for (int a = 0; a < weft_mesh_n_axes(program->mesh); a++) {
        bool is_hidden = has_others && !sees_along(program, a);
        if (has_others) WEFT_TRY(weft_world_any(is_hidden, &is_hidden, error));
        if (!is_hidden) program->seen |= 1u << a;
    }
    return WEFT_OK;
}

/* Where the ranks meet that differ from this one along some axes only: with the first of them. */
static weft_barrier *barrier_of(const weft_program *program, uint32_t axes, int first)
{
    const int at = first - weft_mesh_first_local(program->mesh);
    const weft_program *owner = program;
    if (at >= 0 && at < program->n_local)
        return program->barriers + (size_t)at * n_sets(program) + axes;
    while (owner->share)
        owner = owner->share;
    weft_barrier *its = weft_comms_see(owner->comms, program->barriers, first);
    return its + axes;
}

static void find_barrier(weft_rank *rank, uint32_t axes, weft_shared_write *t, int *self)
{
    const weft_program *program = rank->program;
    const weft_mesh *mesh = program->mesh;
    const int n = weft_mesh_group(mesh, axes, rank->rank, NULL, self);
    const int first = weft_first_along(mesh, axes, rank->rank);
    const char *text = weft_mesh_text(mesh);
    const uint64_t facts[2] = {weft_digest(0, text, strlen(text)), axes};
    t->barrier = barrier_of(program, axes, first);
    weft_barrier_open(t->barrier, n, n <= weft_machine_info()->host_cores);
    t->channel = -1;
    if (weft_has_others(program) && rank->recorder)
        t->channel = weft_recorder_channel(rank->recorder, weft_digest(1, facts, sizeof facts),
                                           first, n, "what is held in common");
}

/* The first of those who hold it in common does the step where it lies. */
static weft_status add_aside(weft_rank *rank, uint32_t variable, weft_shared_write *t,
                             weft_error *error)
{
    const weft_program *program = rank->program;
    const size_t bytes = (size_t)weft_placed_bytes(program->plan, variable, rank->rank);
    if (weft_holder_of(program, variable, rank->rank) == rank->rank || bytes == 0) return WEFT_OK;
    for (const weft_aside *a = t->asides; a; a = a->next)
        if (a->variable == variable) return WEFT_OK;
    weft_aside *a = weft_arena_take(program->arena, sizeof *a);
    if (!a) return weft_fail_memory(error, sizeof *a);
    *a = (weft_aside){t->asides, variable, rank->memory[variable], NULL, bytes};
    t->asides = a;
    return rank->device->take(rank->stream, bytes, &a->copy, error);
}

/* All that lies in a variable's memory is found in the copy, or in its own place again; a view as far from the begin as before. */
static void put_aside(weft_rank *rank, const weft_aside *asides, bool is_away)
{
    const weft_plan *plan = rank->program->plan;
    for (const weft_aside *a = asides; a; a = a->next) {
        const char *from = is_away ? a->memory : a->copy;
        char *to = is_away ? a->copy : a->memory;
        for (uint32_t id = 1; id < plan->n_placed; id++)
            if (weft_placed_owner(plan, id) == a->variable)
                rank->memory[id] = to + ((const char *)rank->memory[id] - from);
    }
}

static bool writes_common(const weft_program *program, const weft_step *step)
{
    for (int o = 0; o < step->n_out; o++)
        if (axes_of(program, step, o)) return true;
    return false;
}

weft_status weft_shared_variables_begin(weft_rank *rank, weft_bound_step *bound, weft_error *error)
{
    weft_program *program = rank->program;
    const weft_step *step = bound->step;
    if (!writes_common(program, step)) return WEFT_OK;
    weft_shared_write *t = weft_arena_take(program->arena, sizeof *t);
    if (!t) return weft_fail_memory(error, sizeof *t);
    const uint32_t axes = axes_shared_out(program, step);
    int self = 0;
    bound->shared = t;
    bound->run = weft_run_shared;
    t->is_aside = axes == 0;
    t->asides = NULL;
    find_barrier(rank, axes ? axes : program->seen, t, &self);
    if (axes)
        bound->part = (weft_loop_part){self, (int)weft_sync_load_relaxed(&t->barrier->n_ranks)};
    t->gathers = axes && gathers(step);
    /* of those that have the same part, the first brings it */
    t->brings =
        weft_first_along(program->mesh, axes & ~step->convert.axes, rank->rank) == rank->rank;
    for (int o = 0; o < step->n_out && t->is_aside; o++)
        if (axes_of(program, step, o))
            WEFT_TRY(add_aside(rank, weft_placed_owner(program->plan, step->out[o]), t, error));
    put_aside(rank, t->asides, true);
    return WEFT_OK;
}

void weft_shared_variables_end(weft_rank *rank, weft_bound_step *bound)
{
    if (bound->shared) put_aside(rank, bound->shared->asides, false);
}

void weft_shared_variables_close(weft_program *program)
{
    for (int at = 0; program->ranks && at < program->n_local; at++)
        for (uint32_t s = 0; program->ranks[at].steps && s < program->plan->n_steps; s++) {
            const weft_shared_write *t = program->ranks[at].steps[s].shared;
            for (const weft_aside *a = t ? t->asides : NULL; a; a = a->next)
                program->ranks[at].device->give(program->ranks[at].stream, a->copy, a->bytes);
        }
}

static bool has_common(const weft_program *program)
{
    uint32_t axes = 0;
    for (uint32_t id = 1; id < program->plan->n_placed; id++)
        axes |= program->common[id];
    return axes != 0;
}

/* Nobody goes on to what comes after a run while others may still read, or write, what they hold in common. */
weft_status weft_end_shared(weft_rank *rank, weft_error *error)
{
    weft_program *program = rank->program;
    int self;
    if (!weft_has_others(program) || !has_common(program)) return WEFT_OK;
    program->end = weft_arena_take(program->arena, sizeof *program->end);
    if (!program->end) return weft_fail_memory(error, sizeof *program->end);
    *program->end = (weft_shared_write){0};
    find_barrier(rank, program->seen, program->end, &self);
    return WEFT_OK;
}

/* ---- run ------------------------------------------------------------------------------------- */

/* With ranks of other processes it is a call as others are: whoever does not come is found by the watch. */
static bool wait_for_all(weft_rank *rank, const weft_shared_write *t)
{
    const weft_call_facts call = {
        .kind = WEFT_CALL_MEET, .dtype = WEFT_NO_DTYPE, .combine = WEFT_NO_COMBINE, .root = -1};
    if (!weft_has_others(rank->program)) return weft_barrier_wait(t->barrier);
    const weft_call_mark mark = weft_recorder_begin(rank->recorder, t->channel, &call);
    weft_recorder_wait(rank->recorder, &mark);
    const bool all_came = weft_barrier_wait(t->barrier);
    weft_recorder_end(rank->recorder, &mark);
    return all_came;
}

/* It counts as the exchange that it is in the plan: what others bring a rank has got from them. */
static weft_status run_part(weft_rank *rank, weft_bound_step *bound, weft_error *error)
{
    const weft_shared_write *t = bound->shared;
    if (!t->gathers) return weft_runners[bound->step->kind](rank, bound, error);
    weft_count_moved(rank, bound);
    return t->brings ? weft_move_bring(bound->exchange.move, bound->exchange.moved, error)
                     : WEFT_OK;
}

/* Where one rank has failed, it says why; the others only do not go on. */
weft_status weft_run_shared(weft_rank *rank, weft_bound_step *bound, weft_error *error)
{
    const weft_shared_write *t = bound->shared;
    if (!wait_for_all(rank, t)) return WEFT_INTERNAL;
    for (const weft_aside *a = t->asides; a; a = a->next)
        memcpy(a->copy, a->memory, a->bytes);
    if (t->is_aside && !wait_for_all(rank, t)) return WEFT_INTERNAL;
    WEFT_TRY(run_part(rank, bound, error));
    return wait_for_all(rank, t) ? WEFT_OK : WEFT_INTERNAL;
}

void weft_barrier_at_end(weft_rank *rank)
{
    if (rank->program->end) (void)!wait_for_all(rank, rank->program->end);
}

/* Of other processes those that have failed are found by the watch, as in any other call. */
void weft_shared_variables_leave(weft_program *program)
{
    const size_t n = (size_t)program->n_local * n_sets(program);
    for (size_t i = 0; i < n && !weft_has_others(program); i++)
        weft_barrier_break(&program->barriers[i]);
}
