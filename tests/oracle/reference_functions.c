/* reference_functions.c: functions of one number or two, rounding and logic, element by element. */
#include "reference_element.h"

#include <math.h>

static long double sigmoid(long double x)
{
    return 1 / (1 + expl(-x));
}
ELEMENT_1(sigmoid, sigmoid(x))
ELEMENT_1(silu, x *sigmoid(x))
ELEMENT_1(hardswish, x <= -3 ? 0 : x < 3 ? x * (x + 3) / 6 : x)
ELEMENT_1(softplus, x > 0 ? x + log1pl(expl(-x)) : log1pl(expl(x)))
ELEMENT_1(elu, x > 0 ? x : a * expm1l(x))
ELEMENT_1(leaky_relu, x > 0 ? x : a * x)
ELEMENT_1(selu, 1.0507009873554804934L * (x > 0 ? x : 1.6732632423543772848L * expm1l(x)))
ELEMENT_1(erf, erfl(x))
ELEMENT_1(expm1, expm1l(x))
ELEMENT_1(log1p, log1pl(x))
ELEMENT_1(reciprocal, 1 / x)
ELEMENT_2(pow, powl(x, y))
ELEMENT_2(pow_log, powl(x, y) == 0 || (x == 0 && y == 0) ? 0 : powl(x, y) * powl(logl(x), a))

ELEMENT_1(abs, fabsl(x))
ELEMENT_1(sign, isnan(x) ? x : (x > 0) - (x < 0))
ELEMENT_1(clamp, isnan(x) ? x : fminl(fmaxl(x, a), b))
ELEMENT_1(floor, floorl(x))
ELEMENT_1(ceil, ceill(x))
ELEMENT_1(round, isinf(x) ? x : x - remainderl(x, 1))

/* What is left of x, of y's sign; of integers by 0: 0. */
static long double mod(long double x, long double y, weft_dtype dtype)
{
    if (!weft_dtype_is_float(dtype) && y == 0) return 0;
    const long double left = fmodl(x, y);
    return left != 0 && (left < 0) != (y < 0) ? left + y : left;
}
static long double floor_div(long double x, long double y, weft_dtype dtype)
{
    if (!weft_dtype_is_float(dtype) && y == 0) return 0;
    if (isinf(y) && isfinite(x)) return x != 0 && (x < 0) != (y < 0) ? -1 : 0;
    return floorl(x / y);
}
ELEMENT_2(floor_div, floor_div(x, y, dtype))
ELEMENT_2(mod, mod(x, y, dtype))

ELEMENT_2(logical_and, x != 0 && y != 0)
ELEMENT_2(logical_or, x != 0 || y != 0)
ELEMENT_2(logical_xor, (x != 0) != (y != 0))
ELEMENT_1(logical_not, x == 0)
ELEMENT_1(is_finite, isfinite(x) ? 1 : 0)
ELEMENT_1(is_nan, isnan(x) ? 1 : 0)

/* By halving, of what lies beyond. */
static long double erfinv(long double x)
{
    long double low = 0, high = 10;
    if (!(fabsl(x) < 1)) return fabsl(x) == 1 ? x * HUGE_VALL : (long double)NAN;
    for (int step = 0; step < 90; step++) {
        const long double y = (low + high) / 2;
        const bool is_below = fabsl(x) < 0.5L ? erfl(y) < fabsl(x) : erfcl(y) > 1 - fabsl(x);
        *(is_below ? &low : &high) = y;
    }
    return x < 0 ? -low : low;
}
ELEMENT_1(erfinv, erfinv(x))

/* ---- rows and columns ------------------------------------------------------------------------------ */

ELEMENT_2(outer, x *y)

/* How far with.other is past with.dim. */
static int64_t past(const reference_call *call, const reference_point *p)
{
    return point_at(p, call->with.other) - point_at(p, call->with.dim);
}
void reference_triangle(const reference_call *call)
{
    REFERENCE_EACH(p, &call->out[0])
    element_put(&call->out[0], &p, (double)past(call, &p) <= call->with.a);
}
void reference_lower_triangle(const reference_call *call)
{
    REFERENCE_EACH(p, &call->out[0])
    if ((double)past(call, &p) <= call->with.a)
        element_put(&call->out[0], &p, element_get(&call->in[0], &p));
}
void reference_upper_triangle(const reference_call *call)
{
    REFERENCE_EACH(p, &call->out[0])
    if ((double)past(call, &p) >= call->with.a)
        element_put(&call->out[0], &p, element_get(&call->in[0], &p));
}
