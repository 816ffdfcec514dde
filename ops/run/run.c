/* run: the executor: every local rank goes through its steps, or starts again what the device has captured of them. */
#include "await.h"
#include "snapshot_guard.h"
#include "program.h"
#include "stop.h"

/* What the device exchanges by itself is over there; in the order in which it was put. */
static void settle_exchanges(weft_rank *rank)
{
    if (!weft_comms_are_queued(rank->program->comms)) return;
    for (uint32_t s = 0; s < rank->program->plan->n_steps; s++)
        if (rank->steps[s].exchange.flight != NULL)
            (void)weft_flight_settle(rank->steps[s].exchange.flight, &rank->error);
}

/* Steps [begin, end), bodies as often as they have trips; false: one failed, and those after it were not run. */
static bool run_steps(weft_rank *rank, uint32_t begin, uint32_t end)
{
    bool is_done = true;
    for (uint32_t s = begin; s < end && is_done;)
        is_done = weft_before_step(rank, s) && weft_run_step(rank, &s);
    return is_done;
}

/* The steps before any that writes a variable, and up to where all ranks stop. */
static bool run_stoppable(weft_rank *rank, uint32_t end)
{
    bool is_done = true, stops = weft_stops_before_step(rank);
    for (uint32_t s = 0; s < end && is_done && !stops; stops = weft_stops_before_step(rank))
        is_done = weft_before_step(rank, s) && weft_run_step(rank, &s);
    if (!is_done || !stops) return is_done;
    weft_finish_started(rank);
    return false;
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
    if (!weft_is_snapshot_guarded(rank->program) && !rank->tracer && weft_captures(rank))
        return weft_run_captured(rank);
    if (rank->program->is_stoppable ? !run_stoppable(rank, first) : !run_steps(rank, 0, first))
        return false;
    if (first == n_steps) return true;
    return (weft_is_snapshot_guarded(rank->program) ? run_held : run_steps)(rank, first, n_steps);
}

static void run_rank(void *argument, int number)
{
    weft_rank *rank = weft_rank_of(argument, number);
    rank->measured = (weft_usage){0};
    for (int i = 0; i < rank->program->plan->n_traffic; i++)
        rank->traffic[i].count = rank->traffic[i].bytes = 0;
    if (rank->program->share)
        weft_recorder_run_beside(rank->recorder);
    else
        weft_recorder_run(rank->recorder, rank->program->runs + 1);
    if (rank->tracer) weft_trace_run_begin(rank);
    bool is_done = run_all(rank);
    if (is_done && weft_finish_exchanges(rank, rank->last_ends, &rank->error) != WEFT_OK)
        weft_give_up(rank);
    settle_exchanges(rank);
    await_device(rank);
    if (rank->error.status == WEFT_OK && rank->device->failed != NULL)
        (void)!rank->device->failed(rank->stream, &rank->error);
    if (rank->error.status == WEFT_OK) weft_barrier_at_end(rank);
    if (rank->tracer) weft_trace_run_end(rank);
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
    program->was_stopped = program->is_stoppable && weft_has_stopped(program);
    program->runs += !program->was_stopped;
    WEFT_TRY(first_failure(program, error));
    program->has_run = !program->was_stopped;
    return WEFT_OK;
}
