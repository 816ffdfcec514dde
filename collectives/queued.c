/* queued: flights of devices that exchange among themselves: the device packs, exchanges, combines and unpacks, one after the other
 * on a queue, as soon as it comes to it. Steps to come follow the queue, so the host waits for none of it. When all of a run has
 * been put it settles them, in the order in which they were put: there it waits in a call, in sight of the watch, and is told what
 * went wrong.
 *
 * The device's own reductions add up in an order of their own. Other exchanges, and all where weft_sums_in_order says
 * so, are combined in the order of the ranks: the same bits as on every other engine.
 */
#include "flight.h"

#include "await.h"
#include "view.h"

static weft_device_queue queue_of(const weft_flight *flight)
{
    return (weft_device_queue){flight->move->stream, flight->move->queue};
}

static void note_packed(weft_flight *flight)
{
    const weft_move *move = flight->move;
    flight->packed = move->device->record(move->stream, move->queue);
}

static bool reduces(const weft_flight *flight)
{
    const weft_move *move = flight->move;
    return move->combine != WEFT_NOT_PARTIAL && weft_device_reduces(flight->comm, &move->rule);
}

/* Says which call it was that went wrong, if any. */
static weft_status told(const weft_flight *flight, const weft_error *why, weft_error *error)
{
    if (why->status == WEFT_OK) return WEFT_OK;
    const weft_comm *comm = flight->comm;
    char call[200] = "an exchange";
    weft_record record;
    if (comm->recorder != NULL && weft_record_read(comm->recorder, flight->mark.number, &record))
        weft_record_print(comm->recorder, &record, call, sizeof call);
    return weft_fail(error, why->status, "rank %d, in %s: %s", comm->rank, call, why->message);
}

weft_status weft_queued_reduce(weft_flight *flight, weft_error *error)
{
    const weft_move *move = flight->move;
    const weft_reduction *it = &flight->reduction;
    const weft_device_queue on = queue_of(flight);
    weft_error why = WEFT_NO_ERROR;
    note_packed(flight);
    if (!reduces(flight)) {
        (void)weft_reduction_put(&flight->reduction, &why);
        return told(flight, &why, error);
    }
    const weft_device_reduce all = {.rule = &move->rule,
                                    .send = it->send,
                                    .recv = it->recv,
                                    .count = move->reduce.bytes / move->rule.element};
    (void)flight->comm->engine->put_reduce(flight->comm, &on, &all, &why);
    return told(flight, &why, error);
}

/* Whether every rank gets an equal part of the tensor as it lies, in the order of the ranks, and all of them add to it. */
static bool is_scattered_evenly(const weft_move *move)
{
    const int64_t count = move->parts[0].to_count,
                  bytes = count * (int64_t)weft_dtype_bytes(move->dtype);
    if (move->kind != WEFT_REDUCE_SCATTER || move->n_parts > 1 || move->packs || count == 0 ||
        move->parts[0].count != move->n_ranks * count || move->n_in != move->n_ranks)
        return false;
    for (int i = 0; i < move->n_ranks; i++) {
        const weft_box_copy *in = &move->in[i].run;
        const bool is_own = i == move->self;
        if (in->n_loops > 0 || in->run != count || in->to_at != 0) return false;
        if (is_own ? in->from_at != i * count
                   : move->send_bytes[i] != bytes || move->send_at[i] != i * bytes)
            return false;
    }
    return true;
}

weft_status weft_queued_exchange(weft_flight *flight, weft_error *error)
{
    const weft_move *move = flight->move;
    const weft_device_queue on = queue_of(flight);
    weft_parts send, recv;
    weft_error why = WEFT_NO_ERROR;
    note_packed(flight);
    flight->is_reduced = is_scattered_evenly(move) && reduces(flight);
    if (flight->is_reduced) {
        const weft_device_reduce scattered = {.rule = &move->rule,
                                              .send = flight->memory[0].from,
                                              .recv = flight->memory[0].to,
                                              .count = move->parts[0].to_count,
                                              .is_scattered = true};
        (void)flight->comm->engine->put_reduce(flight->comm, &on, &scattered, &why);
    } else {
        weft_flight_parts(flight, &send, &recv);
        (void)flight->comm->engine->put(flight->comm, &on, &send, &recv, &why);
    }
    return told(flight, &why, error);
}

/* ---- its end ----------------------------------------------------------------------------------- */

static void bring_on(void *desk)
{
    weft_desk_poll(desk);
}

static weft_status await_over(weft_flight *flight, weft_error *error)
{
    const weft_move *move = flight->move;
    weft_comm *comm = flight->comm;
    weft_error why = WEFT_NO_ERROR;
    for (int64_t n = 0; !move->device->is_done(move->stream, flight->over); n++) {
        if (comm->engine->check(comm, &why) != WEFT_OK) return told(flight, &why, error);
        bring_on(comm->desk);
        weft_rest(n);
    }
    return WEFT_OK;
}

weft_status weft_flight_settle(weft_flight *flight, weft_error *error)
{
    WEFT_GIVEN(flight, error);
    const weft_move *move = flight->move;
    if (!flight->is_put) return WEFT_OK;
    flight->is_put = false;
    weft_recorder *recorder = flight->comm->recorder;
    /* until then it is the rank's own work that takes its time */
    weft_await(recorder, move->device, move->stream, flight->packed, bring_on, flight->comm->desk);
    weft_recorder_stamp_wait(recorder, &flight->mark);
    const weft_status status = await_over(flight, error);
    weft_recorder_stamp_arrival(recorder, &flight->mark);
    weft_recorder_end(recorder, &flight->mark);
    return status;
}
