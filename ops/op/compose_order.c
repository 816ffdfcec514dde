/* compose_order.c: sorting, the first few, quantiles: compositions of order, which says which elements, and pick, which takes them,
 * and through which gradients flow.
 */
#include <math.h>
#include <string.h>

#include "order.h"
#include "weft/ops.h"

enum { BLOCKS = 48, LEAST = 2 * BLOCKS };

static weft_dim as_long_as(weft_graph *graph, weft_dim like, int64_t size)
{
    weft_dim dim = weft_dim_beside(graph, like);
    dim.size = size;
    return dim;
}

/* ---- the first few, by blocks -------------------------------------------------------------------- */

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

/* Which elements are wanted: the largest first or the least; and of equal ones the last first, or the first. The largest with the
 * last first are what sort puts at its end. */
typedef struct choice {
    bool descending, is_last_first;
} choice;

/* Indices as weft_order has them, by the choice. */
static weft_value ordered(weft_value x, weft_dim dim, weft_dim to, choice by)
{
    if (!by.is_last_first) return weft_order(x, dim, to, by.descending);
    const weft_value from_end = weft_order(weft_flip(x, dim), dim, to, by.descending);
    const weft_value last = weft_constant(x.graph, WEFT_I32, WEFT_SCALAR, (double)(dim.size - 1));
    return from_end.id == 0 ? from_end : weft_sub(last, from_end);
}

/* Of each block its first few, and of these the first few: in the order of blocks and of what stands in them, so that of equal
 * ones the lower index stays first; or from the last block on, and the higher one. What fills the blocks up is the last to come. */
static weft_value few_by_blocks(weft_value x, weft_dim dim, weft_dim to, choice by)
{
    weft_graph *graph = x.graph;
    const weft_dim blocks = {dim.name, BLOCKS};
    const weft_dim within = as_long_as(graph, dim, (dim.size + BLOCKS - 1) / BLOCKS);
    const weft_dim few = as_long_as(graph, dim, to.size),
                   all = as_long_as(graph, dim, BLOCKS * to.size);
    const weft_dim longer = {dim.name, BLOCKS * within.size};
    const int64_t before = by.is_last_first ? longer.size - dim.size : 0;
    if (longer.size > dim.size)
        x = weft_pad(x, dim, before, longer, weft_order_last(weft_dtype_of(x), by.descending));
    const weft_value parts = cut(x, longer, blocks, within);
    const weft_value first = ordered(parts, within, few, by);
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

static weft_value few(weft_value x, weft_dim dim, weft_dim to, choice by)
{
    const char *builder = by.descending ? "top_k" : "bottom_k";
    weft_dim_attributes along, into;
    if (!weft_graph_dim(x.graph, builder, dim, &along) ||
        !weft_graph_dim(x.graph, builder, to, &into))
        return weft_no_value(x.graph);
    const bool is_short = dim.size < LEAST || to.size > dim.size / LEAST ||
                          dim.size > INT32_MAX - BLOCKS || x.id == 0 ||
                          weft_shape_of(x)->n_dims == WEFT_MAX_DIMS ||
                          weft_dim_of(x, along.dim).size != along.size; /* infer says so */
    dim.name = along.dim, to.name = into.dim;
    if (is_short) return ordered(x, dim, to, by);
    const weft_value wide = weft_wide(x);
    const bool is_turned = weft_order_is_turned(weft_dtype_of(wide), by.descending);
    const choice turned = {true, by.is_last_first};
    const weft_value ids = is_turned ? few_by_blocks(weft_opposite(wide), dim, to, turned)
                                     : few_by_blocks(wide, dim, to, by);
    if (ids.id == 0) return ids;
    weft_shape shape = *weft_shape_of(x); /* where dim was */
    shape.dims[weft_shape_find(&shape, dim.name)] = to;
    return weft_transpose(ids, shape);
}

/* The elements of x at the ids, whose dim `to` stands where dim was. */
static weft_value taken(weft_value x, weft_dim dim, weft_value ids)
{
    const weft_value y = weft_pick(x, ids, dim);
    return y.id == 0 ? y : weft_transpose(y, *weft_shape_of(ids));
}

/* y, of what is long also as it is made by columns where that is how its order is made. */
static weft_value in_order(weft_value x, weft_value y, weft_dim dim, weft_dim to, bool descending)
{
    const bool is_by_blocks = to.size <= dim.size / LEAST;
    const weft_value in[] = {weft_wide(y), weft_wide(x)};
    weft_order_attributes a;
    if (weft_order_columns(dim.size) == 0 || is_by_blocks) return y;
    memset(&a, 0, sizeof a);
    a.dim = dim.name, a.size = dim.size, a.to = to.name, a.count = to.size;
    a.descending = descending;
    const weft_value made = weft_emit(x.graph, &weft_op_in_order, in, 2, &a, sizeof a);
    return made.id == 0 ? made : weft_cast(made, weft_dtype_of(x));
}

static weft_value with_ids(weft_value x, weft_dim dim, weft_dim to, bool descending,
                           weft_value made, weft_value *ids)
{
    if (ids != NULL) *ids = made;
    if (made.id == 0) return made;
    return in_order(x, taken(x, dim, made), dim, to, descending);
}

weft_value weft_top_k(weft_value x, weft_dim dim, weft_dim to, weft_value *ids)
{
    return with_ids(x, dim, to, true, few(x, dim, to, (choice){true, false}), ids);
}

weft_value weft_bottom_k(weft_value x, weft_dim dim, weft_dim to, weft_value *ids)
{
    return with_ids(x, dim, to, false, few(x, dim, to, (choice){false, false}), ids);
}

/* ---- all ----------------------------------------------------------------------------------------- */

weft_value weft_argsort(weft_value x, weft_dim dim, bool descending)
{
    return weft_order(x, dim, dim, descending);
}

weft_value weft_sort(weft_value x, weft_dim dim, bool descending, weft_value *ids)
{
    return with_ids(x, dim, dim, descending, weft_argsort(x, dim, descending), ids);
}

/* ---- quantiles ----------------------------------------------------------------------------------- */

/* The element at place `at`, and that behind it where there is one, of the dim in ascending order: taken from the end where much
 * less is to be ordered. Of equal elements it is the one that sort has there, from either end. */
static void neighbours(weft_value x, weft_dim dim, int64_t at, weft_value *low, weft_value *high)
{
    const int64_t from_low = at + 2 < dim.size ? at + 2 : dim.size, from_high = dim.size - at;
    const bool is_low = from_low <= 2 * from_high;
    const weft_dim to = as_long_as(x.graph, dim, is_low ? from_low : from_high);
    const weft_value ids = few(x, dim, to, (choice){!is_low, !is_low});
    const weft_value some = with_ids(x, dim, to, !is_low, ids, NULL);
    const int64_t place = is_low ? at : to.size - 1, next = is_low ? at + 1 : to.size - 2;
    *low = weft_unstack(some, to, place);
    *high = at + 1 < dim.size ? weft_unstack(some, to, next) : *low;
}

/* low + part (high - low), in two steps of half the way: numbers of either sign may be farther apart than the largest. */
static weft_value between(weft_value low, weft_value high, double part)
{
    const weft_value half = weft_sub(weft_scale(high, 0.5), weft_scale(low, 0.5));
    const weft_value step = weft_scale(half, part);
    return weft_add(weft_add(low, step), step);
}

weft_value weft_quantile(weft_value x, weft_dim dim, double q)
{
    if (x.id == 0) return weft_no_value(x.graph);
    if (!(q >= 0 && q <= 1))
        return weft_graph_fail(x.graph, "quantile: q is %g; it is from 0 to 1", q);
    if (!weft_takes_float(x, "quantile")) return weft_no_value(x.graph);
    if (dim.name == NULL || dim.size < 1 || weft_dim_of(x, dim.name).size != dim.size) {
        char text[300];
        weft_shape_print(weft_shape_of(x), text, sizeof text);
        return weft_graph_fail(x.graph, "quantile: along %s:%lld, but x is %s",
                               dim.name ? dim.name : "(none)", (long long)dim.size, text);
    }
    const double place = q * (double)(dim.size - 1), whole = floor(place);
    const weft_value wide = weft_wide(x);
    weft_value low, high;
    neighbours(wide, dim, (int64_t)whole, &low, &high);
    if (low.id == 0) return low;
    const weft_value y = place > whole ? between(low, high, place - whole) : low;
    const weft_shape rest = *weft_shape_of(low);
    const weft_value is_nan = weft_any(rest, weft_is_nan(wide));
    const weft_value nan = weft_constant(x.graph, weft_dtype_of(wide), WEFT_SCALAR, (double)NAN);
    return weft_cast(weft_where(is_nan, nan, y), weft_dtype_of(x));
}

weft_value weft_median(weft_value x, weft_dim dim)
{
    return weft_quantile(x, dim, 0.5);
}
