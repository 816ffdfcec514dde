/* exchange: bytes between the ranks of a group, one time after the other: made when none is free, and used again. */
#include "engine.h"

#include <stdlib.h>
#include <string.h>

#define MOST_STATE_BYTES ((int64_t)1 << 40)

/* ---- create and destroy ---------------------------------------------------------------------- */

static void slot_destroy(weft_exchange_slot *slot)
{
    const weft_engine *engine = slot->exchange.comm->engine;
    if (engine->exchange_destroy != NULL) engine->exchange_destroy(&slot->exchange);
    free(slot);
}

void weft_slots_destroy(weft_comm *comm)
{
    for (weft_exchange_slot *slot; (slot = comm->free) != NULL;) {
        comm->free = slot->next_free;
        slot_destroy(slot);
    }
}

static bool poll_slot(weft_pending *it)
{
    weft_exchange_slot *slot = (weft_exchange_slot *)(void *)it;
    if (!weft_exchange_poll(&slot->exchange)) return false;
    weft_fail(&it->error, slot->exchange.error.status, "%s", slot->exchange.error.message);
    return true;
}

static weft_status slot_create(weft_comm *comm, weft_exchange_slot **made, weft_error *error)
{
    const weft_engine *engine = comm->engine;
    const int64_t state_bytes = engine->exchange_bytes != NULL ? engine->exchange_bytes(comm) : 0;
    if (state_bytes < 0 || state_bytes > MOST_STATE_BYTES)
        return weft_fail(error, WEFT_USAGE,
                         "engine %s: exchange_bytes says %lld; it is from 0 to 2^40", engine->name,
                         (long long)state_bytes);
    const size_t line = _Alignof(weft_exchange_slot);
    const size_t bytes =
        (sizeof(weft_exchange_slot) + (size_t)state_bytes + line - 1) / line * line;
    weft_exchange_slot *slot = *made = aligned_alloc(line, bytes);
    if (slot == NULL) return weft_fail_memory(error, bytes);
    memset(slot, 0, bytes);
    slot->pending.poll = poll_slot;
    slot->exchange.comm = comm;
    slot->exchange.state = state_bytes > 0 ? slot->state : NULL;
    if (engine->exchange_create == NULL) return WEFT_OK;
    const weft_status status = engine->exchange_create(&slot->exchange, error);
    if (status != WEFT_OK) free(slot);
    return status;
}

weft_status weft_exchange_take(weft_comm *comm, weft_comm_exchange **exchange, weft_error *error)
{
    weft_exchange_slot *slot;
    WEFT_GIVEN(exchange, error);
    *exchange = NULL;
    WEFT_GIVEN(comm, error);
    if ((slot = comm->free) != NULL)
        comm->free = slot->next_free;
    else
        WEFT_TRY(slot_create(comm, &slot, error));
    slot->exchange.is_direct = slot->is_begun = false;
    *exchange = &slot->exchange;
    return WEFT_OK;
}

void weft_exchange_give(weft_comm_exchange *exchange)
{
    if (exchange == NULL) return;
    weft_exchange_slot *slot = weft_slot_of(exchange);
    slot->is_begun = false;
    slot->next_free = exchange->comm->free;
    exchange->comm->free = slot;
}

void weft_exchange_mark(weft_comm_exchange *exchange, uint64_t ticket, uint64_t fingerprint)
{
    weft_exchange_slot *slot = weft_slot_of(exchange);
    exchange->ticket = ticket;
    exchange->fingerprint = fingerprint;
    slot->is_begun = true;
    if (exchange->error.status != WEFT_OK) weft_error_clear(&exchange->error);
    if (slot->pending.error.status != WEFT_OK) weft_error_clear(&slot->pending.error);
}

weft_status weft_exchange_begin(weft_comm_exchange *exchange, uint64_t ticket, uint64_t fingerprint,
                                weft_error *error)
{
    WEFT_GIVEN(exchange, error);
    if (exchange->recv.bytes == NULL && !exchange->is_direct)
        return weft_fail(error, WEFT_USAGE,
                         "%s: recv.bytes is NULL; say how many bytes come from each rank",
                         __func__);
    weft_exchange_mark(exchange, ticket, fingerprint);
    return exchange->comm->engine->start(exchange, error);
}

bool weft_exchange_poll(weft_comm_exchange *exchange)
{
    if (exchange == NULL || !weft_slot_of(exchange)->is_begun) return true;
    return exchange->comm->engine->poll(exchange);
}

weft_status weft_exchange_wait(weft_comm_exchange *exchange, weft_error *error)
{
    WEFT_GIVEN(exchange, error);
    weft_exchange_slot *slot = weft_slot_of(exchange);
    weft_desk_begin(exchange->comm->desk, &slot->pending);
    return weft_desk_wait(exchange->comm->desk, &slot->pending, error);
}
