/* step: how a step of each kind is run. */
#include "await.h"
#include "program.h"

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

/* Where it is in this trip. */
static char *now(const weft_bound_view *view)
{
    char *at = view->first;
    for (int m = 0; m < view->n_moves; m++)
        at += *view->move[m].trip * view->move[m].bytes;
    return at;
}

static void move_call(const weft_bound_step *bound, weft_call *call)
{
    for (const weft_bound_view *v = bound->views, *end = v + bound->n_views; v < end; v++) {
        if (v->number >= 0)
            call->in[v->number].data = now(v);
        else
            call->out[-1 - v->number].data = now(v);
    }
}

static weft_status run_kernel(weft_rank *rank, weft_bound_step *bound, weft_error *error)
{
    weft_call *call = bound->kernel.call;
    if (bound->kernel.is_shared) {
        weft_point_call(rank, bound->step, call);
        call->scratch = bound->scratch;
    }
    if (bound->n_views > 0) move_call(bound, call);
    bound->kernel.launch(call);
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
    if (bound->loop.draws) run |= (uint64_t)marks_of(rank, bound->loop.draws, &trip) << 32;
    for (int v = 0; v < bound->n_views; v++)
        bound->loop.move(bound->loop.prepared, bound->views[v].number, now(&bound->views[v]));
    bound->loop.run(bound->loop.prepared, run, trip);
    return WEFT_OK;
}

void weft_bring_on(void *argument)
{
    const weft_rank *rank = argument;
    weft_comms_poll(rank->program->comms, rank->rank);
}

void weft_count_moved(weft_rank *rank, const weft_bound_step *bound)
{
    if (bound->traffic < 0) return;
    weft_traffic *traffic = &rank->traffic[bound->traffic];
    traffic->count++;
    traffic->bytes += weft_move_wire_bytes(bound->exchange.move);
}

static weft_status run_convert(weft_rank *rank, weft_bound_step *bound, weft_error *error)
{
    WEFT_TRY(weft_flight_start_joined(bound->exchange.flight, bound->exchange.moved, bound->scratch,
                                      error));
    weft_count_moved(rank, bound);
    if (!bound->exchange.goes_on) return weft_flight_finish(bound->exchange.flight, error);
    if (rank->n_under_way++ == 0) rank->device->meanwhile(rank->stream, weft_bring_on, rank);
    return WEFT_OK;
}

weft_status weft_finish_exchange(weft_rank *rank, weft_bound_step *bound, weft_error *error)
{
    if (!weft_flight_is_started(bound->exchange.flight))
        return WEFT_OK; /* the last trip left it out */
    if (--rank->n_under_way == 0) rank->device->meanwhile(rank->stream, NULL, NULL);
    return rank->tracer ? weft_trace_finish(rank, bound, error)
                        : weft_flight_finish(bound->exchange.flight, error);
}

weft_status weft_finish_exchanges(weft_rank *rank, uint32_t ends, weft_error *error)
{
    weft_status status = WEFT_OK;
    for (; ends && status == WEFT_OK; ends = rank->steps[ends - 1].next_end)
        status = weft_finish_exchange(rank, &rank->steps[ends - 1], error);
    return status;
}

static weft_status run_copy(weft_rank *rank, weft_bound_step *bound, weft_error *error)
{
    (void)error;
    char *to = (char *)bound->copy.to + *bound->copy.trip * bound->copy.to_moves;
    const char *from = (const char *)bound->copy.from + *bound->copy.trip * bound->copy.from_moves;
    for (const weft_bound_view *v = bound->views, *end = v + bound->n_views; v < end; v++) {
        if (v->number >= 0)
            from += now(v) - v->first;
        else
            to += now(v) - v->first;
    }
    if (bound->copy.bytes)
        rank->device->copy(rank->stream, WEFT_COMPUTE, to, from, (size_t)bound->copy.bytes);
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
        if (bound->fence.zeros[o].count > 0)
            rank->device->identity(rank->stream, WEFT_COMPUTE, bound->fence.zeros[o].memory,
                                   bound->fence.zeros[o].count, &zero);
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
    device->get(rank->stream, &goes_on, bound->fence.number, sizeof goes_on);
    if (device->failed != NULL) WEFT_TRY(device->failed(rank->stream, error));
    bound->fence.is_off = goes_on == 0;
    if (bound->fence.is_off && bound->fence.is_last) rank->trips[bound->step->scan] = trips - 1;
    return WEFT_OK;
}

static weft_status run_end(weft_rank *rank, weft_bound_step *bound, weft_error *error)
{
    (void)error;
    rank->trips[bound->step->scan]++;
    return WEFT_OK;
}

const weft_step_run weft_runners[WEFT_STEPS] = {
    [WEFT_STEP_KERNEL] = run_kernel,   [WEFT_STEP_LOOP] = run_loop,
    [WEFT_STEP_CONVERT] = run_convert, [WEFT_STEP_COPY] = run_copy,
    [WEFT_STEP_BEGIN] = run_begin,     [WEFT_STEP_GUARD] = run_guard,
    [WEFT_STEP_END] = run_end};
