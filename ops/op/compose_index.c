/* compose_index.c: segments, counts and bags by ids: compositions of gather, scatter_add and unpick. */
#include <math.h>
#include <string.h>

#include "ir.h"
#include "weft/ops.h"

static weft_value number(weft_graph *graph, weft_dtype dtype, double value)
{
    return weft_constant(graph, dtype, WEFT_SCALAR, value);
}

/* i32: 1 where an id is one of dim's. */
static weft_value is_inside(weft_value ids, weft_dim dim)
{
    const weft_value zero = number(ids.graph, WEFT_I32, 0.0),
                     end = number(ids.graph, WEFT_I32, (double)dim.size);
    return weft_mul(weft_greater_equal(ids, zero), weft_less(ids, end));
}

/* ---- segments ------------------------------------------------------------------------------------ */

weft_value weft_scatter_min(weft_value rows, weft_value ids, weft_dim dim)
{
    if (rows.id == 0) return weft_no_value(rows.graph);
    const weft_value top = weft_scatter_max(weft_opposite(rows), ids, dim);
    return top.id == 0 ? top : weft_opposite(top);
}

weft_value weft_segment_mean(weft_value rows, weft_value ids, weft_dim dim)
{
    if (rows.id == 0 || ids.id == 0) return weft_no_value(rows.graph);
    if (!weft_takes_float(rows, "segment_mean")) return weft_no_value(rows.graph);
    const weft_value wide = weft_wide(rows);
    const weft_dtype dtype = weft_dtype_of(wide);
    const weft_value sums = weft_scatter_add(wide, ids, dim);
    const weft_value ones = weft_constant(rows.graph, dtype, *weft_shape_of(ids), 1.0);
    const weft_value n =
        weft_maximum(weft_scatter_add(ones, ids, dim), number(rows.graph, dtype, 1.0));
    return weft_cast(weft_div(sums, n), weft_dtype_of(rows));
}

/* ---- counts -------------------------------------------------------------------------------------- */

weft_value weft_count_outside(weft_value ids, weft_dim dim)
{
    if (ids.id == 0) return weft_no_value(ids.graph);
    if (weft_dtype_of(ids) != WEFT_I32)
        return weft_graph_fail(ids.graph, "count_outside: ids are %s; they are i32. weft_cast them",
                               weft_dtype_name(weft_dtype_of(ids)));
    return weft_sum(WEFT_SCALAR, weft_logical_not(is_inside(ids, dim)));
}

/* The largest of those outside; the least integer: there is none, and one that is it counts as the next. */
static weft_value worst_of(weft_value ids, weft_dim dim)
{
    const double least = (double)INT32_MIN;
    const weft_value outside = weft_maximum(ids, number(ids.graph, WEFT_I32, least + 1));
    return weft_max(WEFT_SCALAR,
                    weft_where(is_inside(ids, dim), number(ids.graph, WEFT_I32, least), outside));
}

weft_value weft_checked_ids(weft_value ids, weft_dim dim)
{
    weft_dim_attributes taken;
    char sentence[400];
    if (!weft_graph_takes(ids.graph, "checked_ids", "ids", (weft_values){&ids, 1}) ||
        !weft_graph_dim(ids.graph, "checked_ids", dim, &taken))
        return weft_no_value(ids.graph);
    if (weft_dtype_of(ids) != WEFT_I32)
        return weft_graph_fail(ids.graph, "checked_ids: ids are %s; they are i32. weft_cast them",
                               weft_dtype_name(weft_dtype_of(ids)));
    const char *name = ids.graph->tensors[ids.id].name;
    snprintf(sentence, sizeof sentence,
             "%s has {}, and %s has %lld, numbered from 0 to %lld; look where the ids come from, "
             "or use them unchecked: then such a one gives zeros",
             name != NULL ? name : "ids", taken.dim, (long long)taken.size,
             (long long)taken.size - 1);
    const weft_value worst = worst_of(ids, dim);
    const weft_value holds = weft_equal(worst, number(ids.graph, WEFT_I32, (double)INT32_MIN));
    return weft_require(ids, holds, worst, sentence);
}

/* Which of the bins each element is in; -1: none. */
static weft_value bin_of(weft_value x, double low, double high, int64_t n)
{
    const weft_dtype dtype = weft_dtype_of(x);
    const weft_value first = number(x.graph, dtype, low), last = number(x.graph, dtype, high);
    const weft_value inside = weft_mul(weft_greater_equal(x, first), weft_less_equal(x, last));
    const weft_value at = weft_floor(weft_scale(weft_sub(x, first), (double)n / (high - low)));
    const weft_value bin = weft_minimum(at, number(x.graph, dtype, (double)(n - 1)));
    return weft_cast(weft_where(inside, bin, number(x.graph, dtype, -1.0)), WEFT_I32);
}

weft_value weft_histogram(weft_shape out, weft_value x, double low, double high, weft_dim bins)
{
    weft_dim_attributes taken;
    weft_shape rows;
    if (!weft_graph_shape(x.graph, "histogram", &out, &rows) ||
        !weft_graph_dim(x.graph, "histogram", bins, &taken) || x.id == 0)
        return weft_no_value(x.graph);
    if (!(low < high) || !(high - low < 1e300))
        return weft_graph_fail(
            x.graph, "histogram: from %g to %g; they are numbers, the second above the first", low,
            high);
    if (!weft_takes_float(x, "histogram")) return weft_no_value(x.graph);
    if (rows.n_dims == WEFT_MAX_DIMS)
        return weft_graph_fail(x.graph, "histogram: the result would have more than %d dims",
                               WEFT_MAX_DIMS);
    const weft_value wide = weft_wide(x), ids = bin_of(wide, low, high, taken.size);
    const weft_value ones = weft_constant(x.graph, WEFT_I32, *weft_shape_of(x), 1.0);
    rows.dims[rows.n_dims++] = (weft_dim){taken.dim, taken.size};
    return weft_unpick(rows, ones, ids, bins);
}

/* ---- bags ---------------------------------------------------------------------------------------- */

weft_value weft_embedding_bag(weft_value table, weft_value ids, weft_dim dim, weft_dim bag,
                              weft_value weights, bool is_mean)
{
    if (table.id == 0 || ids.id == 0) return weft_no_value(table.graph);
    if (bag.name == NULL || bag.size < 1 || weft_dim_of(ids, bag.name).size != bag.size) {
        char text[300];
        weft_shape_print(weft_shape_of(ids), text, sizeof text);
        return weft_graph_fail(table.graph, "embedding_bag: a bag is %s:%lld, but ids are %s",
                               bag.name ? bag.name : "(none)", (long long)bag.size, text);
    }
    weft_value rows = weft_wide(weft_gather(table, ids, dim));
    if (rows.id == 0) return rows;
    const weft_shape bags = weft_shape_without(weft_shape_of(rows), bag.name);
    if (weights.graph != NULL || weights.id != 0) rows = weft_mul(rows, weft_wide(weights));
    weft_value sum = weft_sum(bags, rows);
    if (is_mean) {
        const weft_shape left = weft_shape_without(weft_shape_of(ids), bag.name);
        const weft_value n = weft_sum(left, weft_cast(is_inside(ids, dim), weft_dtype_of(rows)));
        sum = weft_div(sum, weft_maximum(n, number(table.graph, weft_dtype_of(rows), 1.0)));
    }
    return weft_cast(sum, weft_dtype_of(table));
}
