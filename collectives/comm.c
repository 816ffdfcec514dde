/* comm: the groups of a mesh for the local ranks, and the calls that go to their engine. */
#include "reduce.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "watch.h"

struct weft_comms {
    weft_mesh *mesh;
    const weft_comm_engine *engine;
    weft_desk *desks;                    /* [n_local] */
    weft_comm *ends[1 << WEFT_MAX_AXES]; /* by set of axes: [n_local], NULL while not prepared */
};

/* ---- create and destroy ---------------------------------------------------------------------- */

/* All ranks in this process: threads; else one rank a process. */
static const weft_comm_engine *engine_for(const weft_mesh *mesh, weft_error *error)
{
    if (weft_mesh_n_local(mesh) == 0) {
        weft_fail(error, WEFT_USAGE,
                  "mesh %.200s is only a plan and has no ranks to exchange anything; make it with "
                  "weft_mesh_create",
                  weft_mesh_text(mesh));
        return NULL;
    }
    if (weft_mesh_n_local(mesh) == weft_mesh_n_ranks(mesh)) return &weft_engine_threads;
#ifdef WEFT_HAVE_MPI
    return &weft_engine_mpi;
#else
    weft_fail(
        error, WEFT_USAGE,
        "mesh %.200s has ranks in other processes, but this Weft was built without MPI; build "
        "it with MPI, or run all ranks in one process",
        weft_mesh_text(mesh));
    return NULL;
#endif
}

weft_status weft_comms_create(weft_mesh *mesh, weft_comms **comms, weft_error *error)
{
    WEFT_GIVEN(comms, error);
    *comms = NULL;
    WEFT_GIVEN(mesh, error);
    const weft_comm_engine *engine = engine_for(mesh, error);
    if (engine == NULL) return WEFT_USAGE;
    const size_t desks_bytes = (size_t)weft_mesh_n_local(mesh) * sizeof(weft_desk);
    weft_comms *c = calloc(1, sizeof *c);
    if (c != NULL) c->desks = aligned_alloc(_Alignof(weft_desk), desks_bytes);
    if (c == NULL || c->desks == NULL) {
        free(c);
        return weft_fail_memory(error, desks_bytes);
    }
    memset(c->desks, 0, desks_bytes);
    if (engine == &weft_engine_threads) weft_watch_begin(0, 1, NULL); /* else the world has */
    c->mesh = mesh;
    weft_mesh_keep(mesh);
    c->engine = engine;
    *comms = c;
    return WEFT_OK;
}

static void ends_destroy(const weft_comms *comms, weft_comm *ends)
{
    const int n_local = weft_mesh_n_local(comms->mesh);
    for (int i = 0; i < n_local; i++) {
        for (weft_comm_exchange *x; (x = ends[i].free) != NULL;) {
            ends[i].free = x->next_free;
            comms->engine->exchange_destroy(x);
        }
        free(ends[i].numbers);
    }
    comms->engine->destroy(ends, n_local);
    free(ends);
}

void weft_comms_destroy(weft_comms **comms)
{
    weft_comms *c = comms != NULL ? *comms : NULL;
    if (c == NULL) return;
    for (int axes = 0; axes < 1 << WEFT_MAX_AXES; axes++)
        if (c->ends[axes] != NULL) ends_destroy(c, c->ends[axes]);
    weft_mesh_release(c->mesh);
    free(c->desks);
    free(c);
    *comms = NULL;
}

/* ---- groups ---------------------------------------------------------------------------------- */

/* "data+model" */
static void name_axes(const weft_mesh *mesh, uint32_t axes, char *text, size_t bytes)
{
    size_t used = 0;
    text[0] = '\0';
    for (int a = 0; a < weft_mesh_n_axes(mesh) && used < bytes; a++)
        if (axes >> a & 1)
            used += (size_t)snprintf(text + used, bytes - used, "%s%s", used ? "+" : "",
                                     weft_mesh_axis_name(mesh, a));
}

/* The lowest of the ranks that differ from this one along some axes only. */
static int lowest_rank(const weft_mesh *mesh, uint32_t axes, int rank)
{
    int coordinates[WEFT_MAX_AXES];
    weft_mesh_coordinates(mesh, rank, coordinates);
    for (int a = 0; a < weft_mesh_n_axes(mesh); a++)
        if (axes >> a & 1) coordinates[a] = 0;
    return weft_mesh_rank(mesh, coordinates);
}

/* Where the end's calls are recorded. Past the most that are kept, not to be recorded is no failure;
 * out of memory it is one: the watch would take a rank that is recorded later for one that made
 * other calls. */
static weft_status end_record(const weft_comms *comms, uint32_t axes, weft_comm *end,
                              weft_error *error)
{
    char name[WEFT_AXES_BYTES];
    const char *mesh = weft_mesh_text(comms->mesh);
    end->channel = -1;
    end->recorder = weft_recorder_of(end->rank);
    if (end->recorder == NULL && weft_n_recorders() < WEFT_MOST_RECORDERS)
        return weft_fail_memory(error, sizeof *end->recorder);
    if (end->recorder == NULL) return WEFT_OK;
    name_axes(comms->mesh, axes, name, sizeof name);
    const uint64_t key = weft_digest(weft_digest(0, mesh, strlen(mesh)), &axes, sizeof axes);
    const int lowest = lowest_rank(comms->mesh, axes, end->rank);
    end->channel = weft_recorder_channel(end->recorder, key, lowest, end->n_ranks, name);
    return WEFT_OK;
}

static weft_status end_fill(const weft_comms *comms, uint32_t axes, int rank, weft_comm *end,
                            weft_error *error)
{
    end->engine = comms->engine;
    end->rank = rank;
    end->n_ranks = weft_mesh_group(comms->mesh, axes, rank, NULL, &end->self);
    end->desk = &comms->desks[rank - weft_mesh_first_local(comms->mesh)];
    const size_t bytes = WEFT_REDUCE_NUMBERS * (size_t)end->n_ranks * sizeof *end->numbers;
    end->numbers = malloc(bytes);
    if (end->numbers == NULL) return weft_fail_memory(error, bytes);
    return end_record(comms, axes, end, error);
}

weft_status weft_comms_prepare(weft_comms *comms, uint32_t axes, weft_error *error)
{
    WEFT_GIVEN(comms, error);
    const int n_local = weft_mesh_n_local(comms->mesh), n_axes = weft_mesh_n_axes(comms->mesh);
    if (axes >> n_axes != 0)
        return weft_fail(error, WEFT_USAGE,
                         "a group over axes 0x%x of mesh %.200s, which has %d; name axes it has",
                         axes, weft_mesh_text(comms->mesh), n_axes);
    if (comms->ends[axes] != NULL) return WEFT_OK;
    const size_t bytes = (size_t)n_local * sizeof(weft_comm);
    weft_comm *ends = aligned_alloc(_Alignof(weft_comm), bytes);
    if (ends == NULL) return weft_fail_memory(error, bytes);
    memset(ends, 0, bytes);
    weft_status status = WEFT_OK;
    for (int i = 0; i < n_local && status == WEFT_OK; i++)
        status = end_fill(comms, axes, weft_mesh_first_local(comms->mesh) + i, &ends[i], error);
    if (status == WEFT_OK) status = comms->engine->group_create(comms->mesh, axes, ends, error);
    if (status == WEFT_OK)
        comms->ends[axes] = ends;
    else
        ends_destroy(comms, ends);
    return status;
}

weft_comm *weft_comm_of(weft_comms *comms, int rank, uint32_t axes)
{
    if (comms == NULL || rank < 0) return NULL;
    const int local = rank - weft_mesh_first_local(comms->mesh);
    if (axes >> WEFT_MAX_AXES != 0 || comms->ends[axes] == NULL) return NULL;
    return local < 0 || local >= weft_mesh_n_local(comms->mesh) ? NULL : &comms->ends[axes][local];
}

int weft_comm_n_ranks(const weft_comm *comm)
{
    return comm != NULL ? comm->n_ranks : 0;
}

int weft_comm_self(const weft_comm *comm)
{
    return comm != NULL ? comm->self : -1;
}

const char *weft_comms_engine(const weft_comms *comms)
{
    return comms != NULL ? comms->engine->name : "";
}

/* ---- exchanges ------------------------------------------------------------------------------- */

weft_call_mark weft_comm_begin(weft_comm *comm, const weft_call_facts *call)
{
    if (comm == NULL) return (weft_call_mark){0};
    weft_call_mark mark = weft_recorder_begin(comm->recorder, comm->channel, call);
    /* On the wire goes the group's own: it is there when there was no room to record. */
    mark.fingerprint = comm->chain = weft_call_fingerprint(comm->chain, call);
    return mark;
}

weft_status weft_exchange_take(weft_comm *comm, weft_comm_exchange **exchange, weft_error *error)
{
    weft_status status = WEFT_OK;
    *exchange = comm->free;
    if (*exchange != NULL)
        comm->free = (*exchange)->next_free;
    else
        status = comm->engine->exchange_create(comm, exchange, error);
    if (status != WEFT_OK) return status;
    (*exchange)->comm = comm;
    (*exchange)->is_direct = false;
    return WEFT_OK;
}

void weft_exchange_give(weft_comm_exchange *exchange)
{
    exchange->next_free = exchange->comm->free;
    exchange->comm->free = exchange;
}

weft_status weft_exchange_begin(weft_comm_exchange *exchange, uint64_t ticket, uint64_t fingerprint,
                                weft_error *error)
{
    exchange->ticket = ticket;
    exchange->fingerprint = fingerprint;
    weft_error_clear(&exchange->pending.error);
    return exchange->comm->engine->start(exchange, error);
}

/* ---- calls ------------------------------------------------------------------------------------- */

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
    weft_desk_begin(comm->desk, &exchange->pending);
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
    const weft_status status = weft_desk_wait(comm->desk, &request->exchange->pending, error);
    weft_recorder_end(comm->recorder, &mark);
    weft_exchange_give(request->exchange);
    *request = (weft_request){0};
    return status;
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
    exchange->ticket = comm->next++;
    exchange->fingerprint = mark.fingerprint;
    weft_error_clear(&exchange->pending.error);
    weft_recorder_wait(comm->recorder, &mark);
    const weft_status status = comm->engine->broadcast(exchange, root, data, bytes, error);
    weft_recorder_end(comm->recorder, &mark);
    weft_exchange_give(exchange);
    return status;
}
