/* comm: the groups of a mesh for the local ranks, and the calls that go to their engine. */
#include "reduce.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "watch.h"
#include "world.h"

#define MOST_STATE_BYTES ((int64_t)1 << 40)
enum { N_SPINS = 100, N_SPINS_CROWDED = 50 };

/* Whether all ranks of a mesh are in this process. */
static bool is_here(const weft_mesh *mesh)
{
    return weft_mesh_n_local(mesh) == weft_mesh_n_ranks(mesh);
}

/* All ends of a group on one engine, and those on the engine that it stands on. */
typedef struct level {
    const weft_engine *engine;
    weft_comm *ends;  /* [n_local] */
    weft_comm **list; /* [n_local]: they, as engines are given them */
    struct level *below;
} level;

struct weft_comms {
    weft_mesh *mesh;
    const weft_engine *engine;
    weft_desk *desks;                  /* [n_local] */
    level *groups[1 << WEFT_MAX_AXES]; /* by set of axes; NULL while not prepared */
};

/* ---- create and destroy ---------------------------------------------------------------------- */

/* Long looks only where every rank of the host has a core of its own. A rank sleeps if whoever brings something on for it,
 * at the bottom of what carries it, wakes it. */
static void prepare_desks(const weft_comms *comms)
{
    const int n_local = weft_mesh_n_local(comms->mesh);
    const int n_near = is_here(comms->mesh) ? n_local : weft_world_n_near();
    for (int i = 0; i < n_local; i++) {
        comms->desks[i].can_sleep = comms->engine->wakes;
        comms->desks[i].n_spins =
            n_near <= sysconf(_SC_NPROCESSORS_ONLN) ? N_SPINS : N_SPINS_CROWDED;
    }
}

weft_status weft_comms_create(weft_mesh *mesh, weft_comms **comms, weft_error *error)
{
    WEFT_GIVEN(comms, error);
    *comms = NULL;
    WEFT_GIVEN(mesh, error);
    const weft_engine *engine = weft_engine_for(mesh, error);
    if (engine == NULL) return WEFT_USAGE;
    const size_t desks_bytes = (size_t)weft_mesh_n_local(mesh) * sizeof(weft_desk);
    weft_comms *c = calloc(1, sizeof *c);
    if (c != NULL) c->desks = aligned_alloc(_Alignof(weft_desk), desks_bytes);
    if (c == NULL || c->desks == NULL) {
        free(c);
        return weft_fail_memory(error, desks_bytes);
    }
    memset(c->desks, 0, desks_bytes);
    if (is_here(mesh)) weft_watch_begin(0, 1, NULL); /* else the world has */
    c->mesh = mesh;
    weft_mesh_keep(mesh);
    c->engine = engine;
    prepare_desks(c);
    *comms = c;
    return WEFT_OK;
}

static void slot_destroy(weft_slot *slot)
{
    const weft_engine *engine = slot->exchange.comm->engine;
    if (engine->exchange_destroy != NULL) engine->exchange_destroy(&slot->exchange);
    free(slot);
}

/* What stands above goes first: it gives back what it has of the one below. */
static void level_destroy(level *l, int n_local)
{
    if (l == NULL) return;
    for (int i = 0; l->ends != NULL && i < n_local; i++) {
        for (weft_slot *slot; (slot = l->ends[i].free) != NULL;) {
            l->ends[i].free = slot->next_free;
            slot_destroy(slot);
        }
        free(l->ends[i].numbers);
    }
    if (l->list != NULL && l->engine->group_destroy != NULL)
        l->engine->group_destroy(l->list, n_local);
    level_destroy(l->below, n_local);
    free(l->list);
    free(l->ends);
    free(l);
}

void weft_comms_destroy(weft_comms **comms)
{
    weft_comms *c = comms != NULL ? *comms : NULL;
    if (c == NULL) return;
    for (int axes = 0; axes < 1 << WEFT_MAX_AXES; axes++)
        level_destroy(c->groups[axes], weft_mesh_n_local(c->mesh));
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
    end->rank = rank;
    end->n_ranks = weft_mesh_group(comms->mesh, axes, rank, NULL, &end->self);
    end->desk = &comms->desks[rank - weft_mesh_first_local(comms->mesh)];
    const size_t bytes = WEFT_REDUCE_NUMBERS * (size_t)end->n_ranks * sizeof *end->numbers;
    end->numbers = malloc(bytes);
    if (end->numbers == NULL) return weft_fail_memory(error, bytes);
    return end_record(comms, axes, end, error);
}

static weft_status level_fill(const weft_comms *comms, uint32_t axes, level *l, level *above,
                              weft_error *error)
{
    const int n_local = weft_mesh_n_local(comms->mesh);
    const size_t bytes = (size_t)n_local * sizeof(weft_comm);
    l->ends = aligned_alloc(_Alignof(weft_comm), bytes);
    if (l->ends == NULL) return weft_fail_memory(error, bytes);
    memset(l->ends, 0, bytes);
    for (int i = 0; i < n_local; i++) {
        l->ends[i].engine = l->engine;
        l->ends[i].above = above != NULL ? &above->ends[i] : NULL;
        if (above != NULL) above->ends[i].below = &l->ends[i];
        WEFT_TRY(end_fill(comms, axes, weft_mesh_first_local(comms->mesh) + i, &l->ends[i], error));
    }
    return WEFT_OK;
}

/* The ends of a group on an engine and on all that it stands on, without what is the engines'. */
static weft_status level_create(const weft_comms *comms, const weft_engine *engine, uint32_t axes,
                                level *above, level **made, weft_error *error)
{
    weft_error why = WEFT_NO_ERROR;
    level *l = *made = calloc(1, sizeof *l);
    if (l == NULL) return weft_fail_memory(error, sizeof *l);
    l->engine = engine;
    WEFT_TRY(level_fill(comms, axes, l, above, error));
    const weft_engine *below = weft_engine_below(engine, comms->mesh, &why);
    if (below != NULL) return level_create(comms, below, axes, l, &l->below, error);
    return weft_fail(error, why.status, "%s", why.message);
}

/* What is the engines': from the one at the bottom up. */
static weft_status level_start(const weft_comms *comms, uint32_t axes, level *l, weft_error *error)
{
    const int n_local = weft_mesh_n_local(comms->mesh);
    if (l->below != NULL) WEFT_TRY(level_start(comms, axes, l->below, error));
    l->list = calloc((size_t)n_local, sizeof *l->list);
    if (l->list == NULL) return weft_fail_memory(error, (size_t)n_local * sizeof *l->list);
    for (int i = 0; i < n_local; i++)
        l->list[i] = &l->ends[i];
    if (l->engine->group_create == NULL) return WEFT_OK;
    return l->engine->group_create(comms->mesh, axes, l->list, n_local, error);
}

weft_status weft_comms_prepare(weft_comms *comms, uint32_t axes, weft_error *error)
{
    WEFT_GIVEN(comms, error);
    const int n_axes = weft_mesh_n_axes(comms->mesh);
    level *made = NULL;
    if (axes >> n_axes != 0)
        return weft_fail(error, WEFT_USAGE,
                         "a group over axes 0x%x of mesh %.200s, which has %d; name axes it has",
                         axes, weft_mesh_text(comms->mesh), n_axes);
    if (comms->groups[axes] != NULL) return WEFT_OK;
    weft_status status = level_create(comms, comms->engine, axes, NULL, &made, error);
    if (status == WEFT_OK && !is_here(comms->mesh))
        status = weft_world_same_group(comms->engine->name, made->ends[0].n_ranks, error);
    if (status == WEFT_OK) status = level_start(comms, axes, made, error);
    if (status == WEFT_OK)
        comms->groups[axes] = made;
    else
        level_destroy(made, weft_mesh_n_local(comms->mesh));
    return status;
}

weft_comm *weft_comm_of(weft_comms *comms, int rank, uint32_t axes)
{
    if (comms == NULL || rank < 0) return NULL;
    const int local = rank - weft_mesh_first_local(comms->mesh);
    if (axes >> WEFT_MAX_AXES != 0 || comms->groups[axes] == NULL) return NULL;
    if (local < 0 || local >= weft_mesh_n_local(comms->mesh)) return NULL;
    return &comms->groups[axes]->ends[local];
}

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

void weft_comm_settle(weft_comm *comm)
{
    for (weft_comm *end = comm; end != NULL; end = end->above)
        end->chain = 0;
    weft_recorder_settle(comm->recorder, comm->channel);
}

static weft_slot *slot_of(weft_comm_exchange *exchange)
{
    return (weft_slot *)(void *)((char *)exchange - offsetof(weft_slot, exchange));
}

static bool poll_slot(weft_pending *it)
{
    weft_slot *slot = (weft_slot *)(void *)it;
    if (!weft_exchange_poll(&slot->exchange)) return false;
    weft_fail(&it->error, slot->exchange.error.status, "%s", slot->exchange.error.message);
    return true;
}

static weft_status slot_create(weft_comm *comm, weft_slot **made, weft_error *error)
{
    const weft_engine *engine = comm->engine;
    const int64_t state_bytes = engine->exchange_bytes != NULL ? engine->exchange_bytes(comm) : 0;
    if (state_bytes < 0 || state_bytes > MOST_STATE_BYTES)
        return weft_fail(error, WEFT_USAGE,
                         "engine %s: exchange_bytes says %lld; it is from 0 to 2^40", engine->name,
                         (long long)state_bytes);
    const size_t line = _Alignof(weft_slot);
    const size_t bytes = (sizeof(weft_slot) + (size_t)state_bytes + line - 1) / line * line;
    weft_slot *slot = *made = aligned_alloc(line, bytes);
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
    weft_slot *slot;
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
    weft_slot *slot = slot_of(exchange);
    slot->is_begun = false;
    slot->next_free = exchange->comm->free;
    exchange->comm->free = slot;
}

static void mark_begun(weft_comm_exchange *exchange, uint64_t ticket, uint64_t fingerprint)
{
    weft_slot *slot = slot_of(exchange);
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
    mark_begun(exchange, ticket, fingerprint);
    return exchange->comm->engine->start(exchange, error);
}

bool weft_exchange_poll(weft_comm_exchange *exchange)
{
    if (exchange == NULL || !slot_of(exchange)->is_begun) return true;
    return exchange->comm->engine->poll(exchange);
}

weft_status weft_exchange_wait(weft_comm_exchange *exchange, weft_error *error)
{
    WEFT_GIVEN(exchange, error);
    weft_slot *slot = slot_of(exchange);
    weft_desk_begin(exchange->comm->desk, &slot->pending);
    return weft_desk_wait(exchange->comm->desk, &slot->pending, error);
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
    weft_desk_begin(comm->desk, &slot_of(exchange)->pending);
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
        weft_desk_wait(comm->desk, &slot_of(request->exchange)->pending, error);
    weft_recorder_end(comm->recorder, &mark);
    weft_exchange_give(request->exchange);
    *request = (weft_request){0};
    return status;
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
    mark_begun(exchange, comm->next++, mark.fingerprint);
    weft_recorder_wait(comm->recorder, &mark);
    const weft_status status = comm->engine->broadcast != NULL
                                   ? comm->engine->broadcast(exchange, root, data, bytes, error)
                                   : broadcast_by_exchange(exchange, root, data, bytes, error);
    weft_recorder_end(comm->recorder, &mark);
    weft_exchange_give(exchange);
    return status;
}
