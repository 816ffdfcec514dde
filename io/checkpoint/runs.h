/* runs.h (private): a box as the runs of neighbouring elements that it is in a larger, row-major box.
 *
 *     weft_box_runs runs = weft_box_runs_of(n_dims, &frame, &box);
 *     weft_box_runs_seek(&runs, begin);
 *     for (weft_box_cut cut; weft_box_runs_cut(&runs, begin, end, &cut);)
 *         copy cut.count elements between part + cut.inner and frame + cut.at
 *
 * Any range of the frame can be asked for at once, so many threads may each work on one of their own.
 */
#ifndef WEFT_CHECKPOINT_RUNS_H
#define WEFT_CHECKPOINT_RUNS_H

#include "weft/layout.h"

typedef struct weft_box_runs {
    int64_t count;   /* elements of each run               */
    int64_t n, next; /* runs in all; the one that comes next */
    int64_t first;   /* in the frame, of run 0             */
    int n_outer;     /* dims that step from run to run, innermost first: */
    int64_t size[WEFT_MAX_DIMS], stride[WEFT_MAX_DIMS], index[WEFT_MAX_DIMS];
    int64_t at; /* in the frame, of the next run */
} weft_box_runs;

/* What one run has of a range of the frame. */
typedef struct weft_box_cut {
    int64_t at;    /* in the frame */
    int64_t inner; /* in the box   */
    int64_t count;
} weft_box_cut;

/* All Local. box must lie in frame; dims that the box fills make longer runs. An empty box has no runs. */
weft_box_runs weft_box_runs_of(int n_dims, const weft_box *frame, const weft_box *box);
/* The next run will be the first that ends after `position` in the frame. */
void weft_box_runs_seek(weft_box_runs *runs, int64_t position);
/* The next run's part of [begin, end), where seek was given `begin`; false: there is none. */
bool weft_box_runs_cut(weft_box_runs *runs, int64_t begin, int64_t end, weft_box_cut *cut);
/* The box of a whole tensor. */
weft_box weft_box_whole(const weft_shape *shape);
bool weft_box_equal(const weft_box *a, const weft_box *b, int n_dims);

#endif
