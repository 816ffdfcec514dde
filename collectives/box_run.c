/* box_run: the loops that copy a piece between two boxes; see box_run.h. */
#include "box_run.h"

/* Put the next dim outwards, `count` long, around what is there: into the run or a loop where it is
 * in line. */
static void add_dim(weft_box_copy *r, int64_t count, int64_t from_stride, int64_t to_stride)
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

void weft_box_copy_make(weft_box_copy *run, int n_dims, const weft_box *piece, const weft_box *from,
                        const weft_box *to)
{
    *run = (weft_box_copy){.run = 1};
    int64_t from_stride = 1, to_stride = 1;
    for (int d = n_dims - 1; d >= 0; d--) {
        run->from_at += (piece->begin[d] - from->begin[d]) * from_stride;
        run->to_at += (piece->begin[d] - to->begin[d]) * to_stride;
        add_dim(run, piece->end[d] - piece->begin[d], from_stride, to_stride);
        from_stride *= from->end[d] - from->begin[d];
        to_stride *= to->end[d] - to->begin[d];
    }
}
