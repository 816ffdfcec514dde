/* window.h (private): memory that the ranks of a group share when they are processes of one host, and reductions in it. */
#ifndef WEFT_WINDOW_H
#define WEFT_WINDOW_H

#include <stdatomic.h>
#include <stdint.h>

#include "areas.h"

struct weft_reduction;

enum {
    WEFT_WINDOW_SLOTS = 4,            /* of a rank: pieces that may be on their way */
    WEFT_WINDOW_SLOT_BYTES = 1 << 16, /* several fit into a core's own cache        */
    WEFT_WINDOW_LINE = 64
};

/* What a rank tells the others: of how many pieces, of all reductions so far, its summands lie in its slot, and of how many
 * its slice of the sum lies in all slots. fingerprints: of the calls that its slots are of, guarded by `given`. Written by
 * that rank alone. */
typedef struct weft_shared_window_line {
    _Alignas(WEFT_WINDOW_LINE) _Atomic uint64_t given;
    uint64_t fingerprints[WEFT_WINDOW_SLOTS];
    _Alignas(WEFT_WINDOW_LINE) _Atomic uint64_t combined;
    /* Of how many reductions it has shown where its buffers lie, those of the last; and of how many it has done its part. */
    _Alignas(WEFT_WINDOW_LINE) _Atomic uint64_t shown;
    uint64_t shown_fingerprint;
    weft_area_place send, recv;
    int32_t rank; /* of the mesh */
    _Alignas(WEFT_WINDOW_LINE) _Atomic uint64_t done;
} weft_shared_window_line;

/* One rank's end. Of each rank it sees a line and slots [WEFT_WINDOW_SLOTS]; zeros at first. */
typedef struct weft_shared_window {
    weft_near near;
    int n_ranks, self;
    uint64_t n_pieces, n_shown;          /* of all reductions that have begun */
    struct weft_reduction *first, *last; /* under way, one after the other as they began */
} weft_shared_window;

static inline weft_shared_window_line *weft_shared_window_line_of(const weft_shared_window *window,
                                                                  int rank)
{
    return (weft_shared_window_line *)(void *)window->near.memory[rank];
}

/* weft_shared_window_make - *window is NULL where the peers are one, or not all on one host, or refused the memory. Collective over
 * the peers. weft_shared_window_destroy - Local. */
weft_status weft_shared_window_make(const weft_near_peers *peers, weft_shared_window **window,
                                    weft_error *error);
void weft_shared_window_destroy(weft_shared_window **window);

#endif
