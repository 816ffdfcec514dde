/* comm: one rank's end of a group, and the calls that go to its engine. */
#include "engine.h"

#include <string.h>

int weft_comm_n_ranks(const weft_comm *comm)
{
    return comm != NULL ? comm->n_ranks : 0;
}

int weft_comm_self(const weft_comm *comm)
{
    return comm != NULL ? comm->self : -1;
}

int weft_comm_rank(const weft_comm *comm)
{
    return comm != NULL ? comm->rank : -1;
}

void *weft_comm_state(const weft_comm *comm)
{
    return comm != NULL ? comm->state : NULL;
}

void weft_comm_set_state(weft_comm *comm, void *state)
{
    if (comm != NULL) comm->state = state;
}

weft_comm *weft_comm_below(const weft_comm *comm)
{
    return comm != NULL ? comm->below : NULL;
}

void weft_comm_wake(weft_comm *comm)
{
    if (comm != NULL) weft_desk_ring(comm->desk);
}

/* ---- calls ------------------------------------------------------------------------------------- */

weft_call_mark weft_comm_begin(weft_comm *comm, const weft_call_facts *call)
{
    if (comm == NULL) return (weft_call_mark){0};
    weft_call_mark mark = weft_recorder_begin(comm->recorder, comm->channel, call);
    /* On the wire goes the group's own: it is there when there was no room to record. */
    mark.fingerprint = comm->chain = weft_call_fingerprint(comm->chain, call);
    return mark;
}

void weft_comm_settle(weft_comm *comm)
{
    for (weft_comm *end = comm; end != NULL; end = end->above)
        end->chain = 0;
    weft_recorder_settle(comm->recorder, comm->channel);
}

/* Counts and places of the parts of a buffer: none negative, and a buffer where there is something. */
static weft_status check_parts(const char *call, const char *which, int n_ranks, const void *data,
                               const int64_t *bytes, const int64_t *at, weft_error *error)
{
    if (bytes == NULL || at == NULL)
        return weft_fail(error, WEFT_USAGE, "%s: %s_bytes or %s_at is NULL; both have to be given",
                         call, which, which);
    for (int r = 0; r < n_ranks; r++) {
        if (bytes[r] < 0 || at[r] < 0)
            return weft_fail(error, WEFT_USAGE,
                             "%s: the part of rank %d in %s has %lld bytes at %lld; neither is "
                             "below 0",
                             call, r, which, (long long)bytes[r], (long long)at[r]);
        if (bytes[r] > 0) WEFT_TRY(weft_check_given(data != NULL, call, which, error));
    }
    return WEFT_OK;
}

static const weft_call_facts nameless = {
    .dtype = WEFT_NO_DTYPE, .combine = WEFT_NO_COMBINE, .root = -1};

/* What was taken is under way, and every wait of the rank brings it on. */
static weft_status begin_request(weft_comm_exchange *exchange, const weft_call_facts *call,
                                 weft_request *request, weft_error *error)
{
    weft_comm *comm = exchange->comm;
    const weft_call_mark mark = weft_comm_begin(comm, call);
    const weft_status status = weft_exchange_begin(exchange, comm->next++, mark.fingerprint, error);
    if (status != WEFT_OK) { /* nothing to wait for */
        weft_recorder_end(comm->recorder, &mark);
        weft_exchange_give(exchange);
        return status;
    }
    weft_desk_begin(comm->desk, &weft_slot_of(exchange)->pending);
    *request = (weft_request){comm, exchange, mark.number, mark.fingerprint};
    return WEFT_OK;
}

weft_status weft_all_to_all_start(weft_comm *comm, const void *send, const int64_t *send_bytes,
                                  const int64_t *send_at, void *recv, const int64_t *recv_bytes,
                                  const int64_t *recv_at, weft_request *request, weft_error *error)
{
    weft_call_facts call = nameless;
    weft_comm_exchange *exchange;
    WEFT_GIVEN(request, error);
    *request = (weft_request){0};
    WEFT_GIVEN(comm, error);
    WEFT_TRY(check_parts(__func__, "send", comm->n_ranks, send, send_bytes, send_at, error));
    WEFT_TRY(check_parts(__func__, "recv", comm->n_ranks, recv, recv_bytes, recv_at, error));
    WEFT_TRY(weft_exchange_take(comm, &exchange, error));
    call.kind = WEFT_CALL_ALL_TO_ALL;
    exchange->send = (weft_parts){(char *)(uintptr_t)send, send_bytes, send_at, 0};
    exchange->recv = (weft_parts){recv, recv_bytes, recv_at, 0};
    return begin_request(exchange, &call, request, error);
}

/* What each rank gives, all must know. */
static void note_bytes(weft_call_facts *call, const int64_t *bytes, int n_ranks)
{
    call->digest = weft_digest(0, bytes, (size_t)n_ranks * sizeof *bytes);
    for (int r = 0; r < n_ranks; r++)
        call->count += bytes[r];
}

weft_status weft_all_gather_start(weft_comm *comm, const void *send, int64_t send_bytes, void *recv,
                                  const int64_t *recv_bytes, const int64_t *recv_at,
                                  weft_request *request, weft_error *error)
{
    weft_call_facts call = nameless;
    weft_comm_exchange *exchange;
    WEFT_GIVEN(request, error);
    *request = (weft_request){0};
    WEFT_GIVEN(comm, error);
    WEFT_TRY(check_parts(__func__, "recv", comm->n_ranks, recv, recv_bytes, recv_at, error));
    WEFT_GIVEN_RANGE(send_bytes, 0, INT64_MAX, error);
    if (send_bytes > 0) WEFT_GIVEN(send, error);
    WEFT_TRY(weft_exchange_take(comm, &exchange, error));
    call.kind = WEFT_CALL_ALL_GATHER;
    note_bytes(&call, recv_bytes, comm->n_ranks);
    exchange->send = (weft_parts){(char *)(uintptr_t)send, NULL, NULL, send_bytes};
    exchange->recv = (weft_parts){recv, recv_bytes, recv_at, 0};
    return begin_request(exchange, &call, request, error);
}

weft_status weft_wait(weft_request *request, weft_error *error)
{
    WEFT_GIVEN(request, error);
    weft_comm *comm = request->comm;
    if (comm == NULL) return WEFT_OK; /* never begun, or over */
    const weft_call_mark mark = {request->call, request->fingerprint};
    weft_recorder_wait(comm->recorder, &mark);
    const weft_status status =
        weft_desk_wait(comm->desk, &weft_slot_of(request->exchange)->pending, error);
    weft_recorder_end(comm->recorder, &mark);
    weft_exchange_give(request->exchange);
    *request = (weft_request){0};
    return status;
}

weft_status weft_comm_gather(weft_comm *comm, const void *own, int64_t bytes, void *all,
                             weft_error *error)
{
    weft_request request;
    WEFT_GIVEN(comm, error);
    WEFT_GIVEN_RANGE(bytes, 0, INT64_MAX / comm->n_ranks, error);
    int64_t *counts = comm->numbers + comm->n_ranks, *places = counts + comm->n_ranks;
    for (int r = 0; r < comm->n_ranks; r++) {
        counts[r] = bytes;
        places[r] = r * bytes;
    }
    WEFT_TRY(weft_all_gather_start(comm, own, bytes, all, counts, places, &request, error));
    return weft_wait(&request, error);
}

/* An exchange in which one has something for the others. */
static weft_status broadcast_by_exchange(weft_comm_exchange *exchange, int root, void *data,
                                         int64_t bytes, weft_error *error)
{
    const weft_comm *comm = exchange->comm;
    const int n = comm->n_ranks;
    int64_t *send_bytes = comm->numbers, *recv_bytes = send_bytes + n, *at = recv_bytes + n;
    for (int r = 0; r < n; r++) {
        send_bytes[r] = comm->self == root && r != root ? bytes : 0;
        recv_bytes[r] = comm->self != root && r == root ? bytes : 0;
        at[r] = 0;
    }
    exchange->send = (weft_parts){data, send_bytes, at, 0};
    exchange->recv = (weft_parts){data, recv_bytes, at, 0};
    WEFT_TRY(comm->engine->start(exchange, error));
    return weft_exchange_wait(exchange, error);
}

weft_status weft_broadcast(weft_comm *comm, int root, void *data, int64_t bytes, weft_error *error)
{
    WEFT_GIVEN(comm, error);
    WEFT_GIVEN_RANGE(root, 0, comm->n_ranks - 1, error);
    WEFT_GIVEN_RANGE(bytes, 0, INT64_MAX, error);
    if (bytes > 0) WEFT_GIVEN(data, error);
    if (bytes == 0 || comm->n_ranks == 1) return WEFT_OK;
    weft_comm_exchange *exchange;
    weft_call_facts call = nameless;
    WEFT_TRY(weft_exchange_take(comm, &exchange, error));
    call.kind = WEFT_CALL_BROADCAST;
    call.root = root;
    call.count = bytes;
    const weft_call_mark mark = weft_comm_begin(comm, &call);
    weft_exchange_mark(exchange, comm->next++, mark.fingerprint);
    weft_recorder_wait(comm->recorder, &mark);
    const weft_status status = comm->engine->broadcast != NULL
                                   ? comm->engine->broadcast(exchange, root, data, bytes, error)
                                   : broadcast_by_exchange(exchange, root, data, bytes, error);
    weft_recorder_end(comm->recorder, &mark);
    weft_exchange_give(exchange);
    return status;
}
