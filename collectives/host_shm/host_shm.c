/* near: memory of all processes of a host; each sees that of all. */
#include "host_shm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How one of the peers fared: all look at all, and come to the same end. */
typedef struct verdict {
    int32_t peer; /* whose memory it does not see; -1: it sees what it should */
    int32_t errno_;
} verdict;

/* Everybody's, as they are told. */
typedef struct tables {
    weft_segment_ticket *tickets; /* [peers->n] */
    verdict *verdicts;            /* [peers->n] */
} tables;

static weft_status take_tables(weft_host_shm *near, const weft_host_shm_peers *peers, tables *t,
                               weft_error *error)
{
    weft_error own = {.rank = -1};
    const size_t n = (size_t)peers->n;
    t->tickets = calloc(n, sizeof *t->tickets);
    t->verdicts = calloc(n, sizeof *t->verdicts);
    near->peers = calloc(n, sizeof *near->peers);
    near->memory = calloc(n, sizeof *near->memory);
    if (!t->tickets || !t->verdicts || !near->peers || !near->memory)
        weft_fail_memory(&own, n * sizeof *t->tickets);
    if (peers->agree(peers->context, &own) == WEFT_OK) return WEFT_OK;
    return weft_fail(error, own.status, "%s", own.message);
}

/* Those of this host; returns whether all of them are in sight. */
static verdict look_around(weft_host_shm *near, const weft_host_shm_peers *peers,
                           const weft_segment_ticket *all, char *own)
{
    verdict v = {-1, 0};
    for (int p = 0; p < peers->n; p++) {
        if (all[p].host != all[peers->self].host) continue;
        char *memory = p == peers->self ? own : all[p].id < 0 ? NULL : weft_segment_attach(&all[p]);
        if (p == peers->self) near->self = near->n;
        near->peers[near->n] = p;
        near->memory[near->n++] = memory;
        if (memory != NULL || v.peer >= 0) continue;
        v = (verdict){p, all[p].id < 0 ? all[p].errno_ : errno};
    }
    return v;
}

static bool is_refused(weft_host_shm *near, const weft_host_shm_peers *peers, const verdict *all)
{
    for (int p = 0; p < peers->n; p++) {
        if (all[p].peer < 0) continue;
        snprintf(near->why, sizeof near->why,
                 "process %d was refused memory of process %d that it could see: %s", p,
                 all[p].peer, strerror(all[p].errno_));
        return true;
    }
    return false;
}

static weft_status share(weft_host_shm *near, const weft_host_shm_peers *peers, int64_t bytes,
                         tables *t, weft_error *error)
{
    weft_segment_ticket own;
    WEFT_TRY(take_tables(near, peers, t, error));
    char *memory = weft_segment_make(bytes, &own);
    weft_status status = peers->gather(peers->context, &own, sizeof own, t->tickets, error);
    if (status != WEFT_OK) {
        weft_segment_leave(memory);
        return status;
    }
    const verdict v = look_around(near, peers, t->tickets, memory);
    return peers->gather(peers->context, &v, sizeof v, t->verdicts, error);
}

weft_status weft_host_shm_make(weft_host_shm *near, const weft_host_shm_peers *peers, int64_t bytes,
                               weft_error *error)
{
    tables t = {0};
    *near = (weft_host_shm){.bytes = bytes};
    const weft_status status = share(near, peers, bytes, &t, error);
    if (status != WEFT_OK || is_refused(near, peers, t.verdicts)) {
        weft_host_shm refused = {0};
        memcpy(refused.why, near->why, sizeof refused.why);
        weft_host_shm_free(near);
        *near = refused;
    }
    free(t.tickets);
    free(t.verdicts);
    return status;
}

void weft_host_shm_free(weft_host_shm *near)
{
    for (int i = 0; i < near->n; i++)
        weft_segment_leave(near->memory[i]);
    free(near->peers);
    free(near->memory);
    *near = (weft_host_shm){0};
}
