/* walk: from step to step: what comes before one, the step, and which one is next. */
#include "program.h"

/* The step that comes after `s`, which has been run. */
static uint32_t step_after(const weft_rank *rank, const weft_bound_step *bound, uint32_t s)
{
    const uint32_t scan = bound->step->scan;
    if (bound->step->kind == WEFT_STEP_GUARD)
        return bound->fence.is_off ? bound->fence.back : s + 1;
    const bool goes_back =
        bound->fence.back != 0 && rank->trips[scan] < rank->program->plan->graph->scans[scan].trips;
    return goes_back ? bound->fence.back : s + 1;
}

void weft_finish_started(weft_rank *rank)
{
    for (uint32_t s = 0; s < rank->program->plan->n_steps && rank->n_under_way > 0; s++)
        if (rank->steps[s].exchange.goes_on &&
            weft_flight_is_started(rank->steps[s].exchange.flight))
            (void)weft_finish_exchange(rank, &rank->steps[s], NULL);
}

void weft_give_up(weft_rank *rank)
{
    weft_shared_variables_leave(rank->program);
    weft_finish_started(rank);
}

static weft_status look_after_exchanges(weft_rank *rank, uint32_t ends)
{
    if (ends) WEFT_TRY(weft_finish_exchanges(rank, ends, &rank->error));
    if (rank->n_under_way > 0) weft_bring_on(rank);
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
    weft_give_up(rank);
    return false;
}

bool weft_run_step(weft_rank *rank, uint32_t *s)
{
    weft_bound_step *bound = &rank->steps[*s];
    if (run_step(rank, bound, &rank->error) != WEFT_OK) {
        weft_give_up(rank);
        return false;
    }
    *s = step_after(rank, bound, *s);
    return true;
}
