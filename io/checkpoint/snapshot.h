/* snapshot.h (private): a program's variables as they are now: checked, and copied if they will change.
 */
#ifndef WEFT_CHECKPOINT_SNAPSHOT_H
#define WEFT_CHECKPOINT_SNAPSHOT_H

#include "hash.h"
#include "peers.h"
#include "shared.h"
#include "weft/program.h"

/* What one rank says of its box of one variable. */
typedef struct weft_replica {
    weft_hash hash;    /* of its bytes; zero when no other rank has this box */
    int32_t owner;     /* the lowest rank with the same box */
    int32_t is_shared; /* another rank has it too */
} weft_replica;

/* One local rank's box of one variable, and what of it this process writes. */
typedef struct weft_snapshot_part {
    const char *memory; /* the rank's; NULL: its box is empty, or only the device sees it */
    int64_t bytes;      /* of it                                            */
    weft_box box;       /* what is written: one range of that memory,       */
    int64_t begin, end; /* in bytes; equal: nothing                         */
    int64_t at;         /* of that range in the staging memory              */
    const char *from;   /* where it is read when it is written, row-major over the box */
    int64_t chunk;      /* its first, counted over all parts                */
} weft_snapshot_part;

typedef struct weft_snapshot {
    weft_program *program;
    weft_mesh *mesh;
    int n;       /* variables   */
    int n_local; /* local ranks */
    weft_value *variables;
    char **names;              /* [n] copies: the graph may be gone when replicas are compared */
    weft_snapshot_part *parts; /* [n, n_local] */
    weft_replica *replicas;    /* [n_local, n] */
    int *order;                /* [n] the variables as they are taken: as the program writes them */
    weft_hash *chunks;         /* [n_chunks] of replicas */
    int64_t n_chunks;
    int64_t bytes; /* to write, each part on a boundary of 64 */
    bool has_rows; /* some part lies in its tensor in more than one piece */
    /* [n, n_seen] all parts whose bytes can be read here: ours, or those of this host */
    weft_snapshot_part *seen;
    int n_seen;
    bool allow_nonfinite;
    bool is_open;  /* the variables can be read where they lie; else there has to be staging */
    char *staging; /* [bytes], borrowed; NULL: nothing is copied */
    /* [n] chunks of a variable that are still to be taken; called when it is the last: on any thread */
    _Atomic int64_t *left;
    void (*tell)(void *told);
    void *told;
} weft_snapshot;

/* Finds the variables and the parts. Local. */
weft_status weft_snapshot_plan(weft_program *program, weft_snapshot *snapshot, weft_error *error);
void weft_snapshot_free(weft_snapshot *snapshot);
/* weft_snapshot_take - look at all of it, hash replicas, fill the staging memory. WEFT_NONFINITE names variable,
 * element and rank. Local; on any thread, as long as nobody writes the variables. */
weft_status weft_snapshot_take(weft_snapshot *snapshot, int n_threads, weft_error *error);
/* Whether the variable has been taken whose memory on a local rank begins there. Local; any thread. */
bool weft_snapshot_has_taken(const weft_snapshot *snapshot, const void *memory);
/* weft_snapshot_compare - WEFT_CORRUPT when a replica differs, the same on every process. Collective over the mesh. */
weft_status weft_snapshot_compare(const weft_snapshot *snapshot, const weft_peers *peers,
                                  weft_error *error);
/* weft_snapshot_see - what will be written from where: our parts, or with shared staging memory those of all its
 * processes. After staging is set. Local. */
weft_status weft_snapshot_see(weft_snapshot *snapshot, const weft_shared *shared,
                              weft_error *error);

#endif
