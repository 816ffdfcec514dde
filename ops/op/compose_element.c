/* compose_element.c: element by element, compositions of ops. */
#include <math.h>

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

/* Of what is not above 0 alone: else exp, and with it the gradient, would be infinite where nobody looks. */
weft_value weft_elu(weft_value x, double by)
{
    if (x.id == 0) return weft_no_value(x.graph);
    const weft_value zero = number_like(x, 0.0), low = weft_minimum(x, zero);
    return weft_where(weft_greater(x, zero), x, weft_scale(weft_expm1(low), by));
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
