/* box: what a rank holds of a tensor.
 *
 * A dim that axes split is cut in nested ceil blocks, outermost axis first: with n ranks left to
 * cut an interval of length L, a block is ceil(L / n) and rank i takes [i * block, (i + 1) * block)
 * of it. So any length works on any mesh, late ranks may hold nothing, and taking the innermost
 * axis away joins exactly the boxes of its ranks.
 */
#include "weft/layout.h"

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

void weft_spec_box(const weft_spec *spec, const weft_mesh *mesh, const weft_shape *shape, int rank,
                   weft_box *box)
{
    int coordinates[WEFT_MAX_AXES];
    weft_mesh_coordinates(mesh, rank, coordinates);
    *box = (weft_box){{0}, {0}};
    for (int d = 0; d < shape->n_dims; d++) {
        box->end[d] = shape->dims[d].size;
        for (int i = 0; i < spec->n_split[d]; i++) {
            int axis = spec->split[d][i];
            cut(&box->begin[d], &box->end[d], coordinates[axis], weft_mesh_axis_size(mesh, axis));
        }
    }
}

int64_t weft_box_count(const weft_box *box, int n_dims)
{
    int64_t count = 1;
    for (int d = 0; d < n_dims; d++)
        if (__builtin_mul_overflow(count, box->end[d] - box->begin[d], &count)) count = INT64_MAX;
    return count;
}

int64_t weft_box_meet(const weft_box *a, const weft_box *b, int n_dims, weft_box *common)
{
    bool is_empty = false;
    *common = (weft_box){{0}, {0}};
    for (int d = 0; d < n_dims; d++) {
        int64_t begin = a->begin[d] > b->begin[d] ? a->begin[d] : b->begin[d];
        int64_t end = a->end[d] < b->end[d] ? a->end[d] : b->end[d];
        if (end < begin) end = begin;
        common->begin[d] = begin;
        common->end[d] = end;
        is_empty = is_empty || begin == end;
    }
    return is_empty ? 0 : weft_box_count(common, n_dims);
}
