/* sign: -1, 0 or 1; of NaN NaN. No gradient.
 */
#include "element.h"
#include "weft/ops.h"

WEFT_ELEMENT_1W(x > 0 ? 1 : x < 0 ? -1 : x, (x > 0) - (x < 0), (x > 0) - (x < 0))

const weft_op weft_op_sign = {
    .name = "sign",
    .infer = weft_infer_same,
    .factors = weft_factors_pass,
    .element = &element,
};

weft_value weft_sign(weft_value x)
{
    return weft_emit_element(&weft_op_sign, &x, 1, 0.0, 0.0);
}
