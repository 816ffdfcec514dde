/* run.c: the executor: every local rank goes through its steps. */
#include "await.h"
#include "snapshot_guard.h"
#include "program.h"

#include <string.h>

/* A kernel's sentence, behind the place in the program. */
static weft_status fail_there(const weft_rank *rank, const weft_bound_step *bound,
                              weft_error *error)
{
    char where[160];
    const weft_error said = *error;
    weft_origin_print(&rank->program->plan->graph->nodes[bound->step->node], where, sizeof where);
    weft_error_clear(error);
    return weft_fail(error, said.status, "%s: %s", where, said.message);
}

static weft_status run_kernel(weft_rank *rank, weft_bound_step *bound, weft_error *error)
{
    bound->launch(bound->call);
    return error->status == WEFT_OK ? WEFT_OK : fail_there(rank, bound, error);
}

static int64_t trip_drawn(const weft_rank *rank, const weft_draw *draw)
{
    const int64_t trip = rank->trips[draw->scan];
    return draw->is_reversed ? rank->program->plan->graph->scans[draw->scan].trips - 1 - trip
                             : trip;
}

/* Of the trips in which random numbers are drawn; of a scan over a dim, the trip itself. */
static uint32_t marks_of(const weft_rank *rank, const weft_node *node, int64_t *trip)
{
    uint32_t marks = 0;
    for (uint32_t i = 0; i < node->n_draws; i++) {
        const weft_draw *draw = &node->draws[i];
        if (draw->is_over)
            *trip = trip_drawn(rank, draw);
        else
            marks ^= weft_scan_mark(draw->level, trip_drawn(rank, draw));
    }
    return marks;
}

static weft_status run_loop(weft_rank *rank, weft_bound_step *bound, weft_error *error)
{
    (void)error;
    uint64_t run = (uint32_t)(rank->program->runs + 1);
    int64_t trip = 0;
    if (bound->draws) run |= (uint64_t)marks_of(rank, bound->draws, &trip) << 32;
    bound->run_loop(bound->loop, run, trip);
    return WEFT_OK;
}

/* What is under way goes on. */
static void bring_on(void *argument)
{
    const weft_rank *rank = argument;
    weft_comms_poll(rank->program->comms, rank->rank);
}

void weft_count_moved(weft_rank *rank, const weft_bound_step *bound)
{
    if (bound->traffic < 0) return;
    weft_traffic *traffic = &rank->traffic[bound->traffic];
    traffic->count++;
    traffic->bytes += weft_move_wire_bytes(bound->move);
}

static weft_status run_convert(weft_rank *rank, weft_bound_step *bound, weft_error *error)
{
    WEFT_TRY(weft_flight_start_joined(bound->flight, bound->moved, bound->scratch, error));
    weft_count_moved(rank, bound);
    if (!bound->goes_on) return weft_flight_finish(bound->flight, error);
    if (rank->n_under_way++ == 0) rank->device->meanwhile(rank->stream, bring_on, rank);
    return WEFT_OK;
}

static weft_status finish_exchange(weft_rank *rank, weft_bound_step *bound, weft_error *error)
{
    if (!weft_flight_is_started(bound->flight)) return WEFT_OK; /* the last trip left it out */
    if (--rank->n_under_way == 0) rank->device->meanwhile(rank->stream, NULL, NULL);
    return weft_flight_finish(bound->flight, error);
}

/* Exchanges of which something after this needs that they are over. */
static weft_status finish_exchanges(weft_rank *rank, uint32_t ends, weft_error *error)
{
    weft_status status = WEFT_OK;
    for (; ends && status == WEFT_OK; ends = rank->steps[ends - 1].next_end)
        status = finish_exchange(rank, &rank->steps[ends - 1], error);
    return status;
}

/* What the device exchanges by itself is over there; in the order in which it was put. */
static void settle_exchanges(weft_rank *rank)
{
    if (!weft_comms_are_queued(rank->program->comms)) return;
    for (uint32_t s = 0; s < rank->program->plan->n_steps; s++)
        if (rank->steps[s].flight != NULL)
            (void)weft_flight_settle(rank->steps[s].flight, &rank->error);
}

static weft_status run_copy(weft_rank *rank, weft_bound_step *bound, weft_error *error)
{
    (void)error;
    if (bound->bytes)
        rank->device->copy(
            rank->stream, WEFT_COMPUTE, (char *)bound->to + *bound->trip * bound->to_moves,
            (const char *)bound->from + *bound->trip * bound->from_moves, (size_t)bound->bytes);
    return WEFT_OK;
}

static void make_zero(void *into, int64_t count)
{
    weft_combine_identity(WEFT_SUM, WEFT_F32, into, count);
}

static weft_status run_begin(weft_rank *rank, weft_bound_step *bound, weft_error *error)
{
    static const weft_combining zero = {
        .combine = WEFT_SUM, .dtype = WEFT_F32, .width = 1, .element = 4, .identity = make_zero};
    (void)error;
    for (int o = 0; o < bound->step->n_out; o++)
        if (bound->zeros[o].count > 0)
            rank->device->identity(rank->stream, WEFT_COMPUTE, bound->zeros[o].memory,
                                   bound->zeros[o].count, &zero);
    rank->trips[bound->step->scan] = 0;
    return WEFT_OK;
}

/* The one step that waits for the device in the middle of a run: which comes next is in its memory. */
static weft_status run_guard(weft_rank *rank, weft_bound_step *bound, weft_error *error)
{
    const weft_device *device = rank->device;
    const int64_t trips = rank->program->plan->graph->scans[bound->step->scan].trips;
    int32_t goes_on = 0;
    weft_await(rank->recorder, device, rank->stream, device->record(rank->stream, WEFT_COMPUTE),
               NULL, NULL);
    device->get(rank->stream, &goes_on, bound->from, sizeof goes_on);
    if (device->failed != NULL) WEFT_TRY(device->failed(rank->stream, error));
    bound->is_off = goes_on == 0;
    if (bound->is_off && bound->is_last) rank->trips[bound->step->scan] = trips - 1;
    return WEFT_OK;
}

static weft_status run_end(weft_rank *rank, weft_bound_step *bound, weft_error *error)
{
    (void)error;
    rank->trips[bound->step->scan]++;
    return WEFT_OK;
}

/* The step that comes after `s`, which has been run. */
static uint32_t step_after(const weft_rank *rank, const weft_bound_step *bound, uint32_t s)
{
    const uint32_t scan = bound->step->scan;
    if (bound->step->kind == WEFT_STEP_GUARD) return bound->is_off ? bound->back : s + 1;
    const bool goes_back =
        bound->back != 0 && rank->trips[scan] < rank->program->plan->graph->scans[scan].trips;
    return goes_back ? bound->back : s + 1;
}

const weft_step_run weft_runners[WEFT_STEPS] = {
    [WEFT_STEP_KERNEL] = run_kernel,   [WEFT_STEP_LOOP] = run_loop,
    [WEFT_STEP_CONVERT] = run_convert, [WEFT_STEP_COPY] = run_copy,
    [WEFT_STEP_BEGIN] = run_begin,     [WEFT_STEP_GUARD] = run_guard,
    [WEFT_STEP_END] = run_end};

/* A rank that has failed starts nothing more. What it had started the others count on, so that is seen to its end. */
static void give_up(weft_rank *rank)
{
    weft_shared_variables_leave(rank->program);
    for (uint32_t s = 0; s < rank->program->plan->n_steps && rank->n_under_way > 0; s++)
        if (rank->steps[s].goes_on && weft_flight_is_started(rank->steps[s].flight))
            (void)finish_exchange(rank, &rank->steps[s], NULL);
}

/* Before a step: what it waits for ends, and what is under way goes on. */
static weft_status look_after_exchanges(weft_rank *rank, uint32_t ends)
{
    if (ends) WEFT_TRY(finish_exchanges(rank, ends, &rank->error));
    if (rank->n_under_way > 0) bring_on(rank);
    return WEFT_OK;
}

/* What is done for the trip after this one the last leaves out. */
static bool is_left_out(const weft_rank *rank, const weft_step *step)
{
    return step->is_ahead &&
           rank->trips[step->scan] + 1 == rank->program->plan->graph->scans[step->scan].trips;
}

static weft_status run_step(weft_rank *rank, weft_bound_step *bound, weft_error *error)
{
    weft_usage *measured = &rank->measured;
    if (is_left_out(rank, bound->step)) return WEFT_OK;
    measured->n_steps++;
    if (bound->top_bytes > measured->arena_bytes) measured->arena_bytes = bound->top_bytes;
    return bound->run(rank, bound, error);
}

uint32_t weft_do_step(weft_rank *rank, uint32_t s, weft_error *error)
{
    (void)run_step(rank, &rank->steps[s], error);
    return step_after(rank, &rank->steps[s], s);
}

bool weft_before_step(weft_rank *rank, uint32_t s)
{
    const weft_bound_step *bound = &rank->steps[s];
    weft_recorder_step(rank->recorder, s, bound->spot);
    if (rank->n_under_way == 0 || look_after_exchanges(rank, bound->ends) == WEFT_OK) return true;
    give_up(rank);
    return false;
}

bool weft_run_step(weft_rank *rank, uint32_t *s)
{
    weft_bound_step *bound = &rank->steps[*s];
    if (run_step(rank, bound, &rank->error) != WEFT_OK) {
        give_up(rank);
        return false;
    }
    *s = step_after(rank, bound, *s);
    return true;
}

/* Steps [begin, end), bodies as often as they have trips; false: one failed, and those after it were not run. */
static bool run_steps(weft_rank *rank, uint32_t begin, uint32_t end)
{
    bool is_done = true;
    for (uint32_t s = begin; s < end && is_done;)
        is_done = weft_before_step(rank, s) && weft_run_step(rank, &s);
    return is_done;
}

/* All that was put onto the device's queues is done when a run is over. */
static void await_device(weft_rank *rank)
{
    const weft_device *device = rank->device;
    for (uint32_t q = 0; q < rank->program->plan->n_queues; q++)
        weft_await(rank->recorder, device, rank->stream,
                   device->record(rank->stream, (int)rank->program->plan->queues[q]), NULL, NULL);
    device->finish(rank->stream);
}

/* The step, or the end of the scan that it begins: in which no variable is written. */
static uint32_t end_of(const weft_plan *plan, uint32_t s)
{
    const uint32_t scan = plan->steps[s].scan;
    if (plan->steps[s].kind != WEFT_STEP_BEGIN) return s;
    while (plan->steps[s].kind != WEFT_STEP_END || plan->steps[s].scan != scan)
        s++;
    return s;
}

/* While variables are held: before each step, what it writes may be written. */
static bool run_held(weft_rank *rank, uint32_t begin, uint32_t end)
{
    const weft_plan *plan = rank->program->plan;
    bool is_done = true;
    for (uint32_t s = begin, next; s < end && is_done; s = next) {
        for (int o = 0; o < plan->steps[s].n_out; o++) {
            const uint32_t owner = weft_placed_owner(plan, plan->steps[s].out[o]);
            if (plan->placed[owner].home == WEFT_VARIABLE_HOME)
                weft_snapshot_guard_wait(rank->program, rank->memory[owner]);
        }
        next = end_of(plan, s) + 1;
        is_done = run_steps(rank, s, next);
    }
    return is_done;
}

/* What is held the host waits for in the middle of a run. */
static bool run_all(weft_rank *rank)
{
    const uint32_t n_steps = rank->program->plan->n_steps, first = rank->program->first_store;
    if (!weft_is_snapshot_guarded(rank->program) && weft_captures(rank))
        return weft_run_captured(rank);
    if (!run_steps(rank, 0, first)) return false;
    if (first == n_steps) return true;
    return (weft_is_snapshot_guarded(rank->program) ? run_held : run_steps)(rank, first, n_steps);
}

static void run_rank(void *argument, int number)
{
    weft_rank *rank = weft_rank_of(argument, number);
    rank->measured = (weft_usage){0};
    for (int i = 0; i < rank->program->plan->n_traffic; i++)
        rank->traffic[i].count = rank->traffic[i].bytes = 0;
    weft_recorder_run(rank->recorder, rank->program->runs + 1);
    bool is_done = run_all(rank);
    if (is_done && finish_exchanges(rank, rank->last_ends, &rank->error) != WEFT_OK) give_up(rank);
    settle_exchanges(rank);
    await_device(rank);
    if (rank->error.status == WEFT_OK && rank->device->failed != NULL)
        (void)!rank->device->failed(rank->stream, &rank->error);
    if (rank->error.status == WEFT_OK) weft_barrier_at_end(rank);
    weft_recorder_run(rank->recorder, 0);
}

/* An input that nobody has written holds zeros, and a run on them would look like a result. */
static weft_status check_inputs(weft_program *program, weft_error *error)
{
    const weft_plan *plan = program->plan;
    for (uint32_t id = 1; id < plan->n_placed && !program->inputs_are_written; id++) {
        if (plan->placed[id].home != WEFT_INPUT_HOME || program->is_written[id]) continue;
        const weft_tensor *input = &plan->graph->tensors[plan->placed[id].value];
        char shape[240];
        weft_shape_print(&input->type.shape, shape, sizeof shape);
        return weft_fail(error, WEFT_USAGE,
                         "weft_run: input %s %s has not been written; weft_write it, or let a "
                         "dataset fill it, before the first run",
                         input->name, shape);
    }
    program->inputs_are_written = true;
    return WEFT_OK;
}

/* What the first of the ranks here that failed said, in this run or one before. */
static weft_status first_failure(const weft_program *program, weft_error *error)
{
    for (int at = 0; at < program->n_local; at++) {
        const weft_error *first = &program->ranks[at].error;
        if (first->status == WEFT_OK) continue;
        const weft_status status = weft_fail(error, first->status, "%s", first->message);
        if (error) error->rank = program->ranks[at].rank;
        return status;
    }
    return WEFT_OK;
}

/* What has failed runs no step again: some ranks would do what comes before that, and others not. */
weft_status weft_run(weft_program *program, weft_error *error)
{
    WEFT_GIVEN(program, error);
    if (!program->n_local)
        return weft_fail(
            error, WEFT_USAGE,
            "weft_run: the mesh %s is a plan without ranks; make it with weft_mesh_create",
            weft_mesh_text(program->mesh));
    WEFT_TRY(first_failure(program, error));
    WEFT_TRY(check_inputs(program, error));
    weft_mesh_each(program->mesh, run_rank, program);
    program->runs++;
    WEFT_TRY(first_failure(program, error));
    program->has_run = true;
    return WEFT_OK;
}
