/* constant: a tensor of one number. */
#include "element.h"
#include "weft/ops.h"

WEFT_BLOCK_0(block_f32, float, n0)
WEFT_BLOCK_0(block_f64, double, n0)
WEFT_BLOCK_0(block_i32, int32_t, n0)
static const weft_element element = {.size = sizeof(weft_element),
                                     .block[WEFT_F32][WEFT_F32] = block_f32,
                                     .block[WEFT_F64][WEFT_F64] = block_f64,
                                     .block[WEFT_I32][WEFT_I32] = block_i32};

static bool is_zero(const weft_site *site)
{
    const weft_generator_attributes *attributes = site->attributes;
    return attributes->element.number[0] == 0.0;
}

const weft_op weft_op_constant = {
    .name = "constant",
    .attributes = &weft_attributes_generator,
    .infer = weft_infer_generator,
    .factors = weft_factors_pass,
    .is_zero = is_zero,
    .element = &element,
};

weft_value weft_constant(weft_graph *graph, weft_dtype dtype, weft_shape shape, double value)
{
    if (dtype == WEFT_I32 && !(value >= -2147483648.0 && value <= 2147483647.0))
        return weft_graph_fail(graph, "constant: %g is no i32; the range is -2^31 to 2^31 - 1",
                               value);
    weft_generator_attributes attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.element.number[0] = value;
    attributes.type.dtype = dtype;
    if (!weft_graph_shape(graph, "constant", &shape, &attributes.type.shape))
        return weft_no_value(graph);
    return weft_emit(graph, &weft_op_constant, NULL, 0, &attributes, sizeof attributes);
}
