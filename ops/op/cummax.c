/* cummax: element i of a dim is the largest of those before it, with its own or without; or of those behind it.
 *
 * Blocks as in cumsum, and so is the gradient of a long dim. A NaN stays. Before the first element there is -inf, or the least integer.
 * Gradient of one block: through the element that is the largest so far, of equal ones the first that was met, taken by its place.
 * The very first is one too if it is -inf: nothing stands before it.
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

/* Where there is none before the first element its place is no index, and pick gives 0. */
static weft_value picked(weft_vjp *vjp, const weft_cumulate_attributes *a)
{
    const weft_value x = vjp->in[0];
    const weft_dim dim = {a->dim, a->size};
    const weft_value place = place_of(vjp, a, dim);
    const weft_shape shape = *weft_shape_of(x); /* before pick, which may move it */
    const weft_value y = weft_transpose(weft_pick(x, place, dim), shape);
    if (!a->exclusive) return y;
    const weft_value at = weft_iota(vjp->graph, WEFT_I32, dim);
    const double first = a->reverse ? (double)(dim.size - 1) : 0.0;
    const weft_value is_first =
        weft_equal(at, weft_constant(vjp->graph, WEFT_I32, WEFT_SCALAR, first));
    const weft_dtype dtype = weft_dtype_of(x);
    const weft_value none = weft_constant(vjp->graph, dtype, WEFT_SCALAR, tops.neutral[dtype]);
    return weft_where(is_first, none, y);
}

static void expand(weft_vjp *vjp)
{
    const weft_cumulate_attributes *a = vjp->site->attributes;
    vjp->out[0] = a->blocks > 0 ? weft_cumulate_by_blocks(&tops, vjp->in[0], a) : picked(vjp, a);
}

const weft_op weft_op_cummax = {
    .name = "cummax",
    .attributes = &weft_attributes_cumulate,
    .infer = weft_infer_cumulate,
    .factors = weft_factors_cumulate,
    .expand = expand,
    .is_apart = weft_cumulate_is_apart,
};

weft_value weft_cummax(weft_value x, weft_dim dim, bool exclusive, bool reverse)
{
    return weft_cumulate(x, dim, exclusive, reverse, &tops);
}
