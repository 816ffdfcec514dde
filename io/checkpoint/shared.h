/* shared.h (private): staging memory that all processes of one host can read.
 *
 * Ranks that split the innermost dim of a tensor have rows of it here and there. With each other's copies in sight, every
 * process writes long, whole blocks, as threads of one process do. Where the system refuses such memory each process
 * writes its own rows.
 */
#ifndef WEFT_CHECKPOINT_SHARED_H
#define WEFT_CHECKPOINT_SHARED_H

#include "host_shm.h"
#include "peers.h"

typedef struct weft_shared {
    weft_host_shm near; /* n 0: there is no such memory */
    bool is_refused;    /* do not try again */
} weft_shared;

/* weft_shared_make - at least `bytes` of our own, and everybody else's; what is large enough is kept. Collective over
 * the mesh. It is no failure when there is none: then n is 0 on all processes. */
weft_status weft_shared_make(weft_shared *shared, const weft_peers *peers, int64_t bytes,
                             weft_error *error);
/* Local. */
void weft_shared_free(weft_shared *shared);

#endif
