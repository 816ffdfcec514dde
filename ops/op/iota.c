/* iota: 0, 1, 2, ... along one dim: the global coordinate, however the dim is split. */
#include "element.h"
#include "weft/ops.h"

WEFT_ELEMENT_0(WEFT_INDEX_ALONG, index)

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
