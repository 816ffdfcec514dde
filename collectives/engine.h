/* engine.h: what an engine (threads, MPI) provides, and one rank's end of a group as all of this
 * room sees it.
 *
 * An engine moves bytes and knows no dtype, box or combine: everything above the table is the same
 * on every engine, so results are equal bit by bit. Bytes go only between exchanges of the same
 * fingerprint: ranks that make different calls get nothing from each other.
 */
#ifndef WEFT_ENGINE_H
#define WEFT_ENGINE_H

#include "pending.h"
#include "recorder.h"
#include "window.h"
#include "weft/collectives.h"
#include "weft/extend/combine.h"

typedef struct weft_comm_engine weft_comm_engine;

/* Touched by its own rank only. */
struct weft_comm {
    _Alignas(64) const weft_comm_engine *engine;
    void *group; /* the engine's */
    int rank, n_ranks, self;
    uint64_t next;            /* ticket of the next exchange: all ranks take them in one order */
    weft_desk *desk;          /* what the rank has under way, in all groups of the mesh */
    weft_window *window;      /* the engine's, for reductions; NULL: there is none */
    weft_comm_exchange *free; /* made for an earlier call, to be used again */
    int64_t *numbers;         /* [WEFT_REDUCE_NUMBERS][n_ranks]: for calls that block */
    weft_recorder *recorder;  /* of this rank; NULL or channel -1: calls are not recorded */
    int channel;
    uint64_t chain; /* fingerprint of all calls on this group so far */
};

/* The parts of a buffer, one for each rank of the group. Borrowed until the exchange is over. */
typedef struct weft_parts {
    char *data;
    const int64_t *bytes, *at; /* [n_ranks]; bytes NULL: all get the same `all_bytes` at `data` */
    int64_t all_bytes;
} weft_parts;

/* Bytes between the ranks of a group, under way or not. The engine makes it, with more behind it. */
struct weft_comm_exchange {
    weft_pending pending; /* first: the engine's poll is given that */
    weft_comm *comm;
    weft_comm_exchange *next_free;
    uint64_t ticket, fingerprint;
    weft_parts send, recv; /* recv.bytes is never NULL, unless is_direct */
    /* Nothing is copied: the caller looks at the peers' buffers itself, when all have come (has_all_come), and says
     * when he has done with them (release). Only where the engine has `peer`. */
    bool is_direct, has_all_come;
};

struct weft_comm_engine {
    const char *name;
    /* Collective over the mesh. ends [n_local]: rank, n_ranks, self and desk are set; the engine
     * sets group. On failure it leaves what `destroy` can take. */
    weft_status (*group_create)(const weft_mesh *mesh, uint32_t axes, weft_comm *ends,
                                weft_error *error);
    void (*destroy)(weft_comm *ends, int n_local);
    /* Local. Room for one exchange at a time; exchange->comm and pending.poll are set. */
    weft_status (*exchange_create)(weft_comm *comm, weft_comm_exchange **exchange,
                                   weft_error *error);
    void (*exchange_destroy)(weft_comm_exchange *exchange);
    /* Begin: ticket, fingerprint, send and recv are set. Never waits. */
    weft_status (*start)(weft_comm_exchange *exchange, weft_error *error);
    /* NULL: the buffers of others cannot be looked at. Of a direct exchange to which all have come: rank r's. */
    const weft_comm_exchange *(*peer)(const weft_comm_exchange *exchange, int r);
    void (*release)(weft_comm_exchange *exchange);
    /* One rank's bytes to all, on an exchange whose ticket and fingerprint are set; returns when it is over. */
    weft_status (*broadcast)(weft_comm_exchange *exchange, int root, void *data, int64_t bytes,
                             weft_error *error);
};

extern const weft_comm_engine weft_engine_threads;
#ifdef WEFT_HAVE_MPI
extern const weft_comm_engine weft_engine_mpi;
#endif

/* ---- comm.c: calls and the exchanges that they are made of ------------------------------------- */

/* weft_comm_begin - a call begins, as it is recorded; comm may be NULL. Exchanges of the call carry its fingerprint. */
weft_call_mark weft_comm_begin(weft_comm *comm, const weft_call_facts *call);

/* weft_exchange_take - an exchange of this end for a call that blocks or that a request names; made when none is free.
 * weft_exchange_give - it is over. */
weft_status weft_exchange_take(weft_comm *comm, weft_comm_exchange **exchange, weft_error *error);
void weft_exchange_give(weft_comm_exchange *exchange);

/* weft_exchange_begin - start it with a ticket that was taken in the order of calls. Whoever owns it polls it
 * (pending.poll) until it is over; then pending.error tells how it went. */
weft_status weft_exchange_begin(weft_comm_exchange *exchange, uint64_t ticket, uint64_t fingerprint,
                                weft_error *error);

/* ---- combine.c ------------------------------------------------------------------------------- */

/* NULL where a combine has no meaning for a dtype. */
weft_combiner weft_combiner_of(weft_combine combine, weft_dtype dtype);
/* WEFT_USAGE when there is none. */
weft_status weft_combine_check(weft_combine combine, weft_dtype dtype, weft_error *error);

#endif
