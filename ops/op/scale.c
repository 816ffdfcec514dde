/* scale: y = x n, n a number. Linear: a partial sum may stay partial. With an n that is infinite in x's dtype it is mul by a
 * constant, which that may not.
 *
 * Gradient: dx = n dy.
 */
#include "element.h"

#include <math.h>

#include "weft/ops.h"

WEFT_ELEMENT_1(x *n0)

static void gradient(weft_vjp *vjp)
{
    const weft_element_attributes *attributes = vjp->site->attributes;
    vjp->din[0] = weft_scale(vjp->dout[0], attributes->number[0]);
}

const weft_op weft_op_scale = {
    .name = "scale",
    .infer = weft_infer_same,
    .factors = weft_factors_pass,
    .linear = 1,
    .selects = true,
    .gradient = gradient,
    .element = &element,
};

static bool is_finite_in(weft_dtype dtype, double by)
{
    if (!weft_dtype_is_float(dtype)) return true;
    return isfinite(weft_dtype_computes(dtype) == WEFT_F64 ? by : (double)(float)by);
}

weft_value weft_scale(weft_value x, double by)
{
    if (!is_finite_in(weft_dtype_of(x), by))
        return weft_mul(x, weft_constant(x.graph, weft_dtype_of(x), WEFT_SCALAR, by));
    return weft_emit_element(&weft_op_scale, &x, 1, by, 0.0);
}
