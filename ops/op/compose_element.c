/* compose_element.c: element by element, compositions of ops. */
#include <math.h>
#include <string.h>

#include "op.h"
#include "weft/ops.h"

static weft_value number_like(weft_value x, double value)
{
    return weft_constant(x.graph, weft_dtype_of(x), WEFT_SCALAR, value);
}

/* ---- what networks bend by ----------------------------------------------------------------------- */

weft_value weft_silu(weft_value x)
{
    return weft_mul(x, weft_sigmoid(x));
}

/* x Phi(x), by the normal distribution itself. source  Hendrycks and Gimpel 2016, "Gaussian error linear units" */
weft_value weft_gelu_erf(weft_value x)
{
    const weft_value share = weft_shift(weft_erf(weft_scale(x, 0.70710678118654752440)), 1.0);
    return weft_mul(weft_scale(x, 0.5), share);
}

/* Below -3 it is 0, at minus infinity too: so x is not taken from there.
 * source  Howard et al. 2019, "Searching for MobileNetV3" */
weft_value weft_hardswish(weft_value x)
{
    if (x.id == 0) return weft_no_value(x.graph);
    const weft_value share = weft_scale(weft_clamp(weft_shift(x, 3.0), 0.0, 6.0), 1.0 / 6.0);
    return weft_mul(weft_maximum(x, number_like(x, -3.0)), share);
}

/* Of what is not above 0 alone: else exp, and with it the gradient, would be infinite where nobody looks. */
weft_value weft_elu(weft_value x, double by)
{
    if (x.id == 0) return weft_no_value(x.graph);
    const weft_value zero = number_like(x, 0.0), low = weft_minimum(x, zero);
    return weft_where(weft_greater(x, zero), x, weft_scale(weft_expm1(low), by));
}

weft_value weft_selu(weft_value x)
{
    return weft_scale(weft_elu(x, 1.6732632423543772848), 1.0507009873554804934);
}

weft_value weft_leaky_relu(weft_value x, double by)
{
    if (x.id == 0) return weft_no_value(x.graph);
    return weft_where(weft_greater(x, number_like(x, 0.0)), x, weft_scale(x, by));
}

weft_value weft_reciprocal(weft_value x)
{
    if (x.id == 0) return weft_no_value(x.graph);
    return weft_div(number_like(x, 1.0), x);
}

/* ---- logic ----------------------------------------------------------------------------------------- */

static weft_value is_true(weft_value x)
{
    if (x.id == 0) return weft_no_value(x.graph);
    return weft_not_equal(x, number_like(x, 0.0));
}

weft_value weft_logical_and(weft_value a, weft_value b)
{
    return weft_mul(is_true(a), is_true(b));
}
weft_value weft_logical_or(weft_value a, weft_value b)
{
    return weft_maximum(is_true(a), is_true(b));
}
weft_value weft_logical_xor(weft_value a, weft_value b)
{
    return weft_not_equal(is_true(a), is_true(b));
}
weft_value weft_logical_not(weft_value x)
{
    if (x.id == 0) return weft_no_value(x.graph);
    return weft_equal(x, number_like(x, 0.0));
}

weft_value weft_is_finite(weft_value x)
{
    if (x.id == 0) return weft_no_value(x.graph);
    if (!weft_dtype_is_float(weft_dtype_of(x))) return weft_equal(x, x);
    return weft_less(weft_abs(x), number_like(x, (double)INFINITY));
}
weft_value weft_is_nan(weft_value x)
{
    return weft_not_equal(x, x);
}

/* ---- rows and columns ------------------------------------------------------------------------------ */

weft_value weft_outer(weft_value a, weft_value b)
{
    if (a.id == 0 || b.id == 0) return weft_no_value(a.graph);
    weft_shape both = *weft_shape_of(a);
    for (int d = 0; d < weft_shape_of(b)->n_dims; d++) {
        const weft_dim dim = weft_shape_of(b)->dims[d];
        if (weft_shape_find(weft_shape_of(a), dim.name) >= 0)
            return weft_graph_fail(a.graph,
                                   "outer: both operands have %s, and the result can have it once; "
                                   "weft_rename one",
                                   dim.name);
        if (both.n_dims == WEFT_MAX_DIMS)
            return weft_graph_fail(a.graph, "outer: the result would have more than %d dims",
                                   WEFT_MAX_DIMS);
        both.dims[both.n_dims++] = dim;
    }
    return weft_transpose(weft_mul(a, b), both);
}

weft_value weft_triangle(weft_graph *graph, weft_dim row, weft_dim column, int64_t offset)
{
    const int64_t most = INT32_MAX / 2;
    if (offset < -most || offset > most)
        return weft_graph_fail(graph, "triangle: offset is %lld; it is from -%lld to %lld",
                               (long long)offset, (long long)most, (long long)most);
    if (row.name != NULL && column.name != NULL && strcmp(row.name, column.name) == 0)
        return weft_graph_fail(graph,
                               "triangle: row and column are both %.63s; they are two dims of one "
                               "value. weft_rename one",
                               row.name);
    const weft_value at = weft_iota(graph, WEFT_I32, row), to = weft_iota(graph, WEFT_I32, column);
    const weft_value by = weft_constant(graph, WEFT_I32, WEFT_SCALAR, (double)offset);
    return weft_greater_equal(weft_add(at, by), to);
}

weft_value weft_lower_triangle(weft_value x, weft_dim row, weft_dim column, int64_t offset)
{
    if (x.id == 0) return weft_no_value(x.graph);
    const weft_shape shape = *weft_shape_of(x); /* before nodes are made, which may move it */
    const weft_value is_there = weft_triangle(x.graph, row, column, offset);
    return weft_transpose(weft_where(is_there, x, number_like(x, 0.0)), shape);
}

weft_value weft_upper_triangle(weft_value x, weft_dim row, weft_dim column, int64_t offset)
{
    if (x.id == 0) return weft_no_value(x.graph);
    const int64_t below = offset > INT64_MIN ? offset - 1 : offset; /* which is refused */
    const weft_shape shape = *weft_shape_of(x);
    const weft_value is_below = weft_triangle(x.graph, row, column, below);
    return weft_transpose(weft_where(is_below, number_like(x, 0.0), x), shape);
}

/* ---- some of a tensor at once ---------------------------------------------------------------------- */

weft_value weft_dropout_over(weft_value x, double rate, weft_shape noise)
{
    if (x.id == 0) return weft_no_value(x.graph);
    for (int d = 0; d < noise.n_dims && d < WEFT_MAX_DIMS; d++) {
        if (weft_dim_of(x, noise.dims[d].name).size == noise.dims[d].size) continue;
        char has[300];
        weft_shape_print(weft_shape_of(x), has, sizeof has);
        return weft_graph_fail(x.graph,
                               "dropout_over: the noise is along %.63s:%lld, but x is %s; it is of "
                               "some of x's dims",
                               noise.dims[d].name, (long long)noise.dims[d].size, has);
    }
    /* What is dropped is 0, be it infinite. */
    const weft_value ones = weft_constant(x.graph, weft_dtype_of(x), noise, 1.0),
                     kept = weft_dropout(ones, rate), zero = number_like(x, 0.0);
    return weft_where(weft_equal(kept, zero), zero, weft_mul(x, kept));
}
