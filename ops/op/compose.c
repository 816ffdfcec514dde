/* compose.c: builders that are compositions of ops: nothing here is known to the compiler. */
#include "op.h"
#include "weft/ops.h"

weft_value weft_minimum(weft_value a, weft_value b)
{
    return weft_neg(weft_maximum(weft_neg(a), weft_neg(b)));
}

weft_value weft_one_hot(weft_value ids, weft_dim dim, weft_dtype dtype)
{
    return weft_cast(weft_equal(ids, weft_iota(ids.graph, WEFT_I32, dim)), dtype);
}

/* ---- products of many operands --------------------------------------------------------------- */

/* The dims of a and b that are still needed: by the result, or by operands yet to come. */
static weft_shape needed_dims(weft_value a, weft_value b, const weft_shape *out, weft_values rest)
{
    weft_shape shape = weft_shape_make(NULL, 0);
    const weft_value both[] = {a, b};
    for (int i = 0; i < 2; i++)
        for (int d = 0; d < weft_shape_of(both[i])->n_dims; d++) {
            const weft_dim dim = weft_shape_of(both[i])->dims[d];
            bool needed = weft_shape_find(out, dim.name) >= 0;
            for (int k = 0; k < rest.n_values; k++)
                needed = needed || weft_shape_find(weft_shape_of(rest.values[k]), dim.name) >= 0;
            if (!needed || weft_shape_find(&shape, dim.name) >= 0) continue;
            if (shape.n_dims < WEFT_MAX_DIMS) shape.dims[shape.n_dims] = dim;
            if (++shape.n_dims > WEFT_MAX_DIMS) return shape; /* weft_einsum says so */
        }
    return shape;
}

weft_value weft_einsum_n(weft_shape out, weft_values operands)
{
    if (operands.n_values < 1) return weft_no_value(NULL);
    weft_graph *graph = operands.values[0].graph;
    if (operands.n_values > WEFT_MAX_IN)
        return weft_graph_fail(graph,
                               "einsum: %d operands; the most is %d. Multiply some of them first",
                               operands.n_values, WEFT_MAX_IN);
    weft_value product = operands.values[0];
    for (int i = 1; i + 1 < operands.n_values; i++) {
        const weft_values rest = {operands.values + i + 1, operands.n_values - i - 1};
        product = weft_einsum(needed_dims(product, operands.values[i], &out, rest), product,
                              operands.values[i]);
    }
    if (operands.n_values == 1) return weft_sum(out, product);
    return weft_einsum(out, product, operands.values[operands.n_values - 1]);
}

/* ---- means ----------------------------------------------------------------------------------- */

weft_value weft_mean_over(weft_shape out, weft_value x)
{
    const double count = weft_count_of(weft_shape_of(x));
    return weft_scale(weft_sum(out, x), weft_count_of(&out) / count);
}

weft_value weft_mean(weft_value x)
{
    return weft_mean_over(WEFT_SCALAR, x);
}

/* ---- over one dim ---------------------------------------------------------------------------- */

weft_value weft_softmax(weft_value x, weft_dim dim)
{
    return weft_exp(weft_log_softmax(x, dim));
}

weft_value weft_log_softmax(weft_value x, weft_dim dim)
{
    return weft_sub(x, weft_logsumexp(x, dim));
}

/* The logits are never subtracted from: one number a row comes out of each of the two reductions.
 */
weft_value weft_cross_entropy(weft_value logits, weft_value labels, weft_dim dim)
{
    return weft_sub(weft_logsumexp(logits, dim), weft_pick(logits, labels, dim));
}

weft_value weft_layer_norm(weft_value x, weft_value gain, weft_value bias, weft_dim dim)
{
    weft_value mean = weft_norm_stats(x, dim, 1e-5), rstd = weft_result(mean, 1);
    weft_value normal = weft_mul(weft_sub(x, mean), rstd);
    return weft_add(weft_mul(normal, gain), bias);
}
