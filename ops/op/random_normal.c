/* random_normal: normal with a mean and a deviation; new numbers every run.
 *
 * Philox keyed by (seed, this op's stream, step), counted by the element's global index: the same
 * numbers on every mesh and layout. Computed in double, then rounded. Initial values are these numbers too.
 */
#include "element.h"
#include "random.h"
#include "weft/ops.h"

#define BLOCK(name, T)                                                                             \
    static void name(int64_t n, void *out, const void *const *in, const weft_block_env *env)       \
    {                                                                                              \
        T *out_ = out;                                                                             \
        (void)in;                                                                                  \
        const double n0 = env->number[0], n1 = env->number[1];                                     \
        double numbers[WEFT_BLOCK];                                                                \
        weft_random_gauss(weft_random_key(env), n, env, numbers);                                  \
        for (int64_t i = 0; i < n; i++)                                                            \
            out_[i] = (T)(n0 + n1 * numbers[i]);                                                   \
    }
/* The same, of one element. */
#define TEXT "n0 + n1 * weft_random_normal_at(env, index)"
BLOCK(block_f32, float)
BLOCK(block_f64, double)
static const weft_element element = {.size = sizeof(weft_element),
                                     .index = WEFT_INDEX_LINEAR,
                                     .block[WEFT_F32][WEFT_F32] = block_f32,
                                     .block[WEFT_F64][WEFT_F64] = block_f64,
                                     .text[WEFT_F32][WEFT_F32] = TEXT,
                                     .text[WEFT_F64][WEFT_F64] = TEXT};

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
