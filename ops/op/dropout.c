/* dropout: 0 with probability `rate`, else x / (1 - rate); a new mask every run. Linear.
 *
 * The mask is a function of (seed, stream, step, global index), so it is the same on every mesh and
 * layout, and the gradient is dropout of dy with the very same attributes: no mask is stored.
 * source  Srivastava et al. 2014, "Dropout: a simple way to prevent neural networks from
 * overfitting"
 */
#include "element.h"
#include "ir.h"
#include "random.h"
#include "weft/ops.h"

/* n0: the rate, n1: 1 / (1 - rate). A word's upper 24 bits are its place in [0, 1), as
 * weft_philox_unit says. */
#define BLOCK(name, T)                                                                             \
    WEFT_TARGET_CLONES static void name(int64_t n, void *out, const void *const *in,               \
                                        const weft_block_env *env)                                 \
    {                                                                                              \
        T *out_ = out;                                                                             \
        const T *x = in[0];                                                                        \
        const T keep = (T)env->number[1];                                                          \
        const double rate = env->number[0];                                                        \
        uint32_t words[WEFT_BLOCK];                                                                \
        weft_random_fill(weft_random_key(env), n, env, words);                                     \
        WEFT_IVDEP                                                                                 \
        for (int64_t i = 0; i < n; i++)                                                            \
            out_[i] = weft_philox_unit(words[i]) >= rate ? x[i] * keep : 0;                        \
    }
/* The same, of one element. */
#define TEXT "weft_philox_unit(weft_random_word(env, index)) >= env->number[0] ? x * n1 : 0"
BLOCK(block_f32, float)
BLOCK(block_f64, double)
static const weft_element element = {.size = sizeof(weft_element),
                                     .index = WEFT_INDEX_LINEAR,
                                     .block[WEFT_F32][WEFT_F32] = block_f32,
                                     .block[WEFT_F64][WEFT_F64] = block_f64,
                                     .text[WEFT_F32][WEFT_F32] = TEXT,
                                     .text[WEFT_F64][WEFT_F64] = TEXT};

static void gradient(weft_vjp *vjp)
{
    vjp->din[0] = weft_emit(vjp->graph, &weft_op_dropout, &vjp->dout[0], 1, vjp->site->attributes,
                            sizeof(weft_element_attributes));
}

const weft_op weft_op_dropout = {
    .name = "dropout",
    .infer = weft_infer_same,
    .factors = weft_factors_pass,
    .linear = 1,
    .selects = true,
    .gradient = gradient,
    .element = &element,
};

weft_value weft_dropout(weft_value x, double rate)
{
    if (!(rate >= 0.0 && rate < 1.0))
        return weft_graph_fail(x.graph, "dropout: the rate is %g; it is at least 0 and below 1",
                               rate);
    if (rate == 0.0) return x;
    weft_element_attributes attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.number[0] = rate;
    attributes.number[1] = 1.0 / (1.0 - rate);
    attributes.random = weft_graph_next_random(x.graph);
    const weft_value dropped =
        weft_emit(x.graph, &weft_op_dropout, &x, 1, &attributes, sizeof attributes);
    weft_stands_for(x, dropped);
    return dropped;
}
