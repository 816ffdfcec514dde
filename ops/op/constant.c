/* constant: a tensor of one number. */
#include "element.h"

#include <math.h>

#include "weft/ops.h"

WEFT_ELEMENT_0(WEFT_INDEX_NONE, n0)

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

bool weft_holds(weft_graph *graph, const char *what, weft_dtype dtype, double number)
{
    int64_t memory = 0;
    if ((unsigned)dtype >= WEFT_DTYPES || weft_dtype_is_float(dtype)) return true;
    weft_dtype_put(dtype, &memory, 0, number); /* kept in the range */
    const bool is_within = weft_dtype_get(dtype, &memory, 0) == trunc(number) && number < 0x1p63;
    if (is_within && number == trunc(number)) return true;
    (void)weft_graph_fail(graph, "%s: %g is no %s: it %s. Floats have it: f32, f64, bf16 and f16",
                          what, number, weft_dtype_name(dtype),
                          is_within ? "has a fraction" : "is past the range");
    return false;
}

weft_value weft_constant(weft_graph *graph, weft_dtype dtype, weft_shape shape, double value)
{
    if (!weft_holds(graph, "constant", dtype, value)) return weft_no_value(graph);
    weft_generator_attributes attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.element.number[0] = value;
    attributes.type.dtype = dtype;
    if (!weft_graph_shape(graph, "constant", &shape, &attributes.type.shape))
        return weft_no_value(graph);
    return weft_emit(graph, &weft_op_constant, NULL, 0, &attributes, sizeof attributes);
}
