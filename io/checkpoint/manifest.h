/* manifest.h (private): what a checkpoint says about itself: manifest.json, as structs and as text.
 *
 *     {"format": 1, "step": 1000, "sample": 64000, "seed": "1234", "mesh": "data:2", "layout": "batch:data",
 *      "data": "text: 300000 bytes (hash 5e1f0c2b9a3d4e77); seq: 64",
 *      "held_out": {"loss": 1.75, "of": "text: 20000 bytes (hash 0c2b9a3d4e775e1f); seq: 64"},
 *      "weft": "0.1.0", "program": "<16 digits>", "library": "<16 digits>", "block_bytes": 4194304,
 *      "files": [{"name": "state.h5", "bytes": 81920, "structure": "<hash of all bytes outside tensors>"}],
 *      "tensors": [{"name": "w", "kind": "parameter", "dtype": "f32", "dims": [["pixel", 784], ["hidden", 64]],
 *                   "dataset": "/parameters/w", "file": "state.h5", "offset": 4096, "bytes": 200704,
 *                   "hashes": ["<hash of its first 4 MiB>", ...]}],
 *      "hash": "<of this text, keys sorted, without spaces and without this member>"}
 *
 * Hashes are XXH3-128: they find accidents, not attacks, so every field is checked as if it were
 * hostile.
 */
#ifndef WEFT_CHECKPOINT_MANIFEST_H
#define WEFT_CHECKPOINT_MANIFEST_H

#include <jansson.h>

#include "hash.h"
#include "weft/arena.h"
#include "weft/checkpoint.h"

enum {
    WEFT_MANIFEST_FORMAT = 1,
    WEFT_BLOCK_BYTES = 4 << 20, /* of one hash */
    WEFT_MOST_FILES = 4096,
    WEFT_MOST_TENSORS = 1 << 20
};

typedef struct weft_entry {
    weft_stored_tensor tensor;
    const char *dataset; /* its path in the HDF5 file */
    weft_dtype dtype;
    int file; /* of manifest->files */
    int64_t n_blocks;
    weft_hash *blocks; /* [n_blocks] */
} weft_entry;

typedef struct weft_data_file {
    const char *name;
    int64_t bytes;
    weft_hash structure;
} weft_data_file;

typedef struct weft_manifest {
    weft_arena *arena; /* of all texts and arrays here */
    weft_checkpoint_state state;
    const char *mesh, *layout;
    const char *data;     /* what it has learned from (facts.h); "": not said */
    const char *held_out; /* what state.loss is of (facts.h); "": not said */
    const char *program,
        *library; /* digests, for people: which program and build wrote it; "": not said */
    int n_files, n_entries;
    weft_data_file *files;
    weft_entry *entries;
    int *by_name, *by_place; /* [n_entries] sorted by name; by (file, offset) */
} weft_manifest;

static inline int64_t weft_n_blocks(int64_t bytes)
{
    return (bytes + WEFT_BLOCK_BYTES - 1) / WEFT_BLOCK_BYTES;
}

/* Bytes of block `block` of an entry. */
static inline int64_t weft_block_bytes(const weft_entry *entry, int64_t block)
{
    const int64_t left = entry->tensor.bytes - block * WEFT_BLOCK_BYTES;
    return left < WEFT_BLOCK_BYTES ? left : WEFT_BLOCK_BYTES;
}

/* All Local. weft_manifest_sort fills by_name and by_place, made by the caller. */
void weft_manifest_sort(weft_manifest *manifest);
/* The entry of that name; NULL when there is none. */
const weft_entry *weft_manifest_find(const weft_manifest *manifest, const char *name);

/* weft_manifest_text - as it goes into the file; the caller frees it. */
weft_status weft_manifest_text(const weft_manifest *manifest, char **text, weft_error *error);
/* weft_manifest_seal - set the member "hash". False when out of memory. */
bool weft_manifest_seal(json_t *root);
/* weft_manifest_check_seal - whether a text's bytes have the hash that stands among them: nothing of Jansson has a part in it. */
weft_status weft_manifest_check_seal(const char *text, size_t bytes, bool *is_good,
                                     weft_error *error);

/* weft_manifest_parse - `path` is for sentences. WEFT_CORRUPT for everything that cannot be;
 * WEFT_USAGE for a format that a later Weft wrote. On failure *manifest is NULL. */
weft_status weft_manifest_parse(const char *text, size_t bytes, const char *path,
                                weft_manifest **manifest, weft_error *error);
void weft_manifest_destroy(weft_manifest **manifest);

#endif
