/* peers.h (private): what the processes of a mesh tell each other during a save or restore.
 *
 * With all ranks in this process there is nobody to talk to, and nothing is sent.
 */
#ifndef WEFT_CHECKPOINT_PEERS_H
#define WEFT_CHECKPOINT_PEERS_H

#include "weft/collectives.h"

typedef struct weft_peers {
    weft_comms *comms; /* NULL when alone */
    weft_comm *comm;
    int n, self; /* processes of the mesh, and which this is; 0 is the root */
} weft_peers;

/* All collective over the mesh. */
weft_status weft_peers_open(weft_mesh *mesh, weft_peers *peers, weft_error *error);
void weft_peers_close(weft_peers *peers);
/* Everybody's `bytes` bytes in the order of processes: all [n * bytes]; NULL: this process has no memory for them, and all
 * return that. */
weft_status weft_peers_gather(const weft_peers *peers, const void *mine, int64_t bytes, void *all,
                              weft_error *error);
/* The bitwise sum of everybody's numbers, of which at most one is not zero at each place. */
weft_status weft_peers_join(const weft_peers *peers, void *data, int64_t bytes, weft_error *error);
/* The root's bytes to everybody. */
weft_status weft_peers_tell(const weft_peers *peers, void *data, int64_t bytes, weft_error *error);

#endif
