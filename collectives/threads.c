/* threads: the engine for ranks that are threads of one process.
 *
 * A rank shows the addresses of its data. Each copies its parts straight from the memory of those that have shown
 * theirs, and counts on their exchange. An exchange is over when it has got everything and all have counted. A rank's
 * exchange is shown under its ticket in one of SHOWN places, which the others read without a lock. If an exchange
 * under way still has the place, the new one goes on a list behind a lock. So any number may be under way, and
 * nothing is allocated for it. Shown data stay unchanged until all ranks have counted: a place or an entry of the
 * list with the wanted ticket cannot vanish while a rank reads it.
 */
#include "engine.h"
#include "view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 64, SHOWN = 8 };

/* One rank's side of one exchange. */
typedef struct side {
    weft_comm_exchange *exchange;
    int n_seen; /* ranks that have shown theirs, in their order */
    bool is_released, is_over;
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

/* All ranks are local, so end r is rank r. */
static weft_status group_create(const weft_mesh *mesh, uint32_t axes, weft_comm *const *ends,
                                int n_ends, weft_error *error)
{
    int *ranks = malloc((size_t)ends[0]->n_ranks * sizeof *ranks);
    if (ranks == NULL) return weft_fail_memory(error, (size_t)ends[0]->n_ranks * sizeof *ranks);
    weft_status status = WEFT_OK;
    for (int r = 0; r < n_ends && status == WEFT_OK; r++) {
        if (ends[r]->self != 0) continue;
        group *g = group_new(ends[r]->n_ranks, error);
        if (g == NULL) status = WEFT_MEMORY;
        const int n = weft_mesh_group(mesh, axes, ends[r]->rank, ranks, NULL);
        for (int i = 0; i < n; i++) {
            ends[ranks[i]]->state = g;
            weft_recorder_tells(ends[ranks[i]]->recorder, ends[ranks[i]]->channel);
            if (g != NULL) g->ends[i] = ends[ranks[i]];
        }
    }
    free(ranks);
    return status;
}

static void group_destroy(weft_comm *const *ends, int n_ends)
{
    for (int r = 0; r < n_ends; r++) {
        group *g = ends[r]->state;
        if (ends[r]->self != 0 || g == NULL) continue;
        for (int i = 0; i < ends[r]->n_ranks; i++)
            pthread_mutex_destroy(&g->boards[i].lock);
        free(g->ends);
        free(g);
    }
}

#ifdef WEFT_HAVE_MPI
#define ELSE "choose mpi, or none"
#else
#define ELSE "this Weft was built without MPI: build it with MPI, or run all ranks in one process"
#endif

static weft_status takes(const weft_mesh *mesh, weft_error *error)
{
    if (weft_mesh_n_local(mesh) == weft_mesh_n_ranks(mesh)) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "engine threads carries ranks of one process, and mesh %.200s has ranks in "
                     "other processes; " ELSE,
                     weft_mesh_text(mesh));
}

/* ---- showing ----------------------------------------------------------------------------------- */

/* The last of a group to show wakes those that sleep: exact where every rank has one exchange under way, else nearly. */
static void show(side *mine)
{
    weft_comm *comm = mine->exchange->comm;
    group *g = comm->state;
    board *b = &g->boards[comm->self];
    const uint64_t ticket = mine->exchange->ticket;
    const uint64_t n_ranks = (uint64_t)comm->n_ranks;
    _Atomic uint64_t *place = &b->places[ticket % SHOWN].ticket;
    if (weft_sync_load_relaxed(place) == 0) {
        weft_sync_writes(&b->places[ticket % SHOWN].shown);
        b->places[ticket % SHOWN].shown = mine;
        weft_sync_store(place, ticket + 1);
    } else {
        weft_lock_take(&b->lock);
        mine->next_late = b->late;
        b->late = mine;
        weft_sync_add(&b->n_late, 1);
        weft_lock_give(&b->lock);
    }
    if ((weft_sync_add(&g->n_shown, 1) + 1) % n_ranks != 0) return;
    for (uint64_t r = 0; r < n_ranks; r++)
        weft_desk_ring(g->ends[r]->desk);
}

static void take_down(side *mine)
{
    board *b = &((group *)mine->exchange->comm->state)->boards[mine->exchange->comm->self];
    _Atomic uint64_t *place = &b->places[mine->exchange->ticket % SHOWN].ticket;
    if (weft_sync_load_relaxed(place) == mine->exchange->ticket + 1) {
        weft_sync_store_release(place, 0);
        return;
    }
    weft_lock_take(&b->lock);
    side **at = &b->late;
    while (*at != mine)
        at = &(*at)->next_late;
    *at = mine->next_late;
    weft_sync_sub(&b->n_late, 1);
    weft_lock_give(&b->lock);
}

/* What rank r of the group has shown under a ticket; NULL: nothing yet. */
static side *find(group *g, int r, uint64_t ticket)
{
    board *b = &g->boards[r];
    if (weft_sync_load(&b->places[ticket % SHOWN].ticket) == ticket + 1) {
        weft_sync_reads(&b->places[ticket % SHOWN].shown);
        return b->places[ticket % SHOWN].shown;
    }
    if (weft_sync_load(&b->n_late) == 0) return NULL;
    weft_lock_take(&b->lock);
    side *found = b->late;
    while (found != NULL && found->exchange->ticket != ticket)
        found = found->next_late;
    weft_lock_give(&b->lock);
    return found;
}

/* ---- exchanges ------------------------------------------------------------------------------- */

/* The call that an exchange belongs to, as its rank's recorder has it. */
static void print_call(const weft_comm_exchange *exchange, char *text, size_t bytes)
{
    weft_record record;
    const weft_recorder *recorder = exchange->comm->recorder;
    const uint64_t n_begun = recorder ? weft_sync_load(&recorder->head.n_begun) : 0;
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
    weft_comm_settle(mine->comm);
    return weft_fail(
        error, WEFT_MISMATCH,
        "rank %d is in %s, but rank %d is in %s; all ranks of a group must make the same "
        "calls in the same order",
        mine->comm->rank, own, other->comm->rank, its);
}

/* Copy what `sender` has for this rank. */
static weft_status take(side *mine, const side *from, int sender, weft_error *error)
{
    weft_comm *comm = mine->exchange->comm;
    const weft_parts *send = &from->exchange->send, *recv = &mine->exchange->recv;
    if (from->exchange->fingerprint != mine->exchange->fingerprint)
        return fail_other_call(mine->exchange, from->exchange, error);
    if (mine->exchange->is_direct) return WEFT_OK;
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
    weft_sync_reads(data);
    if (data != to) memcpy(to, data, (size_t)bytes);
    return WEFT_OK;
}

/* The peer may be gone as soon as it has been counted. */
static void count_done(const side *peer, int n_ranks)
{
    side *its = (side *)(uintptr_t)peer;
    weft_desk *desk = its->exchange->comm->desk;
    if (weft_sync_add(&its->n_done, 1) + 1 == n_ranks - 1) weft_desk_ring(desk);
}

static void release(weft_comm_exchange *exchange)
{
    side *mine = exchange->state;
    mine->is_released = true;
    for (int r = 0; r < exchange->comm->n_ranks; r++)
        if (r != exchange->comm->self) count_done(mine->peers[r], exchange->comm->n_ranks);
}

/* Nothing is said of calls that differ before all have come: those that find it out do so together. */
static void take_all(side *mine)
{
    const int n = mine->exchange->comm->n_ranks, self = mine->exchange->comm->self;
    for (int i = 0; i < n; i++) {
        const int sender = (self + i) % n; /* not all from one at a time */
        const side *its = mine->peers[sender];
        (void)!take(mine, its, sender, &mine->exchange->error);
        if (!mine->exchange->is_direct && its != mine) count_done(its, n);
    }
    mine->exchange->has_all_come = true;
}

static bool poll(weft_comm_exchange *exchange)
{
    side *mine = exchange->state;
    weft_comm *comm = exchange->comm;
    for (; mine->n_seen < comm->n_ranks; mine->n_seen++) {
        const int r = mine->n_seen;
        mine->peers[r] = r == comm->self ? mine : find(comm->state, r, exchange->ticket);
        if (mine->peers[r] == NULL) return false;
    }
    if (mine->is_over) return true;
    if (!exchange->has_all_come) take_all(mine);
    if (exchange->is_direct && !mine->is_released) return false;
    /* In one order with the doorbell (pending.c): who looks and then sleeps is seen by who counts and then rings. */
    if (weft_sync_load(&mine->n_done) < comm->n_ranks - 1) return false;
    take_down(mine);
    return mine->is_over = true;
}

static int64_t exchange_bytes(const weft_comm *comm)
{
    return (int64_t)(sizeof(side) + (size_t)comm->n_ranks * sizeof(side *));
}

static weft_status start(weft_comm_exchange *exchange, weft_error *error)
{
    (void)error;
    side *mine = exchange->state;
    mine->exchange = exchange;
    mine->n_seen = 0;
    exchange->has_all_come = mine->is_released = mine->is_over = false;
    weft_sync_store_relaxed(&mine->n_done, 0);
    show(mine);
    return WEFT_OK;
}

static const weft_comm_exchange *peer(const weft_comm_exchange *exchange, int r)
{
    return ((const side *)exchange->state)->peers[r]->exchange;
}

const weft_engine weft_engine_threads = {
    .size = sizeof(weft_engine),
    .name = "threads",
    .wakes = true,
    .takes = takes,
    .group_create = group_create,
    .group_destroy = group_destroy,
    .exchange_bytes = exchange_bytes,
    .start = start,
    .poll = poll,
    .peer = peer,
    .release = release,
};
