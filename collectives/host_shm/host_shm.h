/* host_shm.h (private): memory of all processes of a host; each sees that of all.
 *
 * One segment for each process, made and attached together, so that all have it or none of the job has: where the system
 * refuses it to one, everybody goes on without.
 */
#ifndef WEFT_HOST_SHM_H
#define WEFT_HOST_SHM_H

#include "segment.h"
#include "weft/error.h"

/* Those who make it together, and how they talk to each other; both are collective over them. */
typedef struct weft_host_shm_peers {
    int n, self;
    /* Everybody's `bytes` bytes in the order of peers: all [n * bytes]. */
    weft_status (*gather)(void *context, const void *own, int64_t bytes, void *all,
                          weft_error *error);
    /* All return the first failure together. */
    weft_status (*agree)(void *context, weft_error *error);
    void *context;
} weft_host_shm_peers;

typedef struct weft_host_shm {
    int n, self;   /* peers on this host, and which of them this is; n 0: there is no such memory */
    int *peers;    /* [n] ascending */
    char **memory; /* [n] of each: zeros at first, on a boundary of 4096 */
    int64_t bytes; /* of our own; others may have asked for more or less */
    char why[120]; /* n 0: it was asked for, and refused: by whom, and why */
} weft_host_shm;

/* weft_host_shm_make - `bytes` of our own, and everybody else's. It is no failure when there is none: then n is 0 on all
 * peers, and *near says why. Collective over the peers. */
weft_status weft_host_shm_make(weft_host_shm *near, const weft_host_shm_peers *peers, int64_t bytes,
                               weft_error *error);
/* weft_host_shm_free - what is zero is fine. Local: others may go on seeing what they have. */
void weft_host_shm_free(weft_host_shm *near);

#endif
