/* shm_reduce.h (private): memory that the ranks of a group share when they are processes of one host, and reductions in it. */
#ifndef WEFT_SHM_REDUCE_H
#define WEFT_SHM_REDUCE_H

#include <stdatomic.h>
#include <stdint.h>

#include "areas.h"

struct weft_reduction;

enum {
    WEFT_SHM_REDUCE_SLOTS = 4,            /* of a rank: pieces that may be on their way     */
    WEFT_SHM_REDUCE_SLOT_BYTES = 1 << 16, /* several fit into a core's own cache            */
    WEFT_SHM_REDUCE_SHOWN = 64,           /* of a rank: reductions whose buffers it may show */
    WEFT_SHM_REDUCE_LINE = 64
};

/* Of one reduction: of which call it is, and where this rank's buffers lie. */
typedef struct weft_shm_reduce_shown {
    uint64_t fingerprint;
    int32_t rank; /* of the mesh */
    weft_area_place send, recv;
} weft_shm_reduce_shown;

/* What a rank tells the others. All counters are of all reductions so far, and only grow. Written by that rank alone. */
typedef struct weft_shm_reduce_line {
    /* Of how many pieces its summands lie in its slot, guarding the fingerprints of the calls that its slots are of; and of
     * how many its slice of the sum lies in all slots. */
    _Alignas(WEFT_SHM_REDUCE_LINE) _Atomic uint64_t given;
    uint64_t fingerprints[WEFT_SHM_REDUCE_SLOTS];
    _Alignas(WEFT_SHM_REDUCE_LINE) _Atomic uint64_t combined;
    /* Of how many reductions it has shown its buffers, guarding what it shows; and of how many it has done its part. */
    _Alignas(WEFT_SHM_REDUCE_LINE) _Atomic uint64_t shown;
    weft_shm_reduce_shown shows[WEFT_SHM_REDUCE_SHOWN];
    _Alignas(WEFT_SHM_REDUCE_LINE) _Atomic uint64_t done;
} weft_shm_reduce_line;

/* One rank's end. Of each rank it sees a line and slots [WEFT_SHM_REDUCE_SLOTS]; zeros at first. */
typedef struct weft_shm_reduce {
    weft_host_shm near;
    int n_ranks, self;
    /* Of all reductions so far: their pieces, and how many of them this rank has given, combined and taken; how many it
     * has shown. */
    uint64_t n_pieces, n_given, n_combined, n_taken, n_shown;
    struct weft_reduction *first, *last; /* under way, as they began */
} weft_shm_reduce;

static inline weft_shm_reduce_line *weft_shm_reduce_line_of(const weft_shm_reduce *window, int rank)
{
    return (weft_shm_reduce_line *)(void *)window->near.memory[rank];
}

/* weft_shm_reduce_make - *window is NULL where the peers are one, or not all on one host, or refused the memory. Collective over
 * the peers. weft_shm_reduce_destroy - Local. */
weft_status weft_shm_reduce_make(const weft_host_shm_peers *peers, weft_shm_reduce **window,
                                 weft_error *error);
void weft_shm_reduce_destroy(weft_shm_reduce **window);

#endif
