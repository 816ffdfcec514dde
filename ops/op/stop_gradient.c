/* stop_gradient: y = x, and no gradient flows back. Linear: a partial sum may stay partial. */
#include "element.h"
#include "weft/ops.h"

WEFT_ELEMENT_COPY

const weft_op weft_op_stop_gradient = {
    .name = "stop_gradient",
    .infer = weft_infer_same,
    .factors = weft_factors_pass,
    .linear = 1,
    .selects = true,
    .element = &element,
};

weft_value weft_stop_gradient(weft_value x)
{
    return weft_emit_element(&weft_op_stop_gradient, &x, 1, 0.0, 0.0);
}
