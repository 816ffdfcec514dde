/* views: where tensors are that lie in the memory of others. See views.h. */
#include "views.h"

#include <string.h>

weft_view_kind weft_view_kind_of(const weft_node *node)
{
    if (node->op == &weft_op_rename || node->op == &weft_op_reshape) return WEFT_VIEW_SHAPE;
    if (node->op == &weft_op_slice || node->op == &weft_op_concat) return WEFT_VIEW_PART;
    if (node->op == &weft_op_scan_each || node->op == &weft_op_scan_stack) return WEFT_VIEW_TRIP;
    return WEFT_VIEW_NONE;
}

static const weft_node *node_of(const weft_plan *plan, uint32_t placed)
{
    return &plan->graph->nodes[plan->placed[placed].through];
}

bool weft_is_view(const weft_plan *plan, uint32_t placed)
{
    while (plan->placed[placed].shares != 0 && plan->placed[placed].through == 0)
        placed = plan->placed[placed].shares;
    return plan->placed[placed].through != 0;
}

bool weft_is_within(const weft_plan *plan, uint32_t within, uint32_t placed)
{
    while (within != placed && plan->placed[within].shares != 0)
        within = plan->placed[within].shares;
    return within == placed;
}

int weft_count_moves(const weft_plan *plan, uint32_t placed)
{
    int n = 0;
    for (; placed != 0; placed = plan->placed[placed].shares)
        n += plan->placed[placed].through != 0 &&
             weft_view_kind_of(node_of(plan, placed)) == WEFT_VIEW_TRIP;
    return n;
}

/* ---- contiguous -------------------------------------------------------------------------------- */

/* The dim of the larger tensor of which a slice or an operand of a concat has a part. */
static const char *dim_of_part(const weft_node *node)
{
    return ((const weft_slice_attributes *)node->attributes)->dim;
}

/* The tensor of which it is a part: a slice's operand, or a concat's result. */
static bool is_outermost(const weft_plan *plan, const weft_node *node, uint32_t whole)
{
    const weft_shape *shape = &plan->placed[whole].type.shape;
    const int dim = weft_shape_find(shape, dim_of_part(node));
    for (int d = 0; d < dim; d++)
        if (shape->dims[d].size != 1) return false;
    return true;
}

bool weft_is_contiguous(const weft_plan *plan, uint32_t placed)
{
    for (uint32_t whole; (whole = plan->placed[placed].shares) != 0; placed = whole) {
        if (plan->placed[placed].through == 0) continue;
        const weft_node *node = node_of(plan, placed);
        if (weft_view_kind_of(node) == WEFT_VIEW_PART && !is_outermost(plan, node, whole))
            return false;
    }
    return true;
}

/* ---- on one rank ------------------------------------------------------------------------------- */

static void lie_contiguous(const weft_view *view, weft_lie *lie)
{
    int64_t stride = 1;
    for (int d = view->shape.n_dims - 1; d >= 0; d--) {
        lie->stride[d] = stride;
        stride *= weft_view_size(view, d);
    }
}

/* Dims of the same elements go one by one; those of size 1 are anywhere. Other shapes are of what is contiguous alone. */
static void lie_in_shape(const weft_view *view, const weft_view *whole, weft_lie *lie)
{
    weft_lie of = *lie;
    int k = 0;
    for (int d = 0; d < view->shape.n_dims; d++) {
        lie->stride[d] = 0;
        if (view->shape.dims[d].size == 1) continue;
        while (k < whole->shape.n_dims && whole->shape.dims[k].size == 1)
            k++;
        if (k == whole->shape.n_dims || whole->shape.dims[k].size != view->shape.dims[d].size) {
            lie_contiguous(view, lie);
            return;
        }
        lie->stride[d] = of.stride[k++];
    }
}

/* As the kernels of slice and concat find it: operand i of a concat begins i parts further. */
static int64_t begin_of_part(const weft_plan *plan, const weft_node *node, uint32_t placed, int dim,
                             const weft_view *view, const weft_view *whole)
{
    const weft_slice_attributes *attributes = node->attributes;
    const bool is_second = node->op == &weft_op_concat && plan->placed[placed].value != node->in[0];
    const int64_t first = node->op == &weft_op_slice || is_second ? attributes->begin : 0;
    return first + view->box.begin[dim] - whole->box.begin[dim];
}

static void move_by_trip(const weft_plan *plan, const weft_node *node, int64_t bytes, weft_lie *lie)
{
    const weft_scan_attributes *attributes = weft_scan_of(node);
    const int64_t trips = plan->graph->scans[attributes->scan].trips;
    lie->move[lie->n_moves].scan = (uint32_t)attributes->scan;
    lie->move[lie->n_moves++].bytes = attributes->is_reversed ? -bytes : bytes;
    if (attributes->is_reversed) lie->begin += (trips - 1) * bytes;
}

/* `lie` is that of what it shares. */
static void lie_through(const weft_plan *plan, uint32_t placed, int rank, weft_lie *lie)
{
    const weft_node *node = node_of(plan, placed);
    const int64_t bytes = (int64_t)weft_dtype_bytes(plan->placed[placed].type.dtype);
    weft_view view, whole;
    weft_placed_view(plan, placed, rank, &view);
    weft_placed_view(plan, plan->placed[placed].shares, rank, &whole);
    if (weft_view_kind_of(node) == WEFT_VIEW_SHAPE) {
        lie_in_shape(&view, &whole, lie);
    } else if (weft_view_kind_of(node) == WEFT_VIEW_PART) {
        const int dim = weft_shape_find(&whole.shape, dim_of_part(node));
        lie->begin +=
            bytes * lie->stride[dim] * begin_of_part(plan, node, placed, dim, &view, &whole);
    } else {
        move_by_trip(plan, node, bytes * lie->stride[0], lie);
        memmove(lie->stride, lie->stride + 1, sizeof lie->stride - sizeof *lie->stride);
    }
}

void weft_placed_lie(const weft_plan *plan, uint32_t placed, int rank, weft_lie *lie)
{
    const weft_placed *p = &plan->placed[placed];
    weft_view view;
    if (p->shares != 0) {
        weft_placed_lie(plan, p->shares, rank, lie);
        if (p->through != 0) lie_through(plan, placed, rank, lie);
        return;
    }
    *lie = (weft_lie){.begin = 0};
    weft_placed_view(plan, placed, rank, &view);
    lie_contiguous(&view, lie);
}
