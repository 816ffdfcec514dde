/* clamp: x, but not below n0 nor above n1. NaN stays.
 *
 * Gradient: dx = dy where x was kept.
 */
#include "element.h"

#include <math.h>

#include "weft/ops.h"

WEFT_ELEMENT_1W(x<n0 ? n0 : x> n1 ? n1 : x, x<n0 ? n0 : x> n1 ? n1 : x, x<n0 ? n0 : x> n1 ? n1 : x)

static void gradient(weft_vjp *vjp)
{
    weft_value zero = weft_constant(vjp->graph, weft_dtype_of(vjp->out[0]), WEFT_SCALAR, 0.0);
    weft_value is_kept = weft_equal(vjp->in[0], vjp->out[0]);
    vjp->din[0] = weft_where(is_kept, vjp->dout[0], zero);
}

const weft_op weft_op_clamp = {
    .name = "clamp",
    .infer = weft_infer_same,
    .factors = weft_factors_pass,
    .gradient = gradient,
    .element = &element,
};

weft_value weft_clamp(weft_value x, double low, double high)
{
    if (!(low <= high))
        return weft_graph_fail(x.graph, "clamp: from %g to %g; the first is not above the second",
                               low, high);
    /* Ends past the range bound nothing; a fraction would be cut. */
    const double ends[] = {low, high};
    for (int i = 0; i < 2; i++)
        if (x.id != 0 && ends[i] != trunc(ends[i]) &&
            !weft_holds(x.graph, "clamp", weft_dtype_of(x), ends[i]))
            return weft_no_value(x.graph);
    return weft_emit_element(&weft_op_clamp, &x, 1, low, high);
}
