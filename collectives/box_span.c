/* box_run: the loops that copy a piece between two boxes; see box_span.h. */
#include "box_span.h"

void weft_box_copy_make(weft_box_copy *run, int n_dims, const weft_box *piece, const weft_box *from,
                        const weft_box *to)
{
    *run = (weft_box_copy){.run = 1};
    int64_t from_stride = 1, to_stride = 1;
    for (int d = n_dims - 1; d >= 0; d--) {
        run->from_at += (piece->begin[d] - from->begin[d]) * from_stride;
        run->to_at += (piece->begin[d] - to->begin[d]) * to_stride;
        weft_box_copy_add(run, piece->end[d] - piece->begin[d], from_stride, to_stride);
        from_stride *= from->end[d] - from->begin[d];
        to_stride *= to->end[d] - to->begin[d];
    }
}
