/* round: the nearest whole number; of two, the even one. No gradient.
 */
#include "element.h"
#include "weft/ops.h"

WEFT_ELEMENT_1X(rintf(x), rint(x))

const weft_op weft_op_round = {
    .name = "round",
    .infer = weft_infer_same,
    .factors = weft_factors_pass,
    .element = &element,
};

weft_value weft_round(weft_value x)
{
    return weft_emit_element(&weft_op_round, &x, 1, 0.0, 0.0);
}
