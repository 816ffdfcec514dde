/* ceil: the smallest whole number that is not below x. No gradient.
 */
#include "element.h"
#include "weft/ops.h"

WEFT_ELEMENT_1X(ceilf(x), ceil(x))

const weft_op weft_op_ceil = {
    .name = "ceil",
    .infer = weft_infer_same,
    .factors = weft_factors_pass,
    .element = &element,
};

weft_value weft_ceil(weft_value x)
{
    return weft_emit_element(&weft_op_ceil, &x, 1, 0.0, 0.0);
}
