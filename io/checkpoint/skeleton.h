/* skeleton.h (private): an HDF5 file whose datasets have places but no bytes yet. */
#ifndef WEFT_CHECKPOINT_SKELETON_H
#define WEFT_CHECKPOINT_SKELETON_H

#include "manifest.h"

/* weft_skeleton_lay - make the file `path` with one contiguous dataset for every entry of the
 * manifest's only file; fills each entry's offset. has_state: step, sample, seed, mesh and layout are attributes of the
 * root. WEFT_USAGE where HDF5 is not there. Local. */
weft_status weft_skeleton_lay(const char *path, weft_manifest *manifest, bool has_state,
                              weft_error *error);

/* weft_dataset_path - where an entry stands in the file: "/parameters/<name>",
 * "/slots/<variable>/<slot>". A '/' in a variable's own name would make a group of it, which may be
 * a dataset already: it is written %2F. Local. */
const char *weft_dataset_path(weft_arena *arena, const char *name, bool is_slot);

#endif
