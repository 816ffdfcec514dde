/* random_uniform: uniform in [low, high); new numbers every run.
 *
 * Philox keyed by (seed, this op's stream, step), counted by the element's global index: the same
 * numbers on every mesh and layout. Computed in double, then rounded.
 */
#include "random_element.h"
#include "weft/ops.h"

WEFT_RANDOM_ELEMENT(uint32_t, weft_random_fill, n0 + weft_philox_unit(drawn) * (n1 - n0),
                    "n0 + weft_philox_unit(weft_random_word(env, index)) * (n1 - n0)")

const weft_op weft_op_random_uniform = {
    .name = "random_uniform",
    .attributes = &weft_attributes_generator,
    .infer = weft_infer_generator,
    .factors = weft_factors_pass,
    .element = &element,
};

weft_value weft_random_uniform(weft_graph *graph, weft_dtype dtype, weft_shape shape, double low,
                               double high)
{
    return weft_emit_random(graph, &weft_op_random_uniform, dtype, shape, low, high);
}
