/* runs.h (private): a box as the runs of neighbouring elements that it is in a larger, row-major
 * box.
 *
 *     weft_box_runs runs = weft_box_runs_of(n_dims, &frame, &box);
 *     for (int64_t at; weft_box_runs_next(&runs, &at); part += runs.count)
 *         copy runs.count elements between part and frame + at
 */
#ifndef WEFT_CHECKPOINT_RUNS_H
#define WEFT_CHECKPOINT_RUNS_H

#include "weft/layout.h"

typedef struct weft_box_runs {
    int64_t count; /* elements of each run */
    int64_t left;  /* runs still to come   */
    int n_outer;   /* dims that step from run to run: */
    int64_t size[WEFT_MAX_DIMS], stride[WEFT_MAX_DIMS], index[WEFT_MAX_DIMS];
    int64_t at; /* in the frame, of the next run */
} weft_box_runs;

/* All Local. box must lie in frame; dims that the box fills make longer runs. An empty box has no
 * runs. */
weft_box_runs weft_box_runs_of(int n_dims, const weft_box *frame, const weft_box *box);
bool weft_box_runs_next(weft_box_runs *runs, int64_t *at);
/* The box of a whole tensor. */
weft_box weft_box_whole(const weft_shape *shape);
bool weft_box_equal(const weft_box *a, const weft_box *b, int n_dims);

#endif
