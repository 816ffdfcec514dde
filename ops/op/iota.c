/* iota: 0, 1, 2, ... along one dim: the global coordinate, however the dim is split. */
#include "element.h"
#include "weft/ops.h"

WEFT_BLOCK_0(block_f32, float, index)
WEFT_BLOCK_0(block_f64, double, index)
WEFT_BLOCK_0(block_i32, int32_t, index)
WEFT_BLOCK_0(block_i64, int64_t, index)
static const weft_element element = {.size = sizeof(weft_element),
                                     .index = WEFT_INDEX_ALONG,
                                     .block[WEFT_F32][WEFT_F32] = block_f32,
                                     .block[WEFT_F64][WEFT_F64] = block_f64,
                                     .block[WEFT_I32][WEFT_I32] = block_i32,
                                     .block[WEFT_I64][WEFT_I64] = block_i64};

const weft_op weft_op_iota = {
    .name = "iota",
    .attributes = &weft_attributes_generator,
    .infer = weft_infer_generator,
    .factors = weft_factors_pass,
    .element = &element,
};

weft_value weft_iota(weft_graph *graph, weft_dtype dtype, weft_dim dim)
{
    const bool is_small = dtype == WEFT_U8 || dtype == WEFT_I32;
    if (is_small && dim.size > (dtype == WEFT_U8 ? 256 : INT32_MAX))
        return weft_graph_fail(graph, "iota: %s has size %lld, past what %s counts to; make it i64",
                               dim.name, (long long)dim.size, weft_dtype_name(dtype));
    weft_generator_attributes attributes;
    memset(&attributes, 0, sizeof attributes);
    const weft_shape shape = weft_shape_make(&dim, 1);
    if (!weft_graph_shape(graph, "iota", &shape, &attributes.type.shape))
        return weft_no_value(graph);
    attributes.type.dtype = dtype;
    attributes.element.dim = attributes.type.shape.dims[0].name;
    return weft_emit(graph, &weft_op_iota, NULL, 0, &attributes, sizeof attributes);
}
