/* threads: the engine for ranks that are threads of one process.
 *
 * A rank shows where its data lie; each copies its parts straight from the memory of those that have shown theirs, and
 * counts on their exchange that it has; an exchange is over when it has got everything and all have counted. A rank's
 * exchange is shown under its ticket in one of SHOWN places, which the others read without a lock; one whose place
 * is still taken by an exchange under way goes on a list behind a lock. So any number may be under way, and nothing is
 * allocated for it. What others may look at stays as it is until they all have counted: a place or an entry of the list
 * that bears the ticket that a rank looks for cannot go away under its eyes.
 */
#include "engine.h"
#include "view.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE = 64, SHOWN = 8, N_SPINS = 100, N_SPINS_CROWDED = 50 };

/* One rank's side of one exchange. */
typedef struct side {
    weft_comm_exchange base;
    int n_seen; /* ranks that have shown theirs, in their order */
    bool is_released;
    _Atomic int n_done; /* peers that have done with this side */
    struct side *next_late;
    const struct side *peers[]; /* [n_ranks] as far as seen */
} side;

/* What one rank shows. */
typedef struct board {
    struct {
        _Alignas(2 * sizeof(uint64_t)) _Atomic uint64_t ticket; /* 1 + the ticket; 0: free */
        side *shown;
    } places[SHOWN];
    _Alignas(LINE) _Atomic uint32_t n_late;
    pthread_mutex_t lock;
    side *late;
} board;

typedef struct group {
    _Alignas(LINE) _Atomic uint64_t n_shown; /* by all ranks, ever */
    _Alignas(LINE) weft_comm **ends;         /* [n_ranks] */
    board boards[];
} group;

/* ---- groups ---------------------------------------------------------------------------------- */

static group *group_new(int n_ranks, weft_error *error)
{
    const size_t n = (size_t)n_ranks, bytes = sizeof(group) + n * sizeof(board);
    group *g = aligned_alloc(LINE, bytes); /* a sum of multiples of LINE */
    weft_comm **ends = calloc(n, sizeof *ends);
    if (g == NULL || ends == NULL) {
        weft_fail_memory(error, bytes);
        free(g);
        free(ends);
        return NULL;
    }
    memset(g, 0, bytes);
    g->ends = ends;
    for (int r = 0; r < n_ranks; r++)
        pthread_mutex_init(&g->boards[r].lock, NULL);
    return g;
}

static void prepare_desk(weft_desk *desk, int n_local)
{
    desk->can_sleep = true;
    desk->n_spins = n_local <= sysconf(_SC_NPROCESSORS_ONLN) ? N_SPINS : N_SPINS_CROWDED;
}

/* All ranks are local, so end r is rank r. */
static weft_status group_create(const weft_mesh *mesh, uint32_t axes, weft_comm *ends,
                                weft_error *error)
{
    const int n_local = weft_mesh_n_local(mesh);
    int *ranks = malloc((size_t)ends[0].n_ranks * sizeof *ranks);
    if (ranks == NULL) return weft_fail_memory(error, (size_t)ends[0].n_ranks * sizeof *ranks);
    weft_status status = WEFT_OK;
    for (int r = 0; r < n_local && status == WEFT_OK; r++) {
        prepare_desk(ends[r].desk, n_local);
        if (ends[r].self != 0) continue;
        group *g = group_new(ends[r].n_ranks, error);
        if (g == NULL) status = WEFT_MEMORY;
        const int n = weft_mesh_group(mesh, axes, ends[r].rank, ranks, NULL);
        for (int i = 0; i < n; i++) {
            ends[ranks[i]].group = g;
            if (g != NULL) g->ends[i] = &ends[ranks[i]];
        }
    }
    free(ranks);
    return status;
}

static void destroy(weft_comm *ends, int n_local)
{
    for (int r = 0; r < n_local; r++) {
        group *g = ends[r].group;
        if (ends[r].self != 0 || g == NULL) continue;
        for (int i = 0; i < ends[r].n_ranks; i++)
            pthread_mutex_destroy(&g->boards[i].lock);
        free(g->ends);
        free(g);
    }
}

/* ---- showing ----------------------------------------------------------------------------------- */

/* The last of a group to show wakes those that sleep: exact where every rank has one exchange under way, else nearly. */
static void show(side *mine)
{
    weft_comm *comm = mine->base.comm;
    group *g = comm->group;
    board *b = &g->boards[comm->self];
    const uint64_t ticket = mine->base.ticket;
    const uint64_t n_ranks = (uint64_t)comm->n_ranks;
    _Atomic uint64_t *place = &b->places[ticket % SHOWN].ticket;
    if (atomic_load_explicit(place, memory_order_relaxed) == 0) {
        b->places[ticket % SHOWN].shown = mine;
        atomic_store(place, ticket + 1);
    } else {
        pthread_mutex_lock(&b->lock);
        mine->next_late = b->late;
        b->late = mine;
        atomic_fetch_add(&b->n_late, 1);
        pthread_mutex_unlock(&b->lock);
    }
    if ((atomic_fetch_add(&g->n_shown, 1) + 1) % n_ranks != 0) return;
    for (uint64_t r = 0; r < n_ranks; r++)
        weft_desk_ring(g->ends[r]->desk);
}

static void take_down(side *mine)
{
    board *b = &((group *)mine->base.comm->group)->boards[mine->base.comm->self];
    _Atomic uint64_t *place = &b->places[mine->base.ticket % SHOWN].ticket;
    if (atomic_load_explicit(place, memory_order_relaxed) == mine->base.ticket + 1) {
        atomic_store_explicit(place, 0, memory_order_release);
        return;
    }
    pthread_mutex_lock(&b->lock);
    side **at = &b->late;
    while (*at != mine)
        at = &(*at)->next_late;
    *at = mine->next_late;
    atomic_fetch_sub(&b->n_late, 1);
    pthread_mutex_unlock(&b->lock);
}

/* What rank r of the group has shown under a ticket; NULL: nothing yet. */
static side *find(group *g, int r, uint64_t ticket)
{
    board *b = &g->boards[r];
    if (atomic_load(&b->places[ticket % SHOWN].ticket) == ticket + 1)
        return b->places[ticket % SHOWN].shown;
    if (atomic_load(&b->n_late) == 0) return NULL;
    pthread_mutex_lock(&b->lock);
    side *found = b->late;
    while (found != NULL && found->base.ticket != ticket)
        found = found->next_late;
    pthread_mutex_unlock(&b->lock);
    return found;
}

/* ---- exchanges ------------------------------------------------------------------------------- */

/* The call that an exchange belongs to, as its rank's recorder has it. */
static void print_call(const weft_comm_exchange *exchange, char *text, size_t bytes)
{
    weft_record record;
    const weft_recorder *recorder = exchange->comm->recorder;
    const uint64_t n_begun = recorder ? atomic_load(&recorder->head.n_begun) : 0;
    snprintf(text, bytes, "a call");
    for (uint64_t number = n_begun; number > 0 && n_begun - number < WEFT_RECORDS - 1; number--) {
        if (!weft_record_read(recorder, number, &record)) return;
        if (number < n_begun && record.fingerprint != exchange->fingerprint) continue;
        weft_record_print(recorder, &record, text, bytes);
        if (record.fingerprint == exchange->fingerprint) return;
    }
}

static weft_status fail_other_call(const weft_comm_exchange *mine, const weft_comm_exchange *other,
                                   weft_error *error)
{
    char own[180], its[180];
    print_call(mine, own, sizeof own);
    print_call(other, its, sizeof its);
    mine->comm->chain = 0; /* all know, and go on to say so */
    weft_recorder_settle(mine->comm->recorder, mine->comm->channel);
    return weft_fail(
        error, WEFT_MISMATCH,
        "rank %d is in %s, but rank %d is in %s; all ranks of a group must make the same "
        "calls in the same order",
        mine->comm->rank, own, other->comm->rank, its);
}

/* Copy what `sender` has for this rank. */
static weft_status take(side *mine, const side *from, int sender, weft_error *error)
{
    weft_comm *comm = mine->base.comm;
    const weft_parts *send = &from->base.send, *recv = &mine->base.recv;
    if (from->base.fingerprint != mine->base.fingerprint)
        return fail_other_call(&mine->base, &from->base, error);
    if (mine->base.is_direct) return WEFT_OK;
    const int64_t bytes = send->bytes != NULL ? send->bytes[comm->self] : send->all_bytes;
    if (bytes != recv->bytes[sender]) {
        weft_recorder_settle(comm->recorder, comm->channel);
        return weft_fail(error, WEFT_MISMATCH,
                         "rank %d of a group of %d sends %lld bytes to rank %d, which expects "
                         "%lld; both sides must give the same count",
                         sender, comm->n_ranks, (long long)bytes, comm->self,
                         (long long)recv->bytes[sender]);
    }
    if (bytes == 0) return WEFT_OK;
    const char *data = send->bytes != NULL ? send->data + send->at[comm->self] : send->data;
    char *to = recv->data + recv->at[sender];
    if (data != to) memcpy(to, data, (size_t)bytes);
    return WEFT_OK;
}

/* The peer may be gone as soon as it has been counted. */
static void count_done(const side *peer, int n_ranks)
{
    side *its = (side *)(uintptr_t)peer;
    weft_desk *desk = its->base.comm->desk;
    if (atomic_fetch_add(&its->n_done, 1) + 1 == n_ranks - 1) weft_desk_ring(desk);
}

static void release(weft_comm_exchange *exchange)
{
    side *mine = (side *)exchange;
    mine->is_released = true;
    for (int r = 0; r < exchange->comm->n_ranks; r++)
        if (r != exchange->comm->self) count_done(mine->peers[r], exchange->comm->n_ranks);
}

/* Nothing is said of calls that differ before all have come: those that find it out do so together. */
static void take_all(side *mine)
{
    const int n = mine->base.comm->n_ranks, self = mine->base.comm->self;
    for (int i = 0; i < n; i++) {
        const int sender = (self + i) % n; /* not all from one at a time */
        const side *its = mine->peers[sender];
        (void)!take(mine, its, sender, &mine->base.pending.error);
        if (!mine->base.is_direct && its != mine) count_done(its, n);
    }
    mine->base.has_all_come = true;
}

static bool poll(weft_pending *it)
{
    side *mine = (side *)(void *)it;
    weft_comm *comm = mine->base.comm;
    for (; mine->n_seen < comm->n_ranks; mine->n_seen++) {
        const int r = mine->n_seen;
        mine->peers[r] = r == comm->self ? mine : find(comm->group, r, mine->base.ticket);
        if (mine->peers[r] == NULL) return false;
    }
    if (!mine->base.has_all_come) take_all(mine);
    if (mine->base.is_direct && !mine->is_released) return false;
    if (atomic_load_explicit(&mine->n_done, memory_order_acquire) < comm->n_ranks - 1) return false;
    take_down(mine);
    return true;
}

static weft_status exchange_create(weft_comm *comm, weft_comm_exchange **exchange,
                                   weft_error *error)
{
    const size_t bytes = sizeof(side) + (size_t)comm->n_ranks * sizeof(side *);
    side *mine = calloc(1, bytes);
    *exchange = (weft_comm_exchange *)mine;
    if (mine == NULL) return weft_fail_memory(error, bytes);
    mine->base.pending.poll = poll;
    return WEFT_OK;
}

static void exchange_destroy(weft_comm_exchange *exchange)
{
    free(exchange);
}

static weft_status start(weft_comm_exchange *exchange, weft_error *error)
{
    (void)error;
    side *mine = (side *)exchange;
    mine->n_seen = 0;
    mine->base.has_all_come = mine->is_released = false;
    atomic_store_explicit(&mine->n_done, 0, memory_order_relaxed);
    show(mine);
    return WEFT_OK;
}

static const weft_comm_exchange *peer(const weft_comm_exchange *exchange, int r)
{
    return &((const side *)exchange)->peers[r]->base;
}

/* An exchange in which one has something for the others. */
static weft_status broadcast(weft_comm_exchange *exchange, int root, void *data, int64_t bytes,
                             weft_error *error)
{
    weft_comm *comm = exchange->comm;
    const int n = comm->n_ranks;
    int64_t *send_bytes = comm->numbers, *recv_bytes = send_bytes + n, *at = recv_bytes + n;
    for (int r = 0; r < n; r++) {
        send_bytes[r] = comm->self == root && r != root ? bytes : 0;
        recv_bytes[r] = comm->self != root && r == root ? bytes : 0;
        at[r] = 0;
    }
    exchange->send = (weft_parts){data, send_bytes, at, 0};
    exchange->recv = (weft_parts){data, recv_bytes, at, 0};
    WEFT_TRY(start(exchange, error));
    weft_desk_begin(comm->desk, &exchange->pending);
    return weft_desk_wait(comm->desk, &exchange->pending, error);
}

const weft_comm_engine weft_engine_threads = {
    .name = "threads",
    .group_create = group_create,
    .destroy = destroy,
    .exchange_create = exchange_create,
    .exchange_destroy = exchange_destroy,
    .start = start,
    .peer = peer,
    .release = release,
    .broadcast = broadcast,
};
