/* runs: a box as the runs of neighbouring elements that it is in a larger, row-major box. */
#include "runs.h"

weft_box weft_box_whole(const weft_shape *shape)
{
    weft_box whole = {{0}, {0}};
    for (int d = 0; d < shape->n_dims; d++)
        whole.end[d] = shape->dims[d].size;
    return whole;
}

bool weft_box_equal(const weft_box *a, const weft_box *b, int n_dims)
{
    for (int d = 0; d < n_dims; d++)
        if (a->begin[d] != b->begin[d] || a->end[d] != b->end[d]) return false;
    return true;
}

weft_box_runs weft_box_runs_of(int n_dims, const weft_box *frame, const weft_box *box)
{
    weft_box_runs runs = {.count = 1, .left = weft_box_count(box, n_dims)};
    if (runs.left == 0) return runs;
    int64_t stride = 1;
    bool is_one_run = true; /* the dims seen so far, from the innermost, are filled */
    for (int d = n_dims - 1; d >= 0; d--) {
        const int64_t size = box->end[d] - box->begin[d], room = frame->end[d] - frame->begin[d];
        runs.at += (box->begin[d] - frame->begin[d]) * stride;
        if (is_one_run) {
            runs.count *= size;
        } else {
            runs.size[runs.n_outer] = size;
            runs.stride[runs.n_outer++] = stride;
        }
        is_one_run = is_one_run && size == room;
        stride *= room;
    }
    runs.left /= runs.count;
    return runs;
}

bool weft_box_runs_next(weft_box_runs *runs, int64_t *at)
{
    if (runs->left == 0) return false;
    runs->left--;
    *at = runs->at;
    for (int d = 0; d < runs->n_outer; d++) { /* innermost first */
        runs->at += runs->stride[d];
        if (++runs->index[d] < runs->size[d]) break;
        runs->at -= runs->stride[d] * runs->size[d];
        runs->index[d] = 0;
    }
    return true;
}
