/* compose_shape.c: builders that put elements elsewhere along one dim: all are reindex, slice and concat with other numbers. */
#include <string.h>

#include "op.h"
#include "weft/ops.h"

/* Dims as the graph holds them, with sizes that may be computed with. False: the graph's error. */
static bool take_dims(weft_value x, const char *builder, weft_dim *dim, weft_dim *to)
{
    weft_dim *const both[] = {dim, to};
    for (int i = 0; i < 2; i++) {
        weft_dim_attributes taken;
        if (!weft_graph_dim(x.graph, builder, *both[i], &taken)) return false;
        *both[i] = (weft_dim){taken.dim, taken.size};
    }
    return true;
}

/* ---- one reindex ------------------------------------------------------------------------------- */

weft_value weft_slice_step(weft_value x, weft_dim dim, int64_t begin, int64_t step, weft_dim to)
{
    if (!take_dims(x, "slice_step", &dim, &to)) return weft_no_value(x.graph);
    const int64_t most = WEFT_MAX_STRIDE, size = dim.size;
    bool is_inside = begin >= 0 && begin < size && step != 0 && step >= -most && step <= most;
    if (is_inside)
        is_inside =
            to.size - 1 <= (step > 0 ? size - 1 - begin : begin) / (step > 0 ? step : -step);
    if (!is_inside)
        return weft_graph_fail(x.graph,
                               "slice_step: %lld elements of %s:%lld from %lld on, each %lld "
                               "further, are not all in it; take fewer, or another step",
                               (long long)to.size, dim.name, (long long)size, (long long)begin,
                               (long long)step);
    return weft_reindex(x, dim, to, step, begin, 1);
}

weft_value weft_flip(weft_value x, weft_dim dim)
{
    if (!take_dims(x, "flip", &dim, &dim)) return weft_no_value(x.graph);
    return weft_reindex(x, dim, dim, -1, dim.size - 1, 1);
}

weft_value weft_shift_along(weft_value x, weft_dim dim, int64_t by)
{
    if (!take_dims(x, "shift_along", &dim, &dim)) return weft_no_value(x.graph);
    if (by <= -dim.size || by >= dim.size)
        return weft_graph_fail(x.graph,
                               "shift_along: by %lld of %s:%lld nothing is left; shift by less",
                               (long long)by, dim.name, (long long)dim.size);
    return weft_reindex(x, dim, dim, 1, -by, 1);
}

/* Whether `by` has dims of x's rows along dim alone; else the graph's error. */
static bool may_shift_by(weft_value x, weft_value by, weft_dim dim)
{
    char in[150], is[150];
    const weft_shape *shape = weft_shape_of(x), *rows = weft_shape_of(by);
    bool fits = weft_dtype_of(by) == WEFT_I32;
    for (int d = 0; fits && d < rows->n_dims; d++)
        fits = strcmp(rows->dims[d].name, dim.name) != 0 &&
               weft_shape_find(shape, rows->dims[d].name) >= 0;
    if (fits && dim.size <= INT32_MAX) return true;
    weft_shape_print(shape, in, sizeof in);
    weft_shape_print(rows, is, sizeof is);
    (void)weft_graph_fail(x.graph,
                          "shift_by: x is %s and is shifted along %s:%lld by %s%s; by is i32, with "
                          "dims of x but that one, of at most 2^31 - 1 elements",
                          in, dim.name, (long long)dim.size, weft_dtype_name(weft_dtype_of(by)),
                          is);
    return false;
}

weft_value weft_shift_by(weft_value x, weft_dim dim, weft_value by, bool wraps)
{
    weft_graph *graph = x.graph;
    if (x.id == 0 || by.id == 0) return weft_no_value(graph);
    if (!take_dims(x, "shift_by", &dim, &dim) || !may_shift_by(x, by, dim))
        return weft_no_value(graph);
    const weft_shape shape = *weft_shape_of(x);
    const weft_value at = weft_iota(graph, WEFT_I32, dim);
    const weft_value size = weft_constant(graph, WEFT_I32, WEFT_SCALAR, (double)dim.size);
    weft_value from = weft_sub(at, wraps ? weft_mod(by, size) : by);
    if (wraps) from = weft_mod(from, size);
    return weft_transpose(weft_pick(x, from, dim), shape);
}

weft_value weft_dilate(weft_value x, weft_dim dim, int64_t step, weft_dim to)
{
    if (!take_dims(x, "dilate", &dim, &to)) return weft_no_value(x.graph);
    const int64_t most = WEFT_MAX_STRIDE;
    if (step < 1 || step > most || (to.size - 1) / step != dim.size - 1 || (to.size - 1) % step)
        return weft_graph_fail(x.graph,
                               "dilate: %s:%lld with step %lld is not %s:%lld; the result has "
                               "(size - 1) step + 1 elements",
                               dim.name, (long long)dim.size, (long long)step, to.name,
                               (long long)to.size);
    return weft_reindex(x, dim, to, 1, 0, step);
}

/* ---- padding ----------------------------------------------------------------------------------- */

static bool may_pad(weft_value x, const char *builder, weft_dim dim, int64_t before, weft_dim to)
{
    const bool fits = before >= 0 && dim.size <= to.size && before <= to.size - dim.size;
    if (!fits)
        (void)weft_graph_fail(x.graph,
                              "%s: %s:%lld does not fit into %s:%lld from %lld on; the result has "
                              "size + before + after elements",
                              builder, dim.name, (long long)dim.size, to.name, (long long)to.size,
                              (long long)before);
    return fits;
}

weft_value weft_pad(weft_value x, weft_dim dim, int64_t before, weft_dim to, double value)
{
    if (!take_dims(x, "pad", &dim, &to)) return weft_no_value(x.graph);
    if (!may_pad(x, "pad", dim, before, to)) return weft_no_value(x.graph);
    if (!weft_holds(x.graph, "pad", weft_dtype_of(x), value)) return weft_no_value(x.graph);
    const weft_value padded = weft_reindex(x, dim, to, 1, -before, 1);
    if (value == 0) return padded;
    if (to.size > INT32_MAX)
        return weft_graph_fail(
            x.graph, "pad: %s:%lld is padded with %g; what is longer than 2^31 only with 0",
            to.name, (long long)to.size, value);
    weft_graph *graph = x.graph;
    const weft_value at = weft_iota(graph, WEFT_I32, to);
    const weft_value first = weft_constant(graph, WEFT_I32, WEFT_SCALAR, (double)before);
    const weft_value past =
        weft_constant(graph, WEFT_I32, WEFT_SCALAR, (double)(before + dim.size));
    const weft_value inside = weft_mul(weft_less_equal(first, at), weft_less(at, past));
    return weft_where(inside, padded, weft_constant(graph, weft_dtype_of(x), WEFT_SCALAR, value));
}

/* a, then b, along `dim`, of which each has a part. */
static weft_value join(weft_value a, weft_value b, weft_dim dim, int64_t first, int64_t second)
{
    return weft_concat(a, b, (weft_dim){dim.name, first}, (weft_dim){dim.name, second},
                       (weft_dim){dim.name, first + second});
}

weft_value weft_pad_reflect(weft_value x, weft_dim dim, int64_t before, weft_dim to)
{
    if (!take_dims(x, "pad_reflect", &dim, &to)) return weft_no_value(x.graph);
    if (!may_pad(x, "pad_reflect", dim, before, to)) return weft_no_value(x.graph);
    const int64_t size = dim.size, after = to.size - size - before;
    if (before >= size || after >= size)
        return weft_graph_fail(x.graph,
                               "pad_reflect: %s:%lld has no %lld elements beside its first or last "
                               "one; pad by less than its size",
                               dim.name, (long long)size,
                               (long long)(before > after ? before : after));
    weft_value all = to.name == dim.name ? x : weft_rename(x, dim, (weft_dim){to.name, size});
    if (before > 0)
        all = join(weft_reindex(x, dim, (weft_dim){to.name, before}, -1, before, 1), all, to,
                   before, size);
    if (after > 0)
        all = join(all, weft_reindex(x, dim, (weft_dim){to.name, after}, -1, size - 2, 1), to,
                   before + size, after);
    return all;
}

/* ---- parts ------------------------------------------------------------------------------------- */

weft_value weft_roll(weft_value x, weft_dim dim, int64_t by)
{
    if (!take_dims(x, "roll", &dim, &dim)) return weft_no_value(x.graph);
    const int64_t first = (by % dim.size + dim.size) % dim.size; /* as many come to the front */
    if (first == 0) return x;
    const weft_value front = weft_slice(x, dim, dim.size - first, (weft_dim){dim.name, first});
    const weft_value back = weft_slice(x, dim, 0, (weft_dim){dim.name, dim.size - first});
    return join(front, back, dim, first, dim.size - first);
}

weft_value weft_split(weft_value x, weft_dim dim, int64_t index, weft_dim to)
{
    if (!take_dims(x, "split", &dim, &to)) return weft_no_value(x.graph);
    if (dim.size % to.size != 0 || index < 0 || index >= dim.size / to.size)
        return weft_graph_fail(x.graph,
                               "split: %s:%lld has no part %lld of %lld elements; parts are equal, "
                               "and counted from 0",
                               dim.name, (long long)dim.size, (long long)index, (long long)to.size);
    return weft_slice(x, dim, index * to.size, to);
}

weft_value weft_unstack(weft_value x, weft_dim dim, int64_t index)
{
    if (!take_dims(x, "unstack", &dim, &dim)) return weft_no_value(x.graph);
    const weft_value one = weft_slice(x, dim, index, (weft_dim){dim.name, 1});
    if (one.id == 0) return one;
    return weft_reshape(one, weft_shape_without(weft_shape_of(one), dim.name));
}

/* Values [begin, end) one behind the other: by halves, so that none is copied more than log2(n) times. */
static weft_value join_all(const weft_value *values, weft_dim dim, int64_t begin, int64_t end)
{
    if (end - begin == 1) {
        const weft_shape *rest = weft_shape_of(values[begin]);
        weft_shape shape = {.n_dims = 1, .dims = {{dim.name, 1}}};
        if (rest->n_dims >= WEFT_MAX_DIMS)
            return weft_graph_fail(values[begin].graph,
                                   "stack: an operand has %d dims, and none can be added; a tensor "
                                   "has at most that many",
                                   rest->n_dims);
        for (int d = 0; d < rest->n_dims; d++)
            shape.dims[shape.n_dims++] = rest->dims[d];
        return weft_reshape(values[begin], shape);
    }
    const int64_t middle = begin + (end - begin) / 2;
    return join(join_all(values, dim, begin, middle), join_all(values, dim, middle, end), dim,
                middle - begin, end - middle);
}

weft_value weft_stack(weft_values values, weft_dim dim)
{
    const int n = weft_values_given(values);
    if (n < 1) return weft_no_value(NULL);
    weft_graph *graph = values.values[0].graph;
    if (!take_dims(values.values[0], "stack", &dim, &dim)) return weft_no_value(graph);
    if (dim.size != n)
        return weft_graph_fail(graph, "stack: %d values do not make %s:%lld; give as many", n,
                               dim.name, (long long)dim.size);
    for (int i = 0; i < n; i++)
        if (values.values[i].id == 0) return weft_no_value(graph);
    return join_all(values.values, dim, 0, n);
}
