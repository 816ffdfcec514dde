/* run_number: the number of this run, from 1, as a scalar: what schedules and bias corrections count by.
 */
#include "element.h"
#include "weft/ops.h"

WEFT_ELEMENT_0(WEFT_INDEX_NONE, (uint32_t)env->step)

const weft_op weft_op_run_number = {
    .name = "run_number",
    .attributes = &weft_attributes_generator,
    .infer = weft_infer_generator,
    .factors = weft_factors_pass,
    .element = &element,
};

weft_value weft_run_number(weft_graph *graph, weft_dtype dtype)
{
    weft_generator_attributes attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.type.dtype = dtype;
    return weft_emit(graph, &weft_op_run_number, NULL, 0, &attributes, sizeof attributes);
}
