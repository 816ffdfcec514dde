/* less: 1 where a < b, else 0, as i32; broadcast by name. No gradient.
 */
#include "element.h"
#include "weft/ops.h"

WEFT_ELEMENT_COMPARE(x < y)

const weft_op weft_op_less = {
    .name = "less",
    .infer = weft_infer_compare,
    .factors = weft_factors_pass,
    .element = &element,
};

weft_value weft_less(weft_value a, weft_value b)
{
    const weft_value in[] = {a, b};
    return weft_emit_element(&weft_op_less, in, 2, 0.0, 0.0);
}
