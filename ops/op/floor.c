/* floor: the largest whole number that is not above x. No gradient.
 */
#include "element.h"
#include "weft/ops.h"

WEFT_ELEMENT_1X(floorf(x), floor(x))

const weft_op weft_op_floor = {
    .name = "floor",
    .infer = weft_infer_same,
    .factors = weft_factors_pass,
    .element = &element,
};

weft_value weft_floor(weft_value x)
{
    return weft_emit_element(&weft_op_floor, &x, 1, 0.0, 0.0);
}
