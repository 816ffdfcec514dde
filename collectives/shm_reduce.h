/* shm_reduce.h (private): memory that the ranks of a group share when they are processes of one host, and reductions in it. */
#ifndef WEFT_SHM_REDUCE_H
#define WEFT_SHM_REDUCE_H

#include <stdatomic.h>
#include <stdint.h>

#include "areas.h"

struct weft_reduction;

enum {
    WEFT_SHM_REDUCE_SLOTS = 4,            /* of a rank: pieces that may be on their way */
    WEFT_SHM_REDUCE_SLOT_BYTES = 1 << 16, /* several fit into a core's own cache        */
    WEFT_SHM_REDUCE_LINE = 64
};

/* What a rank tells the others: of how many pieces, of all reductions so far, its summands lie in its slot, and of how many
 * its slice of the sum lies in all slots. fingerprints: of the calls that its slots are of, guarded by `given`. Written by
 * that rank alone. */
typedef struct weft_shm_reduce_line {
    _Alignas(WEFT_SHM_REDUCE_LINE) _Atomic uint64_t given;
    uint64_t fingerprints[WEFT_SHM_REDUCE_SLOTS];
    _Alignas(WEFT_SHM_REDUCE_LINE) _Atomic uint64_t combined;
    /* Of how many reductions it has shown where its buffers lie, those of the last; and of how many it has done its part. */
    _Alignas(WEFT_SHM_REDUCE_LINE) _Atomic uint64_t shown;
    uint64_t shown_fingerprint;
    weft_area_place send, recv;
    int32_t rank; /* of the mesh */
    _Alignas(WEFT_SHM_REDUCE_LINE) _Atomic uint64_t done;
} weft_shm_reduce_line;

/* One rank's end. Of each rank it sees a line and slots [WEFT_SHM_REDUCE_SLOTS]; zeros at first. */
typedef struct weft_shm_reduce {
    weft_host_shm near;
    int n_ranks, self;
    uint64_t n_pieces, n_shown;          /* of all reductions that have begun */
    struct weft_reduction *first, *last; /* under way, one after the other as they began */
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
