/* floor_div: a / b rounded down, broadcast by name. Integers by 0 give 0. No gradient.
 */
#include "element.h"
#include "weft/ops.h"

WEFT_ELEMENT_2W(weft_floor_div_f64(x, y), weft_floor_div_i64(x, y), weft_floor_div_i64(x, y))

const weft_op weft_op_floor_div = {
    .name = "floor_div",
    .infer = weft_infer_broadcast,
    .factors = weft_factors_pass,
    .element = &element,
};

weft_value weft_floor_div(weft_value a, weft_value b)
{
    const weft_value in[] = {a, b};
    return weft_emit_element(&weft_op_floor_div, in, 2, 0.0, 0.0);
}
