/* compose_order.c: sorting, the first few, quantiles: compositions of order, which says which elements, and pick, which takes them,
 * and through which gradients flow.
 */
#include <math.h>
#include <string.h>

#include "order.h"
#include "weft/ops.h"

/* ---- the first few ------------------------------------------------------------------------------- */

/* Indices as weft_order has them, by the choice. */
static weft_value few(weft_value x, weft_dim dim, weft_dim to, weft_order_choice by)
{
    const char *builder = by.descending ? "top_k" : "bottom_k";
    weft_dim_attributes along, into;
    if (!weft_graph_dim(x.graph, builder, dim, &along) ||
        !weft_graph_dim(x.graph, builder, to, &into))
        return weft_no_value(x.graph);
    dim.name = along.dim, to.name = into.dim;
    const bool is_wrong =
        x.id == 0 || weft_dim_of(x, along.dim).size != along.size; /* infer says so */
    if (!by.is_last_first || is_wrong) return weft_order(x, dim, to, by.descending);
    if (weft_order_is_few(weft_shape_of(x), dim.size, to.size))
        return weft_order_by_blocks(weft_wide(x), dim, to, by);
    return weft_ordered_by(x, dim, to, by);
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
    const bool is_by_blocks = weft_order_is_few(weft_shape_of(x), dim.size, to.size);
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
    return with_ids(x, dim, to, true, few(x, dim, to, (weft_order_choice){true, false}), ids);
}

weft_value weft_bottom_k(weft_value x, weft_dim dim, weft_dim to, weft_value *ids)
{
    return with_ids(x, dim, to, false, few(x, dim, to, (weft_order_choice){false, false}), ids);
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
    const weft_dim to = weft_order_dim(x.graph, dim, is_low ? from_low : from_high);
    const weft_value ids = few(x, dim, to, (weft_order_choice){!is_low, !is_low});
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
