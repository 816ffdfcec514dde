/* random_normal: normal with a mean and a deviation; new numbers every run.
 *
 * Philox keyed by (seed, this op's stream, step), counted by the element's global index: the same
 * numbers on every mesh and layout. Computed in double, then rounded. Initial values are these numbers too.
 */
#include "random_element.h"
#include "weft/ops.h"

WEFT_RANDOM_ELEMENT(double, weft_random_gauss, n0 + n1 * drawn,
                    "n0 + n1 * weft_random_normal_at(env, index)")

const weft_op weft_op_random_normal = {
    .name = "random_normal",
    .attributes = &weft_attributes_generator,
    .infer = weft_infer_generator,
    .factors = weft_factors_pass,
    .element = &element,
};

weft_value weft_random_normal(weft_graph *graph, weft_dtype dtype, weft_shape shape, double mean,
                              double deviation)
{
    return weft_emit_random(graph, &weft_op_random_normal, dtype, shape, mean, deviation);
}
