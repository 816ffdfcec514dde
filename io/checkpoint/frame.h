/* frame.h (private): what a data file holds between its tensors, kept so that the next save of the same tensors can lay
 * it without HDF5: that takes a tenth of a millisecond for every tensor, while the program waits. */
#ifndef WEFT_CHECKPOINT_FRAME_H
#define WEFT_CHECKPOINT_FRAME_H

#include "manifest.h"

typedef struct weft_frame {
    bool is_kept;
    weft_hash key;    /* of names, dtypes and dims of all tensors, in order */
    int64_t *offsets; /* [n] of the tensors in the file                     */
    int64_t bytes;    /* of the file                                        */
    /* what lies between the tensors, one after the other; NULL: another process has it */
    char *gaps;
} weft_frame;

/* All Local. Whether the frame is of these tensors. */
bool weft_frame_fits(const weft_frame *frame, const weft_manifest *manifest);
/* weft_frame_keep - of a file that has been laid. file -1: offsets only. */
weft_status weft_frame_keep(weft_frame *frame, const weft_manifest *manifest, int file,
                            const char *path, weft_error *error);
/* weft_frame_place - offsets and bytes, into the manifest. */
void weft_frame_place(const weft_frame *frame, weft_manifest *manifest);
/* weft_frame_lay - the file again, under another name; the manifest has been placed and sorted. */
weft_status weft_frame_lay(const weft_frame *frame, const weft_manifest *manifest, const char *path,
                           weft_error *error);
void weft_frame_drop(weft_frame *frame);

#endif
