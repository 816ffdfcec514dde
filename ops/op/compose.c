/* compose.c: builders that are compositions of ops: nothing here is known to the compiler. */
#include "op.h"
#include "weft/ops.h"

weft_value weft_minimum(weft_value a, weft_value b)
{
    if (weft_dtype_is_float(weft_dtype_of(a)))
        return weft_neg(weft_maximum(weft_neg(a), weft_neg(b)));
    return weft_where(weft_less(a, b), a, b); /* the least integer has no opposite */
}

weft_value weft_one_hot(weft_value ids, weft_dim dim, weft_dtype dtype)
{
    if (ids.id != 0 && weft_dtype_of(ids) != WEFT_I32)
        return weft_graph_fail(ids.graph, "one_hot: ids are %s; they are i32. weft_cast them",
                               weft_dtype_name(weft_dtype_of(ids)));
    return weft_cast(weft_equal(ids, weft_iota(ids.graph, WEFT_I32, dim)), dtype);
}

/* ---- means ----------------------------------------------------------------------------------- */

weft_value weft_mean_over(weft_shape out, weft_value x)
{
    const double count = weft_count_of(weft_shape_of(x));
    const weft_value mean = weft_scale(weft_sum(out, weft_wide(x)), weft_count_of(&out) / count);
    return weft_cast(mean, weft_dtype_of(x));
}

weft_value weft_mean(weft_value x)
{
    return weft_mean_over(WEFT_SCALAR, x);
}

/* A filter of equal numbers: sums, or how many elements there are. Its dims have names of its own: of a tap the size alone counts. */
weft_value weft_average_pool(weft_value x, weft_spatials spatial, bool counts_outside)
{
    static const char *const names[WEFT_CONV_WINDOWS] = {"pool_tap0", "pool_tap1", "pool_tap2"};
    weft_spatial own[WEFT_CONV_WINDOWS];
    if (x.id == 0) return weft_no_value(x.graph);
    if (spatial.dims == NULL || spatial.n_dims < 1 || spatial.n_dims > WEFT_CONV_WINDOWS)
        return weft_graph_fail(x.graph, "average_pool: %d dims of space; there are 1 to %d",
                               spatial.dims == NULL ? 0 : spatial.n_dims, WEFT_CONV_WINDOWS);
    weft_shape out = *weft_shape_of(x), taps = {0}, all = {0}, seen = {0};
    for (int s = 0; s < spatial.n_dims; s++) {
        weft_spatial *one = &own[s];
        *one = spatial.dims[s];
        one->tap.name = names[s];
        const int d = weft_shape_find(&out, one->in.name);
        if (d >= 0) out.dims[d] = one->out;
        taps.dims[taps.n_dims++] = one->tap;
        all.dims[all.n_dims++] = one->in;
        seen.dims[seen.n_dims++] = one->out;
    }
    const weft_value wide = weft_wide(x);
    const weft_dtype dtype = weft_dtype_of(wide);
    /* of all taps the sum is divided tap by tap: two passes fewer */
    const double share = counts_outside ? 1.0 / weft_count_of(&taps) : 1.0;
    const weft_value ones = weft_constant(x.graph, dtype, taps, share);
    spatial.dims = own;
    weft_value mean = weft_conv(out, wide, ones, spatial);
    if (!counts_outside) {
        const weft_value there = weft_constant(x.graph, dtype, all, 1.0);
        mean = weft_div(mean, weft_conv(seen, there, ones, spatial));
    }
    return weft_cast(mean, weft_dtype_of(x));
}

/* ---- over one dim ---------------------------------------------------------------------------- */

weft_value weft_logsumexp(weft_value x, weft_dim dim)
{
    const weft_normalizer of = weft_normalizer_of(weft_wide(x), dim);
    return weft_add(of.maximum, of.log_sum);
}

weft_value weft_softmax(weft_value x, weft_dim dim)
{
    return weft_cast(weft_exp(weft_log_softmax(weft_wide(x), dim)), weft_dtype_of(x));
}

weft_value weft_log_softmax(weft_value x, weft_dim dim)
{
    const weft_value wide = weft_wide(x);
    const weft_normalizer by = weft_normalizer_of(wide, dim);
    return weft_cast(weft_sub(weft_sub(wide, by.maximum), by.log_sum), weft_dtype_of(x));
}

/* ---- cross entropy --------------------------------------------------------------------------- */

/* One call: what was passed, and what all parts of the loss are made of. */
typedef struct entropy {
    weft_graph *graph;
    weft_value logits, labels;
    weft_dim dim;
    weft_cross_entropy_options options;
    weft_shape rows;            /* the logits' dims without dim */
    weft_normalizer normalizer; /* [rows] */
} entropy;

static bool is_given(weft_value value)
{
    return value.graph != NULL || value.id != 0;
}

/* `what` has dims of `shape` only, in their sizes, and the logits' dtype, or is i32. */
static bool fits(const entropy *e, const char *what, weft_value value, const weft_shape *shape,
                 weft_dtype dtype)
{
    char found[160], wanted[160];
    weft_shape_print(weft_shape_of(value), found, sizeof found);
    weft_shape_print(shape, wanted, sizeof wanted);
    if (value.graph != e->graph || value.id == 0)
        weft_graph_fail(
            e->graph,
            "cross_entropy: the %s are no value of this graph; pass what a builder returned", what);
    else if (weft_dtype_of(value) != dtype)
        weft_graph_fail(e->graph, "cross_entropy: the %s are %s, and %s here; weft_cast them", what,
                        weft_dtype_name(weft_dtype_of(value)),
                        dtype == WEFT_I32 ? "labels are i32"
                                          : "weights have the dtype of the logits");
    for (int d = 0; d < weft_shape_of(value)->n_dims; d++) {
        const weft_dim dim = weft_shape_of(value)->dims[d];
        const int k = weft_shape_find(shape, dim.name);
        if (k < 0 || shape->dims[k].size != dim.size)
            weft_graph_fail(e->graph,
                            "cross_entropy: the %s are %s, and of %s they may have all or some; "
                            "rename or remove the others",
                            what, found, wanted);
    }
    return weft_graph_status(e->graph) == WEFT_OK;
}

static bool check_entropy(const entropy *e)
{
    const weft_dtype dtype = weft_dtype_of(e->logits);
    const weft_cross_entropy_options *o = &e->options;
    const weft_shape classes = weft_shape_make(&e->dim, 1);
    if (!(o->label_smoothing >= 0 && o->label_smoothing <= 1))
        weft_graph_fail(e->graph, "cross_entropy: label_smoothing is %g; it is from 0 to 1",
                        o->label_smoothing);
    if (!(o->z_loss >= 0 && o->z_loss <= 1e30))
        weft_graph_fail(e->graph, "cross_entropy: z_loss is %g; it is a coefficient, 0 or above",
                        o->z_loss);
    return fits(e, "labels", e->labels, &e->rows, WEFT_I32) &&
           (!is_given(o->class_weights) ||
            fits(e, "class weights", o->class_weights, &classes, dtype)) &&
           (!is_given(o->row_weights) || fits(e, "row weights", o->row_weights, &e->rows, dtype));
}

/* logsumexp - the label's logit, by the label's weight. */
static weft_value label_loss(const entropy *e)
{
    const weft_value logit = weft_pick(e->logits, e->labels, e->dim);
    const weft_value loss = weft_add(weft_sub(e->normalizer.maximum, logit), e->normalizer.log_sum);
    if (!is_given(e->options.class_weights)) return loss;
    return weft_mul(loss, weft_gather(e->options.class_weights, e->labels, e->dim));
}

/* The mean over the classes of weight * (logsumexp - logit): a label that says nothing. */
static weft_value uniform_loss(const entropy *e)
{
    const weft_value weights = e->options.class_weights;
    const weft_value below = weft_sub(e->normalizer.maximum, e->logits);
    if (!is_given(weights)) return weft_add(weft_mean_over(e->rows, below), e->normalizer.log_sum);
    const weft_value sum = weft_mul(e->normalizer.log_sum, weft_sum(WEFT_SCALAR, weights));
    return weft_scale(weft_add(weft_einsum(e->rows, below, weights), sum),
                      1.0 / (double)e->dim.size);
}

static weft_value z_loss(const entropy *e)
{
    return weft_square(weft_add(e->normalizer.maximum, e->normalizer.log_sum));
}

/* i32: 1 where the label is one of dim's. */
static weft_value is_counted(const entropy *e)
{
    weft_value zero = weft_constant(e->graph, WEFT_I32, WEFT_SCALAR, 0.0);
    weft_value end = weft_constant(e->graph, WEFT_I32, WEFT_SCALAR, (double)e->dim.size);
    return weft_mul(weft_greater_equal(e->labels, zero), weft_less(e->labels, end));
}

static void widen_given(weft_value *value)
{
    if (is_given(*value)) *value = weft_wide(*value);
}

weft_value weft_cross_entropy_with(weft_value logits, weft_value labels, weft_dim dim,
                                   const weft_cross_entropy_options *options)
{
    logits = weft_wide(logits); /* the loss is f32 whatever they are */
    entropy e = {logits.graph, logits, labels, dim};
    if (options != NULL) e.options = *options;
    widen_given(&e.options.class_weights);
    widen_given(&e.options.row_weights);
    e.normalizer = weft_normalizer_of(logits, dim);
    if (weft_graph_status(e.graph) != WEFT_OK) return weft_no_value(e.graph);
    e.rows = *weft_shape_of(e.normalizer.maximum);
    if (!check_entropy(&e)) return weft_no_value(e.graph);
    const double smoothing = e.options.label_smoothing;
    weft_value loss = label_loss(&e);
    if (smoothing > 0)
        loss = weft_add(weft_scale(loss, 1.0 - smoothing), weft_scale(uniform_loss(&e), smoothing));
    if (e.options.z_loss > 0) loss = weft_add(loss, weft_scale(z_loss(&e), e.options.z_loss));
    if (is_given(e.options.row_weights)) loss = weft_mul(loss, e.options.row_weights);
    return weft_where(is_counted(&e), loss,
                      weft_constant(e.graph, weft_dtype_of(logits), WEFT_SCALAR, 0.0));
}

weft_value weft_cross_entropy(weft_value logits, weft_value labels, weft_dim dim)
{
    return weft_cross_entropy_with(logits, labels, dim, NULL);
}

/* ---- normalization --------------------------------------------------------------------------- */

weft_value weft_layer_norm_by(weft_value x, weft_value gain, weft_value bias, weft_dim dim,
                              double epsilon)
{
    const weft_dtype dtype = weft_dtype_of(x);
    x = weft_wide(x);
    weft_value mean = weft_norm_stats(x, dim, epsilon), rstd = weft_result(mean, 1);
    weft_value normal = weft_normalized(weft_mul(weft_sub(x, mean), rstd), x, rstd, mean);
    normal = weft_add(weft_mul(normal, weft_wide(gain)), weft_wide(bias));
    return weft_cast(normal, dtype);
}

weft_value weft_layer_norm(weft_value x, weft_value gain, weft_value bias, weft_dim dim)
{
    return weft_layer_norm_by(x, gain, bias, dim, 1e-5);
}
