/* box_run.h: a piece of a tensor that lies in two boxes, as loops over runs that are contiguous in
 * both. */
#ifndef WEFT_BOX_RUN_H
#define WEFT_BOX_RUN_H

#include "weft/collectives.h"

typedef struct weft_box_run {
    int64_t from_at, to_at; /* the first element's place in each box                */
    int64_t run;            /* elements that are contiguous in both                 */
    int n_loops;            /* 0: the whole piece is one run                        */
    int64_t count[WEFT_MAX_DIMS], from_stride[WEFT_MAX_DIMS],
        to_stride[WEFT_MAX_DIMS]; /* innermost first */
} weft_box_run;

/* `piece` is not empty and lies in `from` and in `to`. A packed piece is a box of its own: pass it
 * twice. Local. */
void weft_box_run_make(weft_box_run *run, int n_dims, const weft_box *piece, const weft_box *from,
                       const weft_box *to);

/* Local. from, to: the whole boxes, contiguous; distinct memory. */
void weft_box_run_copy(const weft_box_run *run, char *to, const char *from, size_t element);
void weft_box_run_combine(const weft_box_run *run, char *to, const char *from, weft_combine combine,
                          weft_dtype dtype);

#endif
