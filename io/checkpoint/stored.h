/* stored.h (private): one checkpoint on disk, opened: its manifest, and its data files block by
 * block. All Local. */
#ifndef WEFT_CHECKPOINT_STORED_H
#define WEFT_CHECKPOINT_STORED_H

#include "files.h"
#include "manifest.h"

#define WEFT_MANIFEST_NAME "manifest.json"
#define WEFT_DAMAGED_NAME                                                                          \
    "damaged" /* a file in a checkpoint that failed to restore: never tried again */

struct weft_stored {
    char path[WEFT_PATH_BYTES]; /* of its directory */
    weft_manifest *manifest;
    int *files; /* [n_files] descriptors */
};

/* The directory of one step, and nothing else. */
weft_status weft_stored_open_step(const char *path, weft_stored **stored, weft_error *error);
/* weft_stored_block - one block of an entry into buffer [WEFT_BLOCK_BYTES]; WEFT_CORRUPT when its
 * hash differs. */
weft_status weft_stored_block(const weft_stored *stored, const weft_entry *entry, int64_t block,
                              void *buffer, weft_error *error);
/* weft_stored_stretches - the same in stretches, given to body while they are in the core's cache, before it is known
 * whether the block is good. buffer [WEFT_STRETCH_BYTES]; begin, end: bytes of the tensor. */
enum { WEFT_STRETCH_BYTES = 256 << 10 };
typedef void (*weft_stretch)(const void *argument, const char *bytes, int64_t begin, int64_t end);
weft_status weft_stored_stretches(const weft_stored *stored, const weft_entry *entry, int64_t block,
                                  char *buffer, weft_stretch body, const void *argument,
                                  weft_error *error);
/* weft_structure_hash - of all bytes of a data file that lie in no tensor. */
weft_status weft_structure_hash(const weft_manifest *manifest, int file, int descriptor,
                                const char *path, weft_hash *hash, weft_error *error);
/* The same, of every file, against the manifest. */
weft_status weft_stored_check_structure(const weft_stored *stored, weft_error *error);

/* weft_steps_list - the steps in a directory, ascending, to be freed; none where it is not there. */
weft_status weft_steps_list(const char *directory, int64_t **steps, int *n, weft_error *error);
/* weft_newest_step - the newest below `below` that is not marked as damaged; -1: none.
 * n_damaged  out: how many are marked */
weft_status weft_newest_step(const char *directory, int64_t below, int64_t *newest, int *n_damaged,
                             weft_error *error);
weft_status weft_step_path(char *path, const char *directory, int64_t step, weft_error *error);
bool weft_step_is_damaged(const char *directory, int64_t step);

#endif
