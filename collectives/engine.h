/* engine.h (private): one rank's end of a group as all of this room sees it, and the exchanges behind the public ones.
 *
 * weft/extend/engine.h says what an engine is. Weft's own are tables as any other.
 */
#ifndef WEFT_ENGINE_H
#define WEFT_ENGINE_H

#include <stddef.h>

#include "pending.h"
#include "recorder.h"
#include "shm_reduce.h"
#include "weft/extend/combine.h"
#include "weft/extend/engine.h"

/* An exchange as this room has it. */
typedef struct weft_exchange_slot {
    weft_pending pending; /* first: what a wait brings on */
    weft_comm_exchange exchange;
    struct weft_exchange_slot *next_free;
    bool is_begun;             /* since it was taken */
    _Alignas(64) char state[]; /* the engine's */
} weft_exchange_slot;

/* Touched by its own rank only. */
struct weft_comm {
    _Alignas(64) const weft_engine *engine;
    void *state; /* the engine's */
    int rank, n_ranks, self;
    uint64_t next;   /* ticket of the next exchange: all ranks take them in one order */
    weft_desk *desk; /* what the rank has under way, in all groups of the mesh */
    weft_comm *above,
        *below; /* the same end on the engine that stands on this one, and on the one that it stands on */
    const weft_areas *areas;  /* of the mesh */
    weft_shm_reduce *window;  /* the engine's, for reductions; NULL: there is none */
    weft_exchange_slot *free; /* made for an earlier call, to be used again */
    /* [WEFT_REDUCE_NUMBERS][n_ranks]: for calls that block; the first for who makes several */
    int64_t *numbers;
    weft_recorder *recorder; /* of this rank; NULL or channel -1: calls are not recorded */
    int channel;
    uint64_t chain; /* fingerprint of all calls on this group so far */
};

extern const weft_engine weft_engine_threads;
#ifdef WEFT_HAVE_MPI
extern const weft_engine weft_engine_mpi;
#endif

/* ---- engines.c ----------------------------------------------------------------------------------- */

/* weft_engine_for - the engine that carries a mesh: the chosen one, or the first of Weft's own that can. NULL: none, and
 * error says why. weft_engine_below - what an engine stands on there; NULL: nothing, or error says why none can. Local. */
const weft_engine *weft_engine_for(const weft_mesh *mesh, weft_error *error);
const weft_engine *weft_engine_below(const weft_engine *engine, const weft_mesh *mesh,
                                     weft_error *error);

/* weft_engine_puts - whether what is exchanged on a mesh goes from queue to queue of its device: of a mesh that is only a plan
 * nobody knows, and it is said that it does not. weft_device_reduces - whether such a group reduces by the device's own. Local.
 * weft_engine_print - what it is called, and what of it all ranks must have alike. */
bool weft_engine_puts(const weft_mesh *mesh);
bool weft_device_reduces(const weft_comm *comm, const weft_combining *rule);
void weft_engine_print(const weft_engine *engine, const weft_mesh *mesh, char *text, size_t bytes);

/* ---- groups.c ------------------------------------------------------------------------------------ */

weft_mesh *weft_comms_mesh(const weft_comms *comms);

/* ---- exchange.c --------------------------------------------------------------------------------- */

static inline weft_exchange_slot *weft_slot_of(weft_comm_exchange *exchange)
{
    return (weft_exchange_slot *)(void *)((char *)exchange -
                                          offsetof(weft_exchange_slot, exchange));
}

/* weft_exchange_mark - it begins: nothing has gone wrong so far. weft_slots_destroy - all that are free. Local. */
void weft_exchange_mark(weft_comm_exchange *exchange, uint64_t ticket, uint64_t fingerprint);
void weft_slots_destroy(weft_comm *comm);

/* ---- comm.c -------------------------------------------------------------------------------------- */

/* weft_comm_begin - a call begins, as it is recorded; comm may be NULL. Exchanges of the call carry its fingerprint. */
weft_call_mark weft_comm_begin(weft_comm *comm, const weft_call_facts *call);
/* weft_comm_settle - ranks that disagreed know of it and go on to say so: what they did before no longer counts. */
void weft_comm_settle(weft_comm *comm);

/* ---- combine.c ------------------------------------------------------------------------------- */

/* NULL where a combine has no meaning for a dtype. */
weft_combiner weft_combiner_of(weft_combine combine, weft_dtype dtype);
/* All that a device is told of it; all zero where there is none. */
weft_combining weft_combining_of(weft_combine combine, weft_dtype dtype);
/* WEFT_USAGE when there is none. */
weft_status weft_combine_check(weft_combine combine, weft_dtype dtype, weft_error *error);
/* weft_combine_digest - of a combine from outside by what it is, since its number may be another one elsewhere; 0 of
 * Weft's own. weft_combines_print - the names of those from outside, in their order. Local. */
uint64_t weft_combine_digest(weft_combine combine);
void weft_combines_print(char *text, size_t bytes);

#endif
