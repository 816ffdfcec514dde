/* threads: the engine for ranks that are threads of one process.
 *
 * A rank posts where its data lie; when all have posted, each copies its parts straight from the
 * senders' memory; when all have copied, everybody's wait returns. Each of the WEFT_SLOTS exchanges
 * that may be under way has two counters, `posted` and `copied`, that only grow: round k of a slot
 * is complete at (k + 1) * ranks, and no rank can post round k + 1 before its wait for round k has
 * seen that. So nothing is ever reset.
 *
 * There may be many more ranks than cores: a waiter looks a few times, then lets others run, and
 * sleeps in the kernel only when the wait is long (measured: sleeping early costs 8 to 10 times at
 * 4 bytes).
 */
#include "engine.h"
#include "view.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { LINE = 64, SPINS = 50, YIELD_NS = 2000000 };

typedef struct counter {
    _Alignas(LINE) _Atomic uint32_t value;
    _Atomic uint32_t sleepers;
} counter;

/* What one rank gives in one exchange. */
typedef struct offer {
    _Alignas(LINE) const char *data;
    const int64_t *bytes, *at; /* [n_ranks]; NULL: all get the same `same_bytes` at `data` */
    int64_t same_bytes;
    uint64_t fingerprint; /* of its call */
    const weft_comm *comm;
} offer;

typedef struct group {
    struct {
        counter posted, copied;
    } slots[WEFT_SLOTS];
    offer offers[]; /* [WEFT_SLOTS][n_ranks] */
} group;

/* ---- counters -------------------------------------------------------------------------------- */

/* The counters wrap; a difference does not mind. */
static bool has_reached(counter *c, uint32_t target)
{
    return (int32_t)(atomic_load(&c->value) - target) >= 0;
}

/* The last one to arrive wakes those that sleep. Both sides use sequentially consistent operations
 * on `value` and `sleepers`, so either the sleeper sees the value or this sees the sleeper. */
static void arrive(counter *c, uint32_t target)
{
    if (atomic_fetch_add(&c->value, 1) + 1 != target) return;
    if (atomic_load(&c->sleepers) > 0)
        syscall(SYS_futex, &c->value, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void sleep_until(counter *c, uint32_t target)
{
    atomic_fetch_add(&c->sleepers, 1);
    while (!has_reached(c, target)) {
        const uint32_t seen = atomic_load(&c->value);
        if ((int32_t)(seen - target) < 0)
            syscall(SYS_futex, &c->value, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
    }
    atomic_fetch_sub(&c->sleepers, 1);
}

static void wait_until(counter *c, uint32_t target)
{
    for (int i = 0; i < SPINS; i++)
        if (has_reached(c, target)) return;
    const int64_t begin = now_ns();
    do {
        sched_yield();
        if (has_reached(c, target)) return;
    } while (now_ns() - begin < YIELD_NS);
    sleep_until(c, target);
}

/* What the counters of the ticket's slot read when all ranks have done their part. */
static uint32_t target_of(const weft_comm *comm, uint64_t ticket)
{
    return (uint32_t)((ticket / WEFT_SLOTS + 1) * (uint64_t)comm->n_ranks);
}

/* ---- groups ---------------------------------------------------------------------------------- */

static group *group_new(int n_ranks, weft_error *error)
{
    const size_t bytes = sizeof(group) + WEFT_SLOTS * (size_t)n_ranks * sizeof(offer);
    group *g = aligned_alloc(LINE, bytes); /* a sum of multiples of LINE */
    if (g == NULL)
        weft_fail_memory(error, bytes);
    else
        memset(g, 0, bytes);
    return g;
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
        if (ends[r].self != 0) continue;
        group *g = group_new(ends[r].n_ranks, error);
        if (g == NULL) status = WEFT_MEMORY;
        const int n = weft_mesh_group(mesh, axes, ends[r].rank, ranks, NULL);
        for (int i = 0; i < n; i++)
            ends[ranks[i]].group = g;
    }
    free(ranks);
    return status;
}

static void destroy(weft_comm *ends, int n_local)
{
    for (int r = 0; r < n_local; r++)
        if (ends[r].self == 0) free(ends[r].group);
}

/* ---- exchanges ------------------------------------------------------------------------------- */

static offer *offers_of(const weft_comm *comm, uint64_t ticket)
{
    group *g = comm->group;
    return g->offers + ticket % WEFT_SLOTS * (uint64_t)comm->n_ranks;
}

static void post(weft_comm *comm, const offer *mine, uint64_t ticket)
{
    group *g = comm->group;
    offers_of(comm, ticket)[comm->self] = *mine;
    arrive(&g->slots[ticket % WEFT_SLOTS].posted, target_of(comm, ticket));
}

static void keep_parts(const weft_parts *recv, weft_request *request)
{
    request->engine[0] = recv->data;
    request->engine[1] = (void *)(uintptr_t)recv->bytes;
    request->engine[2] = (void *)(uintptr_t)recv->at;
}

static weft_status all_to_all_start(weft_comm *comm, const weft_parts *send, const weft_parts *recv,
                                    weft_request *request, weft_error *error)
{
    (void)error;
    keep_parts(recv, request);
    post(comm,
         &(offer){.data = send->data,
                  .bytes = send->bytes,
                  .at = send->at,
                  .fingerprint = request->fingerprint,
                  .comm = comm},
         request->ticket);
    return WEFT_OK;
}

static weft_status all_gather_start(weft_comm *comm, const void *send, int64_t send_bytes,
                                    const weft_parts *recv, weft_request *request,
                                    weft_error *error)
{
    (void)error;
    keep_parts(recv, request);
    post(comm,
         &(offer){.data = send,
                  .same_bytes = send_bytes,
                  .fingerprint = request->fingerprint,
                  .comm = comm},
         request->ticket);
    return WEFT_OK;
}

static void print_call(const weft_comm *comm, char *text, size_t bytes)
{
    weft_record record;
    const weft_recorder *recorder = comm->recorder;
    snprintf(text, bytes, "a call");
    if (recorder && weft_record_read(recorder, atomic_load(&recorder->head.n_begun), &record))
        weft_record_print(recorder, &record, text, bytes);
}

static weft_status fail_other_call(weft_comm *comm, const weft_comm *other, weft_error *error)
{
    char own[180], its[180];
    print_call(comm, own, sizeof own);
    print_call(other, its, sizeof its);
    comm->chain = 0; /* all know, and go on to say so */
    weft_recorder_settle(comm->recorder, comm->channel);
    return weft_fail(
        error, WEFT_MISMATCH,
        "rank %d is in %s, but rank %d is in %s; all ranks of a group must make the same "
        "calls in the same order",
        comm->rank, own, other->rank, its);
}

/* Copy what `sender` has for this rank. */
static weft_status take(weft_comm *comm, const offer *from, int sender, const weft_request *request,
                        char *to, int64_t expected, weft_error *error)
{
    if (from->fingerprint != request->fingerprint) return fail_other_call(comm, from->comm, error);
    const int64_t bytes = from->bytes != NULL ? from->bytes[comm->self] : from->same_bytes;
    if (bytes != expected) {
        weft_recorder_settle(comm->recorder, comm->channel);
        return weft_fail(error, WEFT_MISMATCH,
                         "rank %d of a group of %d sends %lld bytes to rank %d, which expects "
                         "%lld; both sides must give the same count",
                         sender, comm->n_ranks, (long long)bytes, comm->self, (long long)expected);
    }
    if (bytes == 0) return WEFT_OK;
    const char *data = from->bytes != NULL ? from->data + from->at[comm->self] : from->data;
    if (data != to) memcpy(to, data, (size_t)bytes);
    return WEFT_OK;
}

static weft_status wait_request(weft_request *request, weft_error *error)
{
    weft_comm *comm = request->comm;
    group *g = comm->group;
    char *to = request->engine[0];
    const int64_t *bytes = request->engine[1], *at = request->engine[2];
    const uint32_t target = target_of(comm, request->ticket);
    const offer *offers = offers_of(comm, request->ticket);
    weft_status status = WEFT_OK;
    wait_until(&g->slots[request->ticket % WEFT_SLOTS].posted, target);
    for (int i = 0; i < comm->n_ranks; i++) {
        const int sender = (comm->self + i) % comm->n_ranks; /* not all from one at a time */
        char *part = bytes[sender] > 0 ? to + at[sender] : NULL;
        const weft_status taken =
            take(comm, &offers[sender], sender, request, part, bytes[sender], error);
        if (status == WEFT_OK) status = taken;
    }
    arrive(&g->slots[request->ticket % WEFT_SLOTS].copied, target);
    wait_until(&g->slots[request->ticket % WEFT_SLOTS].copied, target);
    return status;
}

static weft_status broadcast(weft_comm *comm, int root, void *data, int64_t bytes,
                             const weft_request *request, weft_error *error)
{
    group *g = comm->group;
    const uint64_t ticket = request->ticket;
    const uint32_t target = target_of(comm, ticket);
    post(comm,
         &(offer){
             .data = data, .same_bytes = bytes, .fingerprint = request->fingerprint, .comm = comm},
         ticket);
    wait_until(&g->slots[ticket % WEFT_SLOTS].posted, target);
    const weft_status status =
        take(comm, &offers_of(comm, ticket)[root], root, request, data, bytes, error);
    arrive(&g->slots[ticket % WEFT_SLOTS].copied, target);
    wait_until(&g->slots[ticket % WEFT_SLOTS].copied, target);
    return status;
}

const weft_comm_engine weft_engine_threads = {
    .name = "threads",
    .group_create = group_create,
    .destroy = destroy,
    .all_to_all_start = all_to_all_start,
    .all_gather_start = all_gather_start,
    .wait = wait_request,
    .broadcast = broadcast,
};
