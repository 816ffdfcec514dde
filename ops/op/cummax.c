/* cummax: element i of a dim is the largest of those before it, with its own or without; or of those behind it.
 *
 * Blocks as in cumsum. A NaN stays. Before the first element there is -inf, or the least integer.
 * Gradient: to the element that is the largest so far, of equal ones the first that was met. The very first is one too if it is
 * -inf: nothing stands before it.
 */
#include <math.h>

#include "cumulate.h"
#include "weft/ops.h"

/* Where along dim the largest so far stands: the last element that is above all before it, or before which there is none. Behind
 * a NaN nothing is above. */
static weft_value place_of(weft_vjp *vjp, const weft_cumulate_attributes *a, weft_dim dim)
{
    const weft_value x = vjp->in[0];
    const weft_value before = weft_emit_cumulate(&weft_op_cummax, x, dim, true, a->reverse);
    const weft_value at = weft_iota(vjp->graph, WEFT_I32, dim);
    const weft_value start =
        weft_constant(vjp->graph, WEFT_I32, WEFT_SCALAR, a->reverse ? (double)(dim.size - 1) : 0.0);
    const weft_value is_more = weft_mul(weft_logical_not(weft_less_equal(x, before)),
                                        weft_logical_not(weft_is_nan(before)));
    const weft_value is_above = weft_logical_or(is_more, weft_equal(at, start));
    const weft_value number =
        a->reverse ? weft_neg(at) : at; /* it grows in the order of the walk */
    const weft_value none = weft_constant(vjp->graph, WEFT_I32, WEFT_SCALAR, (double)INT32_MIN);
    const weft_value marked = weft_where(is_above, number, none);
    const weft_value place =
        weft_emit_cumulate(&weft_op_cummax, marked, dim, a->exclusive, a->reverse);
    return a->reverse ? weft_neg(place) : place;
}

static void gradient(weft_vjp *vjp)
{
    const weft_cumulate_attributes *a = vjp->site->attributes;
    const weft_dim dim = {a->dim, a->size};
    weft_dim from = weft_dim_beside(vjp->graph, dim);
    const weft_value place = weft_rename(place_of(vjp, a, dim), dim, from);
    const weft_value dy = weft_rename(vjp->dout[0], dim, from);
    vjp->din[0] = weft_unpick(*weft_shape_of(vjp->in[0]), dy, place, dim);
}

const weft_op weft_op_cummax = {
    .name = "cummax",
    .attributes = &weft_attributes_cumulate,
    .infer = weft_infer_cumulate,
    .factors = weft_factors_cumulate,
    .gradient = gradient,
};

/* Of equal ones the first that was met, here too. */
static weft_value larger(weft_value before, weft_value x)
{
    return weft_maximum(before, x);
}

static const weft_cumulating tops = {&weft_op_cummax,
                                     larger,
                                     {[WEFT_F32] = (double)-INFINITY,
                                      [WEFT_F64] = (double)-INFINITY,
                                      [WEFT_I32] = (double)INT32_MIN,
                                      [WEFT_I64] = (double)INT64_MIN},
                                     .ties = true};

weft_value weft_cummax(weft_value x, weft_dim dim, bool exclusive, bool reverse)
{
    return weft_cumulate(x, dim, exclusive, reverse, &tops);
}
