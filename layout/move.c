/* move: which elements go from rank to rank in a conversion step: the one rule that the mover executes and
 * weft_convert_bytes counts.
 *
 * Along an axis that `from` splits, all ranks are asked: their boxes are disjoint, so each has its
 * part. Along an axis over which `from` is partial and `to` is not, all ranks are asked too: each
 * has a summand. Along any other axis the ranks hold the same elements, and a rank asks only those
 * that share its own coordinate. Where `to` is partial and `from` is not, every element counts once:
 * a split one where it is, a replicated one on coordinate 0. So a rank that already holds an element takes it from itself, and
 * every other element has exactly one sender (per summand), as near as the mesh's numbering can
 * tell.
 */
#include "weft/layout.h"

static bool asks_all_along(const weft_convert_step *step, int n_dims, int axis)
{
    if (step->to.partial >> axis & 1) return false;
    return weft_spec_state(&step->from, n_dims, axis) != WEFT_REPLICATED;
}

/* Whether the elements of a rank at this coordinate count, where the axis begins to be partial. */
static bool counts(const weft_convert_step *step, int n_dims, int axis, int coordinate)
{
    if (!((step->to.partial & ~step->from.partial) >> axis & 1)) return true;
    return coordinate == 0 || weft_spec_state(&step->from, n_dims, axis) != WEFT_REPLICATED;
}

bool weft_move_sends(const weft_mesh *mesh, const weft_shape *shape, const weft_convert_step *step,
                     int source_rank, int destination_rank, weft_box *piece)
{
    int source[WEFT_MAX_AXES], destination[WEFT_MAX_AXES];
    const int n_ranks = weft_mesh_n_ranks(mesh);
    if (shape == NULL || step == NULL || piece == NULL) return false;
    if (source_rank < 0 || source_rank >= n_ranks) return false;
    if (destination_rank < 0 || destination_rank >= n_ranks) return false;
    weft_mesh_coordinates(mesh, source_rank, source);
    weft_mesh_coordinates(mesh, destination_rank, destination);
    for (int a = 0; a < weft_mesh_n_axes(mesh); a++) {
        if (!counts(step, shape->n_dims, a, source[a])) return false;
        if (source[a] == destination[a]) continue;
        if (!(step->axes >> a & 1) || !asks_all_along(step, shape->n_dims, a)) return false;
    }
    weft_box held, wanted;
    weft_spec_box(&step->from, mesh, shape, source_rank, &held);
    weft_spec_box(&step->to, mesh, shape, destination_rank, &wanted);
    return weft_box_meet(&held, &wanted, shape->n_dims, piece) > 0;
}
