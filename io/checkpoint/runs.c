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
    const int64_t all = weft_box_count(box, n_dims);
    weft_box_runs runs = {.count = 1};
    if (all == 0) return runs;
    int64_t stride = 1;
    bool is_one_run = true; /* the dims seen so far, from the innermost, are filled */
    for (int d = n_dims - 1; d >= 0; d--) {
        const int64_t size = box->end[d] - box->begin[d], room = frame->end[d] - frame->begin[d];
        runs.first += (box->begin[d] - frame->begin[d]) * stride;
        if (is_one_run) {
            runs.count *= size;
        } else {
            runs.size[runs.n_outer] = size;
            runs.stride[runs.n_outer++] = stride;
        }
        is_one_run = is_one_run && size == room;
        stride *= room;
    }
    runs.n = all / runs.count;
    runs.at = runs.first;
    return runs;
}

/* Where run number `number` begins. Grows with the number. */
static int64_t place_of(const weft_box_runs *runs, int64_t number)
{
    int64_t at = runs->first;
    for (int d = 0; d < runs->n_outer; d++) {
        at += number % runs->size[d] * runs->stride[d];
        number /= runs->size[d];
    }
    return at;
}

void weft_box_runs_seek(weft_box_runs *runs, int64_t position)
{
    int64_t low = 0, high = runs->n;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (place_of(runs, middle) + runs->count <= position)
            low = middle + 1;
        else
            high = middle;
    }
    runs->next = low;
    runs->at = place_of(runs, low);
    for (int d = 0; d < runs->n_outer; d++) {
        runs->index[d] = low % runs->size[d];
        low /= runs->size[d];
    }
}

static void step(weft_box_runs *runs)
{
    runs->next++;
    for (int d = 0; d < runs->n_outer; d++) {
        runs->at += runs->stride[d];
        if (++runs->index[d] < runs->size[d]) break;
        runs->at -= runs->stride[d] * runs->size[d];
        runs->index[d] = 0;
    }
}

bool weft_box_runs_cut(weft_box_runs *runs, int64_t begin, int64_t end, weft_box_cut *cut)
{
    if (runs->next == runs->n || runs->at >= end) return false;
    const int64_t last = runs->at + runs->count;
    cut->at = runs->at > begin ? runs->at : begin;
    cut->inner = runs->next * runs->count + (cut->at - runs->at);
    cut->count = (last < end ? last : end) - cut->at;
    step(runs);
    return true;
}
