/* compose_reduce.c: reductions, norms and losses that are compositions of ops. */
#include "op.h"
#include "weft/ops.h"

static weft_value number_like(weft_value x, double value)
{
    return weft_constant(x.graph, weft_dtype_of(x), WEFT_SCALAR, value);
}

/* ---- reductions ---------------------------------------------------------------------------------- */

bool weft_takes_float(weft_value x, const char *builder)
{
    const weft_site site = {.n_in = 1, .in[0] = {weft_dtype_of(x), *weft_shape_of(x)}};
    weft_error error = {WEFT_OK, -1, ""};
    if (weft_check_float(&site, 0, &error) == WEFT_OK) return true;
    (void)weft_graph_fail(x.graph, "%s: %s", builder, error.message);
    return false;
}

weft_value weft_opposite(weft_value x)
{
    const weft_dtype dtype = weft_dtype_of(x);
    if (weft_dtype_is_float(dtype)) return weft_neg(x);
    return weft_sub(number_like(x, dtype == WEFT_U8 ? 255.0 : -1.0), x);
}

weft_value weft_min(weft_shape out, weft_value x)
{
    if (x.id == 0) return weft_no_value(x.graph);
    const weft_value top = weft_max(out, weft_opposite(x));
    return top.id == 0 ? top : weft_opposite(top);
}

weft_value weft_cummin(weft_value x, weft_dim dim, bool exclusive, bool reverse)
{
    if (x.id == 0) return weft_no_value(x.graph);
    const weft_value top = weft_cummax(weft_opposite(x), dim, exclusive, reverse);
    return top.id == 0 ? top : weft_opposite(top);
}

weft_value weft_argmin(weft_value x, weft_dim dim)
{
    if (!weft_takes_float(x, "argmin")) return weft_no_value(x.graph);
    return weft_argmax(weft_opposite(x), dim);
}

weft_value weft_any(weft_shape out, weft_value x)
{
    if (x.id == 0) return weft_no_value(x.graph);
    return weft_max(out, weft_not_equal(x, number_like(x, 0.0)));
}

weft_value weft_all(weft_shape out, weft_value x)
{
    return weft_logical_not(weft_any(out, weft_logical_not(x)));
}

weft_value weft_variance(weft_shape out, weft_value x, double correction)
{
    if (x.id == 0) return weft_no_value(x.graph);
    const weft_value wide = weft_wide(x);
    const double left = weft_count_of(weft_shape_of(x)) / weft_count_of(&out) - correction;
    if (!(left > 0))
        return weft_graph_fail(x.graph,
                               "variance: of %g elements each, less a correction of %g, nothing is "
                               "left to divide by",
                               left + correction, correction);
    const weft_value apart = weft_sub(wide, weft_mean_over(out, wide));
    const weft_value sum = weft_sum(out, weft_square(apart));
    return weft_cast(weft_scale(sum, 1.0 / left), weft_dtype_of(x));
}

/* ---- norms --------------------------------------------------------------------------------------- */

/* x's dims without those of `over`. */
static weft_shape shape_without_all(weft_value x, weft_shape over)
{
    weft_shape shape = *weft_shape_of(x);
    for (int d = 0; d < over.n_dims && d < WEFT_MAX_DIMS; d++)
        shape = weft_shape_without(&shape, over.dims[d].name);
    return shape;
}

static bool has_all(weft_value x, const char *builder, weft_shape over)
{
    for (int d = 0; d < over.n_dims && d < WEFT_MAX_DIMS; d++) {
        const weft_dim dim = over.dims[d];
        char text[300];
        if (dim.name != NULL && dim.size > 0 && weft_dim_of(x, dim.name).size == dim.size) continue;
        weft_shape_print(weft_shape_of(x), text, sizeof text);
        (void)weft_graph_fail(x.graph, "%s: over %s:%lld, but x is %s", builder,
                              dim.name ? dim.name : "(none)", (long long)dim.size, text);
        return false;
    }
    return true;
}

weft_value weft_normalize(weft_value x, weft_shape over, double epsilon)
{
    if (x.id == 0 || !has_all(x, "normalize", over)) return weft_no_value(x.graph);
    const weft_shape rows = shape_without_all(x, over);
    const weft_value wide = weft_wide(x), mean = weft_mean_over(rows, wide);
    const weft_value apart = weft_sub(wide, mean);
    const weft_value variance = weft_mean_over(rows, weft_square(apart));
    const weft_value r = weft_rsqrt(weft_shift(variance, epsilon));
    return weft_cast(weft_normalized(weft_mul(apart, r), wide, r, mean), weft_dtype_of(x));
}

weft_value weft_rms_norm_by(weft_value x, weft_value gain, weft_dim dim, double epsilon)
{
    if (x.id == 0 || !has_all(x, "rms_norm", WEFT_DIMS(dim))) return weft_no_value(x.graph);
    const weft_value wide = weft_wide(x);
    const weft_value square =
        weft_mean_over(shape_without_all(x, WEFT_DIMS(dim)), weft_square(wide));
    const weft_value r = weft_rsqrt(weft_shift(square, epsilon));
    const weft_value normal = weft_normalized(weft_mul(wide, r), wide, r, weft_no_value(x.graph));
    return weft_cast(weft_mul(normal, weft_wide(gain)), weft_dtype_of(x));
}

weft_value weft_rms_norm(weft_value x, weft_value gain, weft_dim dim)
{
    return weft_rms_norm_by(x, gain, dim, 1e-5);
}

/* ---- losses -------------------------------------------------------------------------------------- */

/* With its sign, which the product of the two takes off again: abs has no second derivative at 0, and the loss has. */
weft_value weft_huber(weft_value prediction, weft_value target, double delta)
{
    const weft_value apart = weft_sub(prediction, target);
    if (apart.id == 0) return apart;
    if (!(delta > 0))
        return weft_graph_fail(apart.graph, "huber: delta is %g; it is above 0", delta);
    const weft_value near = weft_clamp(apart, -delta, delta);
    return weft_mul(near, weft_sub(apart, weft_scale(near, 0.5)));
}

/* -t log s(x) - (1 - t) log(1 - s(x)), which is softplus(x) - t x, and softplus(-x) + (1 - t) x. The one cancels where a large x
 * is right, the other where a large -x is. Both products in one sum would be opposite infinities, with an infinite t. */
weft_value weft_sigmoid_cross_entropy(weft_value logits, weft_value targets)
{
    const weft_value is_above = weft_greater(logits, number_like(logits, 0.0));
    const weft_value share =
        weft_add(weft_neg(targets), weft_cast(is_above, weft_dtype_of(logits)));
    const weft_value away = weft_where(is_above, weft_neg(logits), logits);
    return weft_add(weft_mul(share, logits), weft_softplus(away));
}

weft_value weft_kl_divergence(weft_value log_p, weft_value log_q, weft_dim dim)
{
    if (log_p.id == 0 || !has_all(log_p, "kl_divergence", WEFT_DIMS(dim)))
        return weft_no_value(log_p.graph);
    /* What has no probability adds nothing, whatever log q is. */
    const weft_value p = weft_exp(log_p), zero = number_like(log_p, 0.0);
    const weft_value apart = weft_where(weft_greater(p, zero), weft_sub(log_p, log_q), zero);
    return weft_sum(shape_without_all(log_p, WEFT_DIMS(dim)), weft_mul(p, apart));
}

/* Each length is divided by before they meet: their product would overflow, or vanish, where they do not. */
static weft_value unit_along(weft_value x, weft_dim dim)
{
    if (x.id == 0) return x;
    const weft_value squares = weft_sum(shape_without_all(x, WEFT_DIMS(dim)), weft_square(x));
    return weft_mul(x, weft_rsqrt(weft_maximum(squares, number_like(squares, 1e-16))));
}

weft_value weft_cosine(weft_value a, weft_value b, weft_dim dim)
{
    if (a.id == 0 || !has_all(a, "cosine", WEFT_DIMS(dim))) return weft_no_value(a.graph);
    const weft_value along_a = unit_along(weft_wide(a), dim),
                     along_b = unit_along(weft_wide(b), dim);
    const weft_value both = weft_mul(along_a, along_b);
    if (both.id == 0) return both;
    const weft_value cosine = weft_sum(shape_without_all(both, WEFT_DIMS(dim)), both);
    return weft_cast(cosine, weft_dtype_of(a));
}
