/* save.h (private): one save under way, from the step boundary to the rename that makes it be.
 *
 * Phases, each run by one thread a process while the program goes on. First, copy the variables, which the program
 * holds unchanged until then, and write and fsync them, hashing each block that is whole here. When all processes
 * have, hash a share of the other blocks from the disk. At the root, write the manifest and rename. Between phases
 * and at the end, processes agree (weft_checkpoints_poll). The thread makes no call that another process must answer;
 * alone there is nobody to agree with, and it goes through all phases.
 */
#ifndef WEFT_CHECKPOINT_SAVE_H
#define WEFT_CHECKPOINT_SAVE_H

#include <pthread.h>
#include "sync.h"

#include "../facts.h"
#include "files.h"
#include "frame.h"
#include "snapshot_guard.h"
#include "manifest.h"
#include "snapshot.h"

#define WEFT_STATE_FILE "state.h5"

/* After the name of a step. Open removes the one; the other is what a new save of the same step
 * takes the place of, and open brings it back when the step is missing. */
#define WEFT_LEFT_OVER ".tmp"
#define WEFT_ASIDE     ".old"

typedef struct weft_save {
    weft_snapshot snapshot;
    weft_peers peers;
    const weft_shared *shared; /* n 0: each process writes its own parts */
    weft_manifest *manifest;
    char temporary[WEFT_PATH_BYTES]; /* the directory until it is renamed */
    char path[WEFT_PATH_BYTES];      /* of the data file in it            */
    int file;
    int64_t n_blocks;  /* of all tensors, in the order of the manifest                      */
    weft_hash *hashes; /* [n_blocks] entries point into it; zero: nobody has hashed it yet  */
    weft_hash *own;    /* [n_blocks] what this process has hashed in this phase; else zero  */
    int n_copying;     /* threads while the program is held; it is soon over */
    int n_threads;     /* threads after that                                  */

    weft_snapshot_guard guard; /* the program's variables, until is_taken */
    pthread_mutex_t lock;
    pthread_cond_t taken;
    bool is_taken;

    int phase;
    pthread_t thread;
    bool has_thread;
    _Atomic bool is_done, is_cancelled;
    weft_error error; /* of the thread */
} weft_save;

struct weft_checkpoints {
    char directory[WEFT_PATH_BYTES];
    weft_checkpoint_options options;
    weft_save *save;           /* NULL: none under way; the same on every process */
    const weft_device *device; /* that it was taken of */
    char *staging;             /* kept for the next save */
    int64_t staging_bytes;
    /* instead of staging, where ranks of several processes have rows of one tensor */
    weft_shared shared;
    weft_frame frame;                /* of the last save's data file */
    char skipped[1024];              /* by the last restore */
    char data[WEFT_FACTS_BYTES];     /* of the options; "": not said */
    char held_out[WEFT_FACTS_BYTES]; /* of the options; "": not said */
    char told[600];                  /* of the data, by the last restore */
};

/* weft_save_start - everything up to the first phase. Collective over the mesh. */
weft_status weft_save_start(weft_checkpoints *checkpoints, weft_program *program,
                            const weft_checkpoint_state *state, weft_error *error);
/* weft_save_advance - the phase is over on all processes: begin the next, or commit. Collective
 * over the mesh. */
weft_status weft_save_advance(weft_checkpoints *checkpoints, weft_error *error);
/* Wait for this process's thread. Local. */
void weft_save_join(weft_save *save);
/* Give up a save, or free one that is committed. Collective, except when is_alone: then what is on
 * disk stays for the next open to remove. */
void weft_save_free(weft_checkpoints *checkpoints, bool is_alone);
/* Give back what was kept for the next save. Local. */
void weft_staging_free(weft_checkpoints *checkpoints);

/* The phases' work. All Local, on the save's thread. */
weft_status weft_save_write(weft_save *save, weft_error *error);
weft_status weft_save_hash_rest(weft_save *save, weft_error *error);
/* Whether some block is not hashed yet: the same on all processes, once they have told each other. */
bool weft_save_has_rest(const weft_save *save);
/* weft_save_publish - manifest, rename, and old ones removed; nothing but at the root. */
weft_status weft_save_publish(weft_checkpoints *checkpoints, weft_error *error);

#endif
