/* box: what a rank holds of a tensor.
 *
 * A dim that axes split is cut in nested ceil blocks, outermost axis first. With n ranks left to cut an interval of
 * length L, a block is ceil(L / n) and rank i takes [i * block, (i + 1) * block) of it. So any length works on any
 * mesh, late ranks may hold nothing, and taking the innermost axis away joins exactly the boxes of its ranks.
 */
#include "clamp.h"

/* [*begin, *end) becomes the part of its `index`-th of `n` blocks. */
static void cut(int64_t *begin, int64_t *end, int64_t index, int64_t n)
{
    int64_t length = *end - *begin, block = length / n + (length % n != 0);
    /* index * block is below length + n, n a mesh size: no overflow. */
    int64_t first = index * block < length ? index * block : length;
    int64_t last = length - first < block ? length : first + block;
    *end = *begin + last;
    *begin += first;
}

/* Where the rank is on each axis is asked for the first dim that is split: most dims are not. */
void weft_spec_box(const weft_spec *spec, const weft_mesh *mesh, const weft_shape *shape, int rank,
                   weft_box *box)
{
    int coordinates[WEFT_MAX_AXES], n_axes = 0;
    if (box == NULL) return;
    *box = (weft_box){{0}, {0}};
    if (spec == NULL || rank < 0 || rank >= weft_mesh_n_ranks(mesh)) return;
    for (int d = 0; d < weft_dims_of(shape); d++) {
        const weft_window *window = weft_window_of(spec, d);
        box->end[d] = window != NULL ? window->lead : weft_size_of(shape, d);
        for (int i = 0; i < weft_splits_of(spec, d); i++) {
            const int axis = spec->split[d][i];
            if (n_axes == 0) weft_mesh_coordinates(mesh, rank, coordinates);
            n_axes = weft_mesh_n_axes(mesh);
            if (axis < 0 || axis >= n_axes) continue; /* no axis of this mesh */
            cut(&box->begin[d], &box->end[d], coordinates[axis], weft_mesh_axis_size(mesh, axis));
        }
        if (window != NULL)
            weft_window_image(window, weft_size_of(shape, d), &box->begin[d], &box->end[d]);
    }
}

int64_t weft_box_count(const weft_box *box, int n_dims)
{
    int64_t count = 1;
    if (box == NULL) return 0;
    for (int d = 0; d < weft_within(n_dims, WEFT_MAX_DIMS); d++) {
        int64_t size;
        if (box->end[d] <= box->begin[d]) return 0;
        if (__builtin_sub_overflow(box->end[d], box->begin[d], &size)) size = INT64_MAX;
        if (__builtin_mul_overflow(count, size, &count)) count = INT64_MAX;
    }
    return count;
}

int64_t weft_box_meet(const weft_box *a, const weft_box *b, int n_dims, weft_box *common)
{
    bool is_empty = false;
    if (common == NULL) return 0;
    *common = (weft_box){{0}, {0}};
    if (a == NULL || b == NULL) return 0;
    for (int d = 0; d < weft_within(n_dims, WEFT_MAX_DIMS); d++) {
        int64_t begin = a->begin[d] > b->begin[d] ? a->begin[d] : b->begin[d];
        int64_t end = a->end[d] < b->end[d] ? a->end[d] : b->end[d];
        if (end < begin) end = begin;
        common->begin[d] = begin;
        common->end[d] = end;
        is_empty = is_empty || begin == end;
    }
    return is_empty ? 0 : weft_box_count(common, n_dims);
}
