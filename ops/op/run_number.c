/* run_number: the number of this run, from 1, as a scalar: what schedules and bias corrections count by.
 */
#include "element.h"
#include "weft/ops.h"

WEFT_BLOCK_0(block_f32, float, env->step)
WEFT_BLOCK_0(block_f64, double, env->step)
WEFT_BLOCK_0(block_i32, int32_t, env->step)
WEFT_BLOCK_0(block_i64, int64_t, env->step)
static const weft_element element = {.size = sizeof(weft_element),
                                     .block[WEFT_F32][WEFT_F32] = block_f32,
                                     .block[WEFT_F64][WEFT_F64] = block_f64,
                                     .block[WEFT_I32][WEFT_I32] = block_i32,
                                     .block[WEFT_I64][WEFT_I64] = block_i64};

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
