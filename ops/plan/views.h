/* views.h (private): tensors that have no memory of their own: they are parts of another's, or its elements in another shape.
 *
 * Such a tensor (weft_placed.shares) says through which node it is seen there (weft_placed.through). The node's op says how: an
 * element of a tensor in each trip, a slice, a new name. A node is gone through in either direction: its result is seen in its
 * operand, or its operand is made where it belongs in the result. So no step does that node.
 *
 * Where the parts are is known of each rank when its steps are bound. A view that begins elsewhere in each trip *moves*. Any
 * step may read a contiguous one; one that is *apart* is for loops alone.
 */
#ifndef WEFT_PLAN_VIEWS_H
#define WEFT_PLAN_VIEWS_H

#include "plan.h"

/* How a node places its result in its operand, or an operand in its result. */
typedef enum weft_view_kind {
    WEFT_VIEW_NONE,  /* it does not: it computes */
    WEFT_VIEW_SHAPE, /* the same elements in the same order: rename, reshape */
    WEFT_VIEW_PART,  /* some along one dim: slice, concat */
    WEFT_VIEW_TRIP   /* one element of the first dim in each trip: scan_each, scan_stack */
} weft_view_kind;
weft_view_kind weft_view_kind_of(const weft_node *node);

/* Where a view is in the memory of its owner, on one rank: numbers per dim, the bytes before its first element, and by how much
 * it moves with each trip of some scans. */
enum { WEFT_MOST_MOVES = 4 };
typedef struct weft_lie {
    int64_t stride[WEFT_MAX_DIMS];
    int64_t begin;
    int n_moves;
    struct {
        uint32_t scan;
        int64_t bytes;
    } move[WEFT_MOST_MOVES];
} weft_lie;
/* Of any placed tensor; one that has its owner's memory whole begins there, and is contiguous. */
void weft_placed_lie(const weft_plan *plan, uint32_t placed, int rank, weft_lie *lie);

/* Whether a tensor is a view, by itself or by what it shares; and whether it is contiguous on every rank. */
bool weft_is_view(const weft_plan *plan, uint32_t placed);
bool weft_is_contiguous(const weft_plan *plan, uint32_t placed);
/* The scans with whose trips it moves: how many. */
int weft_count_moves(const weft_plan *plan, uint32_t placed);
/* Whether `within`'s memory is all or part of that of `placed`, or it is the same tensor. */
bool weft_is_within(const weft_plan *plan, uint32_t within, uint32_t placed);

#endif
