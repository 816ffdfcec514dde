/* checkpoint.h: a run's state on disk, written once, restored onto any mesh, layout, ZeRO stage and launcher.
 *
 *     WEFT_TRY(weft_checkpoints_open("runs/gpt/ckpt", &options, &checkpoints, error));
 *     WEFT_TRY(weft_checkpoints_restore(checkpoints, program, WEFT_NEWEST, &state, error));   state.step 0: none there
 *     for (int64_t step = state.step + 1; step <= steps; step++) {
 *         ... weft_dataset_next, weft_run ...
 *         if (step % 100 == 0) WEFT_TRY(weft_checkpoints_save(checkpoints, program, &state, error));
 *         WEFT_TRY(weft_checkpoints_poll(checkpoints, error));
 *     }
 *     WEFT_TRY(weft_checkpoints_wait(checkpoints, error));
 *
 * A checkpoint is a directory, step_00001000, of HDF5 data files and a JSON manifest (docs/reliability.md). It appears under
 * that name only when every byte of it has reached the disk, so a crash at any moment leaves the one before.
 */
#ifndef WEFT_CHECKPOINT_H
#define WEFT_CHECKPOINT_H

#include "weft/io.h"
#include "weft/program.h"

WEFT_BEGIN

typedef struct weft_checkpoints weft_checkpoints; /* opaque: the checkpoints of one run */

typedef struct weft_checkpoint_options {
    int keep; /* how many committed ones stay; below 2 means 2 */
    /* save NaN and Inf too; else such a save is refused (WEFT_NONFINITE) */
    bool allow_nonfinite;
    /* weft_checkpoints_save returns when it is committed; needs no copy of the state */
    bool is_synchronous;
    /* what is learned from: weft_dataset_facts, which is copied. Each checkpoint says it, and one that says other data is not restored
     * (WEFT_USAGE, with what it was and what it is), unless other_data; NULL: nothing is said and nothing compared */
    const char *data;
    bool other_data; /* go on with other data, from its first sample */
    /* what `data` was said of, borrowed until they are closed: a text that is the one before with more behind it is told so; NULL: that is
     * not looked at */
    const weft_dataset *dataset;
    /* besides the newest, that of the lowest loss stays (weft_checkpoint_state.loss), of those that say their loss of `held_out` */
    bool keep_best;
    /* what the losses of saved states are of, in words as weft_dataset_facts has them, copied; NULL: nothing is said */
    const char *held_out;
} weft_checkpoint_options;

/* The state that continues besides the variables. */
typedef struct weft_checkpoint_state {
    int64_t step;   /* runs done: weft_runs                              */
    int64_t sample; /* next global sample: weft_dataset_position; restored for other data: 0 */
    uint64_t seed;  /* of the graph                                       */
    /* the loss of data that nothing is learned from, after that step: finite, where has_loss is not 0; else it was not measured */
    double loss;
    int has_loss;
} weft_checkpoint_state;

enum { WEFT_NEWEST = -1 };

/* weft_checkpoints_open - Collective over the mesh of the program that will be saved. Makes the directory if need be; removes what
 * an interrupted save left. returns WEFT_IO when it cannot be written. options NULL: defaults. */
WEFT_API WEFT_MUST_CHECK weft_status weft_checkpoints_open(const char *directory,
                                                           const weft_checkpoint_options *options,
                                                           weft_checkpoints **checkpoints,
                                                           weft_error *error);
/* Gives up a save under way: call weft_checkpoints_wait first. */
WEFT_API void weft_checkpoints_close(weft_checkpoints **checkpoints);

/* weft_checkpoints_can_save - whether HDF5 is there, which a process's first save loads: this loads it too. Local.
 *
 * returns  WEFT_USAGE when it is not, or is another than the one we were built for: the sentence names what gives it */
WEFT_API WEFT_MUST_CHECK weft_status weft_checkpoints_can_save(weft_error *error);
/* weft_checkpoints_save - all variables and slots of `program`, and `state`. Collective over the mesh.
 *
 * Copies and writes in a thread; waits first for a save that is still under way. Until it has copied, a run waits before
 * its first step that writes a variable, and so do weft_write, weft_checkpoints_restore and weft_program_destroy; through
 * memory from weft_local, write variables only after weft_checkpoints_wait. Ranks that hold copies share the writing.
 * Never committed: replicas whose bytes differ (names the rank and the variable), NaN or Inf unless allowed; this, the next
 * poll or wait reports it. Refused at once: steps that differ between processes. An earlier save that failed in its
 * thread is reported here, and nothing new is begun. HDF5 is loaded by
 * the first save of a process; WEFT_USAGE where it is not there. */
WEFT_API WEFT_MUST_CHECK weft_status weft_checkpoints_save(weft_checkpoints *checkpoints,
                                                           weft_program *program,
                                                           const weft_checkpoint_state *state,
                                                           weft_error *error);
/* weft_checkpoints_poll - let a save go on to its next phase, up to its commit. Collective over the mesh; cheap; once a step. */
WEFT_API WEFT_MUST_CHECK weft_status weft_checkpoints_poll(weft_checkpoints *checkpoints,
                                                           weft_error *error);
/* weft_checkpoints_is_saving - whether a save has begun that is not committed yet. Local. */
WEFT_API bool weft_checkpoints_is_saving(const weft_checkpoints *checkpoints);
/* weft_checkpoints_wait - until the last save is committed; its mesh must live until then. Collective over the mesh. */
WEFT_API WEFT_MUST_CHECK weft_status weft_checkpoints_wait(weft_checkpoints *checkpoints,
                                                           weft_error *error);

/* weft_checkpoints_restore - fill the program's variables; each rank reads its own boxes only, and checks hashes while it reads.
 * Collective over the mesh.
 *
 * step     WEFT_NEWEST: the newest good one; a damaged one is marked (a file `damaged` in it with the reason) and the one
 *          before is taken. A number: that one or an error.
 * state    out; all zero when there is no checkpoint (only with WEFT_NEWEST)
 * returns  WEFT_USAGE when variables or the data do not fit (name, both shapes): they are as they were; WEFT_CORRUPT when none that
 *          is there can be restored: then variables hold anything */
WEFT_API WEFT_MUST_CHECK weft_status weft_checkpoints_restore(weft_checkpoints *checkpoints,
                                                              weft_program *program, int64_t step,
                                                              weft_checkpoint_state *state,
                                                              weft_error *error);
/* Damage that the last restore found: a line for each, with the reason; "" for nothing. Borrowed. Local. */
WEFT_API const char *weft_checkpoints_skipped(const weft_checkpoints *checkpoints);
/* A note about the data of the last restore: that it is other data (options.other_data), or that the checkpoint does
 * not name its data, as earlier versions did not. "": it is the same, or options.data was not given. Borrowed.
 * Local. */
WEFT_API const char *weft_checkpoints_data(const weft_checkpoints *checkpoints);

/* weft_check_replicas - hash replicated variables on all their holders; names the odd rank and the variable.
 * Collective over the mesh. */
WEFT_API WEFT_MUST_CHECK weft_status weft_check_replicas(weft_program *program, weft_error *error);

/* ---- looking at checkpoints on disk: no program, no mesh. All Local. ------------------------------------------- */

typedef struct weft_stored_tensor {
    const char *name, *dtype;
    weft_shape shape;
    const char *file; /* within the checkpoint's directory */
    int64_t offset, bytes;
    bool is_slot;
} weft_stored_tensor;
typedef struct weft_stored weft_stored; /* opaque: one checkpoint on disk */

/* path: a step_... directory, or a directory of them, or a run directory (the newest then). Reads and checks the manifest. */
WEFT_API WEFT_MUST_CHECK weft_status weft_stored_open(const char *path, weft_stored **stored,
                                                      weft_error *error);
WEFT_API void weft_stored_close(weft_stored **stored);
/* Of NULL, and of an index that is not there, the following say "", 0 or NULL. */
WEFT_API const char *weft_stored_path(const weft_stored *stored);
WEFT_API void weft_stored_state(const weft_stored *stored, weft_checkpoint_state *state);
WEFT_API const char *weft_stored_mesh(const weft_stored *stored);
WEFT_API const char *weft_stored_layout(const weft_stored *stored);
/* The data it has learned from */
WEFT_API const char *weft_stored_data(const weft_stored *stored);
/* The data of its state's loss: weft_checkpoint_options.held_out; "": it has none, or that is not said */
WEFT_API const char *weft_stored_held_out(const weft_stored *stored);
/* Digests of the program and of the build of Weft that wrote it, 16 digits; "" where they are not said. */
WEFT_API const char *weft_stored_program(const weft_stored *stored);
WEFT_API const char *weft_stored_library(const weft_stored *stored);
WEFT_API int weft_stored_n_tensors(const weft_stored *stored);
WEFT_API const weft_stored_tensor *weft_stored_tensor_at(const weft_stored *stored, int index);
/* Whole tensor, hashes checked; buffer [tensor->bytes]. */
WEFT_API WEFT_MUST_CHECK weft_status weft_stored_read(const weft_stored *stored, int index,
                                                      void *buffer, weft_error *error);
/* weft_stored_export - all tensors as one HDF5 file, on the disk when this returns; a file of that name is replaced.
 *
 * Every tensor is one contiguous dataset, /parameters/<name> or /slots/<variable>/<slot>, its dims the attribute "dims";
 * step, sample, seed, mesh and layout are attributes of the root. Hashes are checked. WEFT_USAGE where HDF5 is not there */
WEFT_API WEFT_MUST_CHECK weft_status weft_stored_export(const weft_stored *stored, const char *path,
                                                        weft_error *error);
/* Every hash of every file. WEFT_CORRUPT names file, tensor and block. */
WEFT_API WEFT_MUST_CHECK weft_status weft_stored_verify(const weft_stored *stored,
                                                        weft_error *error);
/* The steps in a directory of checkpoints, ascending; returns how many there are, fills at most `room`. -1: it is there
 * and cannot be listed (errno). */
WEFT_API int weft_stored_steps(const char *directory, int64_t *steps, int room);
/* weft_stored_best - of the steps in a directory the state of the one with the lowest loss, of equal ones the first. Steps that are marked
 * as damaged do not count, nor do losses of other data than `held_out`; NULL: of other data than the newest loss there. It reads each
 * manifest. returns false where there is none: then best is all zero */
WEFT_API bool weft_stored_best(const char *directory, const char *held_out,
                               weft_checkpoint_state *best);

WEFT_END

#endif
