/* snapshot.h (private): a program's variables as they are now: copied, and checked while they are.
 */
#ifndef WEFT_CHECKPOINT_SNAPSHOT_H
#define WEFT_CHECKPOINT_SNAPSHOT_H

#include "hash.h"
#include "peers.h"
#include "weft/program.h"

/* A part of one tensor that this process writes. With all ranks here it is the whole tensor, put
 * together from their boxes, so that the file is written in long runs; else the box of the one
 * rank, if no lower rank has the same. */
typedef struct weft_part {
    weft_box box;
    int64_t at, bytes; /* in the staging memory; bytes 0: not ours */
} weft_part;

/* What one rank says of its box of one variable. */
typedef struct weft_replica {
    weft_hash hash;    /* of its bytes; zero when no other rank has this box */
    int32_t owner;     /* the lowest rank with the same box */
    int32_t is_shared; /* another rank has it too */
} weft_replica;

typedef struct weft_snapshot {
    weft_program *program;
    int n; /* variables */
    weft_value *variables;
    weft_part *pieces; /* [n] */
    int64_t bytes;     /* of all pieces */
    bool allow_nonfinite;
    weft_replica *replicas; /* [local ranks, n] */
    weft_error *errors;     /* [local ranks] */
    char *staging;          /* [bytes], borrowed; NULL: nothing is copied, only hashed */
} weft_snapshot;

/* Finds the variables and the pieces. Local. */
weft_status weft_snapshot_plan(weft_program *program, weft_snapshot *snapshot, weft_error *error);
void weft_snapshot_free(weft_snapshot *snapshot);
/* weft_snapshot_take - fill the staging memory and the replicas; each local rank on its thread.
 * WEFT_NONFINITE names variable, element and rank. Local. */
weft_status weft_snapshot_take(weft_snapshot *snapshot, weft_error *error);
/* weft_snapshot_compare - WEFT_CORRUPT when a replica differs, the same on every process.
 * Collective over the mesh. */
weft_status weft_snapshot_compare(const weft_snapshot *snapshot, const weft_peers *peers,
                                  weft_error *error);

#endif
