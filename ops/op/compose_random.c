/* compose_random.c: random numbers that are compositions of uniform ones: functions of (seed, op, run, element), so the same under
 * every layout.
 */
#include <float.h>

#include "op.h"
#include "weft/ops.h"

/* In (0, 1), of 48 bits: a fraction of 24 has ties where there are thousands, and no number near 0 or 1. */
static weft_value fraction(weft_graph *graph, weft_shape shape)
{
    const weft_value high = weft_random_uniform(graph, WEFT_F64, shape, 0.0, 1.0);
    const weft_value low = weft_random_uniform(graph, WEFT_F64, shape, 0.0, 0x1p-24);
    return weft_shift(weft_add(high, low), 0x1p-49);
}

/* Whether the dtype has this integer and the one next to it, towards 0: then it has all between. */
static bool holds(weft_dtype dtype, int64_t value)
{
    const int64_t both[] = {value, value - (value > 0) + (value < 0)};
    for (int i = 0; i < 2; i++) {
        int64_t memory = 0;
        weft_dtype_put(dtype, &memory, 0, (double)both[i]);
        if (weft_dtype_get(dtype, &memory, 0) != (double)both[i]) return false;
    }
    return true;
}

weft_value weft_random_int(weft_graph *graph, weft_dtype dtype, weft_shape shape, int64_t low,
                           int64_t high)
{
    const int64_t most = (int64_t)1 << 40;
    if (low < -most || high > most || high <= low)
        return weft_graph_fail(
            graph,
            "random_int: from %lld on, below %lld; there must be an integer, and "
            "both are at most 2^40 away from 0",
            (long long)low, (long long)high);
    if ((unsigned)dtype < WEFT_DTYPES && !(holds(dtype, low) && holds(dtype, high - 1)))
        return weft_graph_fail(graph,
                               "random_int: %s does not have all integers from %lld on, below "
                               "%lld; take a dtype that has, such as i64",
                               weft_dtype_name(dtype), (long long)low, (long long)high);
    const weft_value at = weft_scale(fraction(graph, shape), (double)(high - low));
    return weft_cast(weft_shift(weft_floor(at), (double)low), dtype);
}

/* ---- 0 or 1 -------------------------------------------------------------------------------------- */

static weft_value below(weft_value of, weft_value probability, weft_dtype dtype)
{
    return weft_cast(weft_less(of, probability), dtype);
}

weft_value weft_random_bernoulli(weft_graph *graph, weft_dtype dtype, weft_shape shape,
                                 double probability)
{
    if (!(probability >= 0 && probability <= 1))
        return weft_graph_fail(graph, "random_bernoulli: the probability is %g; it is from 0 to 1",
                               probability);
    const weft_value of = weft_random_uniform(graph, WEFT_F64, shape, 0.0, 1.0);
    return below(of, weft_constant(graph, WEFT_F64, WEFT_SCALAR, probability), dtype);
}

weft_value weft_random_bernoulli_of(weft_value probability)
{
    if (probability.id == 0) return weft_no_value(probability.graph);
    const weft_value wide = weft_cast(probability, WEFT_F64);
    const weft_value of =
        weft_random_uniform(probability.graph, WEFT_F64, *weft_shape_of(wide), 0.0, 1.0);
    return below(of, wide, weft_dtype_of(probability));
}

/* ---- others ---------------------------------------------------------------------------------------- */

/* By the inverse of the distribution: 0.9545 of a normal one lies within two deviations. */
weft_value weft_random_truncated_normal(weft_graph *graph, weft_dtype dtype, weft_shape shape,
                                        double mean, double deviation)
{
    const double within = 0.95449973610364158, root_2 = 1.4142135623730951;
    const weft_value share = weft_shift(weft_scale(fraction(graph, shape), 2.0 * within), -within);
    const weft_value normal = weft_scale(weft_erfinv(share), root_2 * deviation);
    return weft_cast(weft_shift(normal, mean), dtype);
}

weft_value weft_random_gumbel(weft_graph *graph, weft_dtype dtype, weft_shape shape)
{
    const weft_value late = weft_neg(weft_log(fraction(graph, shape)));
    return weft_cast(weft_neg(weft_log(late)), dtype);
}

weft_value weft_random_categorical(weft_value logits, weft_dim dim)
{
    if (logits.id == 0) return weft_no_value(logits.graph);
    if (!weft_takes_float(logits, "random_categorical")) return weft_no_value(logits.graph);
    const weft_value wide = weft_cast(logits, WEFT_F64);
    const weft_value noise = weft_random_gumbel(logits.graph, WEFT_F64, *weft_shape_of(wide));
    /* Beside numbers that are all large there would be no noise. Where none is above -inf, the maximum stays finite. */
    const weft_shape rows = weft_shape_without(weft_shape_of(wide), dim.name);
    const weft_value least = weft_constant(logits.graph, WEFT_F64, WEFT_SCALAR, -DBL_MAX);
    const weft_value top = weft_maximum(weft_max(rows, wide), least);
    return weft_argmax(weft_add(weft_sub(wide, top), noise), dim);
}
