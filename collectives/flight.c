/* flight: a move, run: once at a time, as often as wanted.
 *
 * Flights of one move and of several may be under way together, in any group, and are waited for in any order: a flight
 * is a state machine that whatever wait of its rank brings on (pending.h). Tensors that move together are packed one
 * after the other; one alone goes straight from its memory to its memory where it can.
 *
 * Bytes are packed, unpacked and combined by the device that they are on, on a queue of its own that follows the steps before
 * the flight, and that the steps after it follow. Where the host does not see the device's memory, all that travels lies in
 * staging: then what is packed has to be there before engines, which are the host's, begin. Where devices exchange among
 * themselves (queued.c), all of a flight is put onto the queue when it starts.
 */
#include "flight.h"

#include "await.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the device's queues ----------------------------------------------------------------------- */

/* What the exchange reads has been computed, and what it writes is not read any more. */
static void follow_steps(const weft_move *move)
{
    const weft_device *device = move->device;
    if (move->queue != WEFT_COMPUTE)
        device->follow(move->stream, move->queue, device->record(move->stream, WEFT_COMPUTE));
}

/* What the rank has under way goes on while it waits for its device. */
static void bring_on(void *desk)
{
    weft_desk_poll(desk);
}

/* Engines read on the host what was packed, and write where something may have been unpacked from. */
static void await_packed(const weft_flight *flight)
{
    const weft_move *move = flight->move;
    if (move->queue == WEFT_COMPUTE || flight->is_queued) return;
    const weft_event packed = move->device->record(move->stream, move->queue);
    weft_await(flight->comm->recorder, move->device, move->stream, packed, bring_on,
               flight->comm->desk);
}

/* Steps to come read what has arrived. */
static void precede_steps(const weft_move *move)
{
    const weft_device *device = move->device;
    if (move->queue != WEFT_COMPUTE)
        device->follow(move->stream, WEFT_COMPUTE, device->record(move->stream, move->queue));
}

/* ---- all_reduce ------------------------------------------------------------------------------ */

static size_t part_bytes(const weft_move *move, int k)
{
    return (size_t)move->parts[k].count * weft_dtype_bytes(move->dtype);
}

/* Every element is combined as if its tensor were alone, so its bits do not depend on who else is packed. */
static weft_status reduce_prepare(weft_move *move, const weft_mesh *mesh,
                                  const weft_move_part *parts, weft_error *error)
{
    (void)mesh, (void)parts;
    if (move->combine == WEFT_NOT_PARTIAL)
        return weft_fail(error, WEFT_INTERNAL,
                         "an all_reduce step whose value is not partial over its axes; report this "
                         "program's plan");
    const size_t bytes = WEFT_REDUCE_NUMBERS * (size_t)move->n_ranks * sizeof *move->numbers;
    const int64_t element = (int64_t)weft_dtype_bytes(move->dtype);
    int64_t count = 0;
    move->numbers = malloc(bytes);
    if (move->numbers == NULL) return weft_fail_memory(error, bytes);
    for (int k = 0; k < move->n_parts; k++) {
        move->parts[k].at = count * element;
        count += move->parts[k].count;
    }
    move->packs = (move->n_parts > 1 || move->is_staged) && move->n_ranks > 1;
    if (move->packs) (void)weft_move_take(move, count * element);
    (void)weft_move_take(move, weft_reduce_bytes(move->n_ranks, move->combine, move->dtype, count));
    weft_reduce_make(&move->reduce, move->n_ranks, move->self, move->combine, move->dtype, count,
                     move->numbers);
    return WEFT_OK;
}

static void copy_all(const weft_move *move, int k, void *to, const void *from)
{
    const weft_box_copy all = {.run = move->parts[k].count};
    if (to != from && all.run > 0)
        move->device->copy_box(move->stream, move->queue, to, from, &all,
                               weft_dtype_bytes(move->dtype));
}

static void copy_alone(const weft_flight *flight)
{
    for (int k = 0; k < flight->move->n_parts; k++)
        copy_all(flight->move, k, flight->memory[k].to, flight->memory[k].from);
}

/* What the host does not read it does not combine. */
static weft_reduce_device combines_of(const weft_move *move)
{
    const weft_device *table = move->device->is_open ? NULL : move->device;
    return (weft_reduce_device){table, move->stream, move->queue, &move->rule};
}

static weft_status reduce_start(weft_flight *flight, weft_error *error)
{
    const weft_move *move = flight->move;
    const int64_t bytes = move->reduce.bytes;
    if (move->n_ranks == 1) copy_alone(flight);
    if (move->n_ranks == 1 || bytes == 0) return WEFT_OK;
    for (int k = 0; k < move->n_parts && move->packs; k++)
        copy_all(move, k, flight->scratch + move->parts[k].at, flight->memory[k].from);
    await_packed(flight);
    const int64_t packed = move->packs ? weft_aligned(bytes) : 0;
    flight->reduction =
        (weft_reduction){.reduce = &move->reduce,
                         .comm = flight->comm,
                         .exchange = flight->exchange,
                         .fingerprint = flight->mark.fingerprint,
                         .send = move->packs ? flight->scratch : flight->memory[0].from,
                         .recv = move->packs ? flight->scratch : flight->memory[0].to,
                         .scratch = flight->scratch + packed,
                         .device = combines_of(move)};
    return flight->is_queued ? weft_queued_reduce(flight, error)
                             : weft_reduction_start(&flight->reduction, error);
}

static bool reduce_poll(weft_flight *flight, weft_error *error)
{
    return flight->move->reduce.bytes == 0 || weft_reduction_poll(&flight->reduction, error);
}

static void reduce_finish(weft_flight *flight)
{
    const weft_move *move = flight->move;
    for (int k = 0; k < move->n_parts && move->packs; k++)
        copy_all(move, k, flight->memory[k].to, flight->scratch + move->parts[k].at);
}

const weft_move_way weft_move_reduces = {reduce_prepare, reduce_start, reduce_poll, reduce_finish};

/* ---- exchange -------------------------------------------------------------------------------- */

static void settle(const weft_flight *flight, const weft_move_piece *in)
{
    const weft_move *move = flight->move;
    const weft_device *device = move->device;
    const bool is_own = in->peer == move->self && !move->gathers;
    const char *from = is_own ? flight->memory[in->part].from : flight->scratch + in->at;
    char *to = flight->memory[in->part].to;
    if (in->is_first || move->combine == WEFT_NOT_PARTIAL)
        device->copy_box(move->stream, move->queue, to, from, &in->run,
                         weft_dtype_bytes(move->dtype));
    else
        device->combine_box(move->stream, move->queue, to, from, &in->run, &move->rule);
}

void weft_flight_parts(const weft_flight *flight, weft_parts *send, weft_parts *recv)
{
    const weft_move *move = flight->move;
    char *from = (char *)(uintptr_t)flight->memory[0].from;
    char *into = move->unpacks ? flight->scratch : flight->memory[0].to;
    *recv = (weft_parts){into, move->recv_bytes, move->recv_at, 0};
    *send = (weft_parts){move->packs ? flight->scratch : from, move->send_bytes, move->send_at, 0};
    if (move->gathers) *send = (weft_parts){from, NULL, NULL, (int64_t)part_bytes(move, 0)};
}

static weft_status exchange_begin(weft_flight *flight, weft_error *error)
{
    weft_comm_exchange *exchange = flight->exchange;
    if (flight->is_queued) return weft_queued_exchange(flight, error);
    weft_flight_parts(flight, &exchange->send, &exchange->recv);
    return weft_exchange_begin(exchange, flight->comm->next++, flight->mark.fingerprint, error);
}

/* While the others' pieces travel, the own ones are copied, if no order has to be kept. */
static bool settles_early(const weft_move *move, const weft_move_piece *in)
{
    return in->peer == move->self && !move->gathers && move->combine == WEFT_NOT_PARTIAL;
}

static void fill(const weft_move *move, const weft_moved *part, void *to)
{
    const weft_combining rule = weft_combining_of(part->begins, move->dtype);
    if (part->begins != WEFT_NOT_PARTIAL && part->to_count > 0)
        move->device->identity(move->stream, move->queue, to, part->to_count / rule.width, &rule);
}

static weft_status exchange_start(weft_flight *flight, weft_error *error)
{
    const weft_move *move = flight->move;
    const size_t element = weft_dtype_bytes(move->dtype);
    for (int i = 0; i < move->n_out && move->packs; i++) {
        const weft_move_piece *out = &move->out[i];
        move->device->copy_box(move->stream, move->queue, flight->scratch + out->at,
                               flight->memory[out->part].from, &out->run, element);
    }
    await_packed(flight);
    for (int k = 0; k < move->n_parts; k++)
        fill(move, &move->parts[k], flight->memory[k].to);
    if (move->n_ranks > 1) WEFT_TRY(exchange_begin(flight, error));
    for (int i = 0; i < move->n_in && !flight->is_reduced; i++)
        if (settles_early(move, &move->in[i])) settle(flight, &move->in[i]);
    return WEFT_OK;
}

static bool exchange_poll(weft_flight *flight, weft_error *error)
{
    if (!weft_exchange_poll(flight->exchange)) return false;
    weft_fail(error, flight->exchange->error.status, "%s", flight->exchange->error.message);
    return true;
}

static void exchange_finish(weft_flight *flight)
{
    const weft_move *move = flight->move;
    for (int i = 0; i < move->n_in && !flight->is_reduced; i++) {
        const weft_move_piece *in = &move->in[i];
        const bool is_there = settles_early(move, in) ||
                              (in->peer != move->self && !move->unpacks) ||
                              (move->gathers && !move->unpacks);
        if (!is_there) settle(flight, in);
    }
}

const weft_move_way weft_move_exchanges = {weft_pieces_prepare, exchange_start, exchange_poll,
                                           exchange_finish};

/* ---- public ------------------------------------------------------------------------------------ */

static bool poll_flight(weft_pending *it)
{
    weft_flight *flight = (weft_flight *)(void *)it;
    const bool is_over = flight->move->way->poll(flight, &it->error);
    if (!is_over) return false;
    weft_recorder_stamp_arrival(flight->comm->recorder, &flight->mark);
    if (flight->arrived != NULL) *flight->arrived = weft_sync_now();
    return true;
}

weft_status weft_flight_create(weft_move *move, weft_comm *comm, weft_flight **flight,
                               weft_error *error)
{
    WEFT_GIVEN(flight, error);
    *flight = NULL;
    WEFT_GIVEN(move, error);
    const int n_ranks = comm != NULL ? comm->n_ranks : 1;
    const bool is_queued = n_ranks > 1 && !move->device->is_open && comm->engine->put != NULL;
    if (n_ranks > 1 && !move->device->is_open && !is_queued && !move->is_staged)
        return weft_fail(
            error, WEFT_USAGE,
            "a move that was made for devices that exchange among themselves was given "
            "a group of engine %s; choose the engine before either is made",
            comm->engine->name);
    if (n_ranks != move->n_ranks)
        return weft_fail(error, WEFT_USAGE,
                         "a move among %d ranks was given a group of %d; prepare the group of the "
                         "step's axes and pass it",
                         move->n_ranks, n_ranks);
    const size_t bytes = sizeof(weft_flight) + (size_t)move->n_parts * sizeof(weft_move_memory);
    weft_flight *f = calloc(1, bytes);
    if (f == NULL) return weft_fail_memory(error, bytes);
    f->move = move;
    f->comm = comm;
    f->is_queued = is_queued;
    f->pending.poll = poll_flight;
    const weft_status status =
        n_ranks > 1 && !is_queued ? weft_exchange_take(comm, &f->exchange, error) : WEFT_OK;
    if (status != WEFT_OK) {
        free(f);
        return status;
    }
    atomic_fetch_add(&move->n_flights, 1);
    *flight = f;
    return WEFT_OK;
}

void weft_flight_destroy(weft_flight **flight)
{
    weft_flight *f = flight != NULL ? *flight : NULL;
    if (f == NULL || f->is_started) return;
    (void)weft_flight_settle(f, NULL);
    if (f->exchange != NULL) weft_exchange_give(f->exchange);
    atomic_fetch_sub(&f->move->n_flights, 1);
    free(f);
    *flight = NULL;
}

void weft_flight_name(weft_flight *flight, uint64_t program, const char *what, const char *where)
{
    char text[WEFT_SPOT_BYTES];
    if (flight == NULL || what == NULL || where == NULL) return;
    if (flight->comm == NULL || flight->comm->recorder == NULL) return;
    snprintf(text, sizeof text, "%s%s", what, where);
    flight->digest = weft_digest(weft_digest(0, &program, sizeof program), what, strlen(what));
    flight->spot = weft_recorder_spot(flight->comm->recorder, flight->digest, text);
}

void weft_flight_stamp(weft_flight *flight, int64_t *arrived)
{
    if (flight != NULL) flight->arrived = arrived;
}

static weft_call_facts facts_of(const weft_flight *flight)
{
    const weft_move *move = flight->move;
    return (weft_call_facts){.kind = (uint8_t)move->kind,
                             .dtype = (uint8_t)move->dtype,
                             .combine = (uint8_t)move->combine,
                             .root = -1,
                             .count = move->total,
                             .spot = flight->spot,
                             .digest = flight->digest + weft_combine_digest(move->combine)};
}

/* Every tensor of which the rank has something has memory. */
static weft_status check_memory(const weft_move *move, const weft_move_memory *memory,
                                const void *scratch, weft_error *error)
{
    for (int k = 0; k < move->n_parts; k++) {
        const void *from = memory[k].from, *to = memory[k].to;
        if (move->parts[k].count > 0) WEFT_GIVEN(from, error);
        if (move->parts[k].to_count > 0) WEFT_GIVEN(to, error);
    }
    if (move->scratch_bytes > 0) WEFT_GIVEN(scratch, error);
    return WEFT_OK;
}

weft_status weft_flight_start_joined(weft_flight *flight, const weft_move_memory *memory,
                                     void *scratch, weft_error *error)
{
    WEFT_GIVEN(flight, error);
    WEFT_GIVEN(memory, error);
    const weft_move *move = flight->move;
    if (flight->is_started)
        return weft_fail(error, WEFT_USAGE,
                         "weft_flight_start: this flight is under way already; finish it first, or "
                         "create another one of its move");
    WEFT_TRY(check_memory(move, memory, scratch, error));
    WEFT_TRY(weft_flight_settle(flight, error)); /* the run before this one */
    memcpy(flight->memory, memory, (size_t)move->n_parts * sizeof *memory);
    flight->scratch = scratch;
    weft_error_clear(&flight->pending.error);
    const weft_call_facts facts = facts_of(flight);
    flight->mark = weft_comm_begin(flight->comm, &facts);
    follow_steps(move);
    const weft_status status = move->way->start(flight, error);
    flight->is_started = status == WEFT_OK;
    if (flight->is_started && flight->is_queued) {
        move->way->finish(flight);
        flight->over = move->device->record(move->stream, move->queue);
        flight->is_put = true;
    }
    if (status != WEFT_OK && flight->comm) weft_recorder_end(flight->comm->recorder, &flight->mark);
    if (flight->is_started && flight->exchange) /* there is something to wait for */
        weft_desk_begin(flight->comm->desk, &flight->pending);
    return status;
}

weft_status weft_flight_start(weft_flight *flight, const void *from, void *to, void *scratch,
                              weft_error *error)
{
    WEFT_GIVEN(flight, error);
    if (flight->move->n_parts > 1)
        return weft_fail(error, WEFT_USAGE,
                         "weft_flight_start: %d tensors move together in this flight; give memory "
                         "of each to weft_flight_start_joined",
                         flight->move->n_parts);
    return weft_flight_start_joined(flight, &(weft_move_memory){from, to}, scratch, error);
}

static weft_status wait_flight(weft_flight *flight, weft_error *error)
{
    weft_comm *comm = flight->comm;
    if (flight->exchange == NULL) return WEFT_OK;
    weft_recorder_stamp_wait(comm->recorder, &flight->mark);
    return weft_desk_wait(comm->desk, &flight->pending, error);
}

bool weft_flight_is_started(const weft_flight *flight)
{
    return flight != NULL && flight->is_started;
}

weft_status weft_flight_finish(weft_flight *flight, weft_error *error)
{
    WEFT_GIVEN(flight, error);
    if (!flight->is_started)
        return weft_fail(error, WEFT_USAGE,
                         "weft_flight_finish: this flight has not been started; weft_flight_start "
                         "it");
    flight->is_started = false;
    const weft_status status = wait_flight(flight, error);
    if (status == WEFT_OK && !flight->is_queued) flight->move->way->finish(flight);
    precede_steps(flight->move);
    if (flight->comm && !flight->is_queued)
        weft_recorder_end(flight->comm->recorder, &flight->mark);
    return status;
}
