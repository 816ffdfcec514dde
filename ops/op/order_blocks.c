/* order_blocks.c: the first few of a dim by blocks, which ranks share: the first few of each, and of those the first few.
 *
 * Over ranks go BLOCKS times as many elements as are wanted. Blocks have the dim's name, so that they lie where it does. Of equal
 * elements the choice is the same as of all at once.
 */
#include <string.h>

#include "order.h"
#include "weft/ops.h"

enum { BLOCKS = WEFT_ORDER_BLOCKS, LEAST = 2 * BLOCKS };

bool weft_order_is_few(const weft_shape *shape, int64_t size, int64_t count)
{
    return size >= LEAST && count <= size / LEAST && size <= INT32_MAX - BLOCKS &&
           shape->n_dims < WEFT_MAX_DIMS;
}

weft_dim weft_order_dim(weft_graph *graph, weft_dim like, int64_t size)
{
    weft_dim dim = weft_dim_beside(graph, like);
    dim.size = size;
    return dim;
}

/* x [.., dim, ..] as [.., first, then, ..], or back. */
static weft_value cut(weft_value x, weft_dim dim, weft_dim first, weft_dim then)
{
    const weft_shape *whole = weft_shape_of(x);
    weft_shape shape = {0};
    for (int d = 0; d < whole->n_dims; d++) {
        const bool is_it = strcmp(whole->dims[d].name, dim.name) == 0;
        shape.dims[shape.n_dims++] = is_it ? first : whole->dims[d];
        if (is_it) shape.dims[shape.n_dims++] = then;
    }
    return weft_reshape(x, shape);
}

/* x [.., first, .., then] as [.., all, ..]. */
static weft_value joined(weft_value x, weft_dim first, weft_dim then, weft_dim all)
{
    const weft_shape *apart = weft_shape_of(x);
    weft_shape beside = {0}, shape = {0};
    for (int d = 0; d < apart->n_dims; d++) {
        if (strcmp(apart->dims[d].name, then.name) == 0) continue;
        const bool is_it = strcmp(apart->dims[d].name, first.name) == 0;
        beside.dims[beside.n_dims++] = apart->dims[d];
        if (is_it) beside.dims[beside.n_dims++] = then;
        shape.dims[shape.n_dims++] = is_it ? all : apart->dims[d];
    }
    return weft_reshape(weft_transpose(x, beside), shape);
}

/* Indices as weft_order has them, by the choice. */
weft_value weft_ordered_by(weft_value x, weft_dim dim, weft_dim to, weft_order_choice by)
{
    if (!by.is_last_first) return weft_order(x, dim, to, by.descending);
    const weft_value from_end = weft_order(weft_flip(x, dim), dim, to, by.descending);
    const weft_value last = weft_constant(x.graph, WEFT_I32, WEFT_SCALAR, (double)(dim.size - 1));
    return from_end.id == 0 ? from_end : weft_sub(last, from_end);
}

/* Of each block its first few, and of these the first few: in the order of blocks and of what stands in them, so that of equal
 * ones the lower index stays first; or from the last block on, and the higher one. What fills the blocks up is the last to come. */
static weft_value few_by_blocks(weft_value x, weft_dim dim, weft_dim to, weft_order_choice by)
{
    weft_graph *graph = x.graph;
    const weft_dim blocks = {dim.name, BLOCKS};
    const weft_dim within = weft_order_dim(graph, dim, (dim.size + BLOCKS - 1) / BLOCKS);
    const weft_dim few = weft_order_dim(graph, dim, to.size),
                   all = weft_order_dim(graph, dim, BLOCKS * to.size);
    const weft_dim longer = {dim.name, BLOCKS * within.size};
    const int64_t before = by.is_last_first ? longer.size - dim.size : 0;
    if (longer.size > dim.size)
        x = weft_pad(x, dim, before, longer, weft_order_last(weft_dtype_of(x), by.descending));
    const weft_value parts = cut(x, longer, blocks, within);
    const weft_value first = weft_ordered_by(parts, within, few, by);
    const weft_value at = weft_iota(graph, WEFT_I32, blocks),
                     size = weft_constant(graph, WEFT_I32, WEFT_SCALAR, (double)within.size);
    weft_value numbers = weft_add(first, weft_mul(at, size));
    weft_value best = weft_pick(parts, first, within);
    if (by.is_last_first) {
        const weft_value none = weft_constant(graph, WEFT_I32, WEFT_SCALAR, (double)before);
        best = weft_flip(best, blocks), numbers = weft_flip(weft_sub(numbers, none), blocks);
    }
    const weft_value chosen = weft_order(joined(best, blocks, few, all), all, to, by.descending);
    return weft_pick(joined(numbers, blocks, few, all), chosen, all);
}

weft_value weft_order_by_blocks(weft_value x, weft_dim dim, weft_dim to, weft_order_choice by)
{
    const bool is_turned = weft_order_is_turned(weft_dtype_of(x), by.descending);
    const weft_order_choice turned = {true, by.is_last_first};
    const weft_value ids = is_turned ? few_by_blocks(weft_opposite(x), dim, to, turned)
                                     : few_by_blocks(x, dim, to, by);
    if (ids.id == 0) return ids;
    weft_shape shape = *weft_shape_of(x); /* where dim was */
    shape.dims[weft_shape_find(&shape, dim.name)] = to;
    return weft_transpose(ids, shape);
}
