/* stamp: when each step of a rank began and ended, written down while it runs. */
#include "stamp.h"

#include <stdlib.h>

#include "program.h"

struct weft_tracer {
    weft_ring *ring;
    uint16_t program;
    int64_t run_at;      /* the place of the run under way in the ring; -1: it has none */
    weft_step_run *runs; /* [n_steps] what does the steps */
    int64_t *arrived;    /* [n_steps] when a step's exchange was seen to be there */
};

/* The place of a new event; -1: there is no room. */
static int64_t put(weft_ring *ring, const weft_traced_event *event)
{
    const int64_t n = weft_sync_load_relaxed(&ring->counts->n_events);
    if (n == ring->room) {
        (void)weft_sync_add_relaxed(&ring->counts->n_dropped, 1);
        return -1;
    }
    ring->events[n] = *event;
    weft_sync_store_release(&ring->counts->n_events, n + 1);
    return n;
}

static weft_traced_event event_of(const weft_rank *rank, const weft_bound_step *bound,
                                  weft_traced_kind kind)
{
    const uint32_t s = (uint32_t)(bound - rank->steps), scan = bound->step->scan;
    const bool begins =
        bound->step->kind == WEFT_STEP_BEGIN; /* the count is of the scan's run before */
    return (weft_traced_event){.step = s,
                               .trip = begins ? 0 : (uint32_t)rank->trips[scan],
                               .program = rank->tracer->program,
                               .kind = (uint16_t)kind,
                               .begin = weft_sync_now()};
}

static weft_status run_traced(weft_rank *rank, weft_bound_step *bound, weft_error *error)
{
    weft_tracer *tracer = rank->tracer;
    weft_traced_event event = event_of(rank, bound, WEFT_TRACED_STEP);
    tracer->arrived[event.step] = 0;
    const weft_status status = tracer->runs[event.step](rank, bound, error);
    event.end = weft_sync_now();
    if (!bound->exchange.goes_on) event.arrived = tracer->arrived[event.step];
    (void)put(tracer->ring, &event);
    return status;
}

weft_status weft_trace_finish(weft_rank *rank, weft_bound_step *bound, weft_error *error)
{
    weft_traced_event event = event_of(rank, bound, WEFT_TRACED_FINISH);
    const weft_status status = weft_flight_finish(bound->exchange.flight, error);
    event.end = weft_sync_now();
    event.arrived = rank->tracer->arrived[event.step];
    (void)put(rank->tracer->ring, &event);
    return status;
}

void weft_trace_run_begin(weft_rank *rank)
{
    const weft_traced_event event = {.step = (uint32_t)(rank->program->runs + 1),
                                     .program = rank->tracer->program,
                                     .kind = WEFT_TRACED_RUN,
                                     .begin = weft_sync_now()};
    rank->tracer->run_at = put(rank->tracer->ring, &event);
}

void weft_trace_run_end(weft_rank *rank)
{
    const weft_tracer *tracer = rank->tracer;
    if (tracer->run_at >= 0) tracer->ring->events[tracer->run_at].end = weft_sync_now();
}

weft_status weft_tracer_start(weft_rank *rank, weft_ring *ring, uint16_t program, weft_error *error)
{
    const size_t n = rank->program->plan->n_steps + 1,
                 bytes = sizeof(weft_tracer) + n * (sizeof(weft_step_run) + sizeof(int64_t));
    weft_tracer *tracer = calloc(1, bytes);
    if (!tracer) return weft_fail_memory(error, bytes);
    *tracer = (weft_tracer){.ring = ring, .program = program, .run_at = -1};
    tracer->runs = (weft_step_run *)(void *)(tracer + 1);
    tracer->arrived = (int64_t *)(void *)(tracer->runs + n);
    for (uint32_t s = 0; s < rank->program->plan->n_steps; s++) {
        tracer->runs[s] = rank->steps[s].run;
        rank->steps[s].run = run_traced;
        weft_flight_stamp(rank->steps[s].exchange.flight, &tracer->arrived[s]);
    }
    rank->tracer = tracer;
    return WEFT_OK;
}

void weft_tracer_stop(weft_rank *rank)
{
    if (!rank->tracer) return;
    for (uint32_t s = 0; s < rank->program->plan->n_steps; s++) {
        rank->steps[s].run = rank->tracer->runs[s];
        weft_flight_stamp(rank->steps[s].exchange.flight, NULL);
    }
    free(rank->tracer);
    rank->tracer = NULL;
}
