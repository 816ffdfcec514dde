/* box_run: copying and combining a piece between two boxes; see box_run.h. */
#include "box_run.h"

#include <string.h>

/* Put the next dim outwards, `count` long, around what is there: into the run or a loop where it is
 * in line. */
static void add_dim(weft_box_run *r, int64_t count, int64_t from_stride, int64_t to_stride)
{
    if (count == 1) return;
    const int last = r->n_loops - 1;
    if (last < 0 && from_stride == r->run && to_stride == r->run) {
        r->run *= count;
    } else if (last >= 0 && from_stride == r->from_stride[last] * r->count[last] &&
               to_stride == r->to_stride[last] * r->count[last]) {
        r->count[last] *= count;
    } else {
        r->count[r->n_loops] = count;
        r->from_stride[r->n_loops] = from_stride;
        r->to_stride[r->n_loops] = to_stride;
        r->n_loops++;
    }
}

void weft_box_run_make(weft_box_run *run, int n_dims, const weft_box *piece, const weft_box *from,
                       const weft_box *to)
{
    *run = (weft_box_run){.run = 1};
    int64_t from_stride = 1, to_stride = 1;
    for (int d = n_dims - 1; d >= 0; d--) {
        run->from_at += (piece->begin[d] - from->begin[d]) * from_stride;
        run->to_at += (piece->begin[d] - to->begin[d]) * to_stride;
        add_dim(run, piece->end[d] - piece->begin[d], from_stride, to_stride);
        from_stride *= from->end[d] - from->begin[d];
        to_stride *= to->end[d] - to->begin[d];
    }
}

/* A place in the loops: the current run in both boxes. */
typedef struct walk {
    int64_t at[WEFT_MAX_DIMS], from, to;
} walk;

static bool next_run(const weft_box_run *r, walk *w)
{
    for (int l = 0; l < r->n_loops; l++) {
        w->from += r->from_stride[l];
        w->to += r->to_stride[l];
        if (++w->at[l] < r->count[l]) return true;
        w->from -= r->from_stride[l] * r->count[l];
        w->to -= r->to_stride[l] * r->count[l];
        w->at[l] = 0;
    }
    return false;
}

void weft_box_run_copy(const weft_box_run *run, char *to, const char *from, size_t element)
{
    walk w = {.from = run->from_at, .to = run->to_at};
    do
        memcpy(to + (size_t)w.to * element, from + (size_t)w.from * element,
               (size_t)run->run * element);
    while (next_run(run, &w));
}

void weft_box_run_combine(const weft_box_run *run, char *to, const char *from, weft_combine combine,
                          weft_dtype dtype)
{
    const size_t element = weft_dtype_bytes(dtype);
    walk w = {.from = run->from_at, .to = run->to_at};
    do
        weft_combine_into(combine, dtype, to + (size_t)w.to * element,
                          from + (size_t)w.from * element, run->run);
    while (next_run(run, &w));
}
