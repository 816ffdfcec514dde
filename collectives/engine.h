/* engine.h: what an engine (threads, MPI) provides, and one rank's end of a group as all of this
 * room sees it.
 *
 * An engine moves bytes and knows no dtype, box or combine: everything above the table is the same
 * on every engine, so results are equal bit by bit. Bytes go only between exchanges of the same
 * fingerprint (request->fingerprint): ranks that make different calls get nothing from each other.
 */
#ifndef WEFT_ENGINE_H
#define WEFT_ENGINE_H

#include "recorder.h"
#include "weft/collectives.h"

enum { WEFT_SLOTS = 8 }; /* exchanges that may be under way in one group at once */

typedef struct weft_comm_engine weft_comm_engine;

/* Touched by its own rank only. */
struct weft_comm {
    _Alignas(64) const weft_comm_engine *engine;
    void *group; /* the engine's */
    int rank, n_ranks, self;
    uint32_t busy;           /* bit s: slot s has an exchange under way                      */
    uint64_t next;           /* ticket of the next exchange; its slot is ticket % WEFT_SLOTS */
    int64_t *numbers;        /* [4][n_ranks]: byte counts and places for weft_all_reduce      */
    weft_recorder *recorder; /* of this rank; NULL or channel -1: calls are not recorded */
    int channel;
    bool is_inside;       /* of a call that is recorded as one: its exchanges are not */
    uint64_t chain;       /* fingerprint of all calls on this group so far              */
    uint64_t fingerprint; /* of the call that exchanges belong to                     */
};

/* The parts of a buffer, one for each rank of the group. Borrowed until the exchange is over. */
typedef struct weft_parts {
    char *data;
    const int64_t *bytes, *at; /* [n_ranks] */
} weft_parts;

struct weft_comm_engine {
    const char *name;
    /* Collective over the mesh. ends [n_local]: rank, n_ranks and self are set; the engine sets
     * group. On failure it leaves what `destroy` can take. */
    weft_status (*group_create)(const weft_mesh *mesh, uint32_t axes, weft_comm *ends,
                                weft_error *error);
    void (*destroy)(weft_comm *ends, int n_local);
    /* request->ticket is set; the engine keeps what it needs in request->engine. */
    weft_status (*all_to_all_start)(weft_comm *comm, const weft_parts *send, const weft_parts *recv,
                                    weft_request *request, weft_error *error);
    weft_status (*all_gather_start)(weft_comm *comm, const void *send, int64_t send_bytes,
                                    const weft_parts *recv, weft_request *request,
                                    weft_error *error);
    weft_status (*wait)(weft_request *request, weft_error *error);
    weft_status (*broadcast)(weft_comm *comm, int root, void *data, int64_t bytes,
                             const weft_request *request, weft_error *error);
};

extern const weft_comm_engine weft_engine_threads;
#ifdef WEFT_HAVE_MPI
extern const weft_comm_engine weft_engine_mpi;
#endif

/* ---- comm.c: calls, as they are recorded ----------------------------------------------------- */

/* weft_comm_enter - a call of several exchanges begins, or goes on: until weft_comm_leave they carry
 * its fingerprint and are not recorded by themselves. Inside another such call it does nothing. */
weft_call_mark weft_comm_begin(weft_comm *comm, const weft_call_facts *call);
bool weft_comm_enter(weft_comm *comm, const weft_call_mark *mark);
void weft_comm_leave(weft_comm *comm, bool has_entered);

/* ---- combine.c ------------------------------------------------------------------------------- */

/* out[s] = a[s] combined with b[s], `n_states` states; out may be a or b. NULL where a combine has
 * no meaning for a dtype. */
typedef void (*weft_combiner)(void *out, const void *a, const void *b, int64_t n_states);
weft_combiner weft_combiner_of(weft_combine combine, weft_dtype dtype);
/* WEFT_USAGE when there is none. */
weft_status weft_combine_check(weft_combine combine, weft_dtype dtype, weft_error *error);

/* ---- all_reduce.c ---------------------------------------------------------------------------- */

/* weft_all_reduce_scratch for a group that need not exist. */
int64_t weft_all_reduce_bytes(int n_ranks, weft_combine combine, weft_dtype dtype, int64_t count);

#endif
