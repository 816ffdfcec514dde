/* compose_norm.c: norms with gains and biases, and what is made of logits: compositions of ops. */
#include "op.h"
#include "weft/ops.h"

/* Whether x has dim, of that size; if not, that is the graph's error. */
static bool has_dim(weft_value x, const char *builder, const char *what, weft_dim dim)
{
    char text[300];
    if (dim.name != NULL && dim.size > 0 && weft_dim_of(x, dim.name).size == dim.size) return true;
    weft_shape_print(weft_shape_of(x), text, sizeof text);
    (void)weft_graph_fail(x.graph, "%s: %s %s:%lld, but x is %s", builder, what,
                          dim.name ? dim.name : "(none)", (long long)dim.size, text);
    return false;
}

static weft_value with_gain(weft_value normal, weft_value gain, weft_value bias, weft_dtype dtype)
{
    return weft_cast(weft_add(weft_mul(normal, weft_wide(gain)), weft_wide(bias)), dtype);
}

/* x with `channel` cut into groups, which keep its name and lie as it does, and channels of a group. */
static weft_value cut_into_groups(weft_value x, weft_dim groups, weft_dim within)
{
    const weft_shape *whole = weft_shape_of(x);
    weft_shape cut = {0};
    if (whole->n_dims == WEFT_MAX_DIMS)
        return weft_graph_fail(x.graph,
                               "group_norm: x has %d dims, and none can be added for channels of a "
                               "group; merge two (weft_reshape)",
                               whole->n_dims);
    for (int d = 0; d < whole->n_dims; d++) {
        const bool is_it = weft_shape_find(whole, groups.name) == d;
        cut.dims[cut.n_dims++] = is_it ? groups : whole->dims[d];
        if (is_it) cut.dims[cut.n_dims++] = within;
    }
    return weft_reshape(x, cut);
}

/* Whether all dims of a gain or a bias are x's. */
static bool is_within(weft_value gain, weft_value x)
{
    if (gain.id == 0) return false;
    const weft_shape *shape = weft_shape_of(gain);
    for (int d = 0; d < shape->n_dims; d++)
        if (weft_dim_of(x, shape->dims[d].name).size != shape->dims[d].size) return false;
    return true;
}

/* A gain or a bias, cut as x is, so that it is applied in the pass that normalizes. */
static weft_value of_groups(weft_value gain, weft_dim groups, weft_dim within)
{
    const bool has_it = weft_shape_find(weft_shape_of(gain), groups.name) >= 0;
    return has_it ? cut_into_groups(gain, groups, within) : gain;
}

weft_value weft_group_norm(weft_value x, weft_value gain, weft_value bias, weft_dim channel,
                           int64_t n_groups, weft_shape over, double epsilon)
{
    if (x.id == 0 || !has_dim(x, "group_norm", "channels are", channel))
        return weft_no_value(x.graph);
    if (n_groups < 1 || channel.size % n_groups != 0)
        return weft_graph_fail(
            x.graph,
            "group_norm: %s:%lld is not to be cut into %lld groups; take a number "
            "that divides it",
            channel.name, (long long)channel.size, (long long)n_groups);
    if (over.n_dims < 0 || over.n_dims >= WEFT_MAX_DIMS)
        return weft_graph_fail(x.graph,
                               "group_norm: over %d dims; beside the channels there are at most %d",
                               over.n_dims, WEFT_MAX_DIMS - 1);
    weft_dim within = weft_dim_beside(x.graph, channel);
    within.size = channel.size / n_groups;
    const weft_value cut =
        cut_into_groups(weft_wide(x), (weft_dim){channel.name, n_groups}, within);
    over.dims[over.n_dims++] = within;
    const weft_dim groups = {channel.name, n_groups};
    const weft_value normal = weft_normalize(cut, over, epsilon);
    if (normal.id == 0) return normal;
    if (!is_within(gain, x) || !is_within(bias, x)) /* with dims of their own, or wrong */
        return with_gain(weft_reshape(normal, *weft_shape_of(x)), gain, bias, weft_dtype_of(x));
    return weft_reshape(with_gain(normal, of_groups(gain, groups, within),
                                  of_groups(bias, groups, within), weft_dtype_of(x)),
                        *weft_shape_of(x));
}

weft_value weft_instance_norm(weft_value x, weft_value gain, weft_value bias, weft_shape over,
                              double epsilon)
{
    if (x.id == 0) return weft_no_value(x.graph);
    return with_gain(weft_normalize(weft_wide(x), over, epsilon), gain, bias, weft_dtype_of(x));
}

weft_value weft_weight_norm(weft_value direction, weft_value gain)
{
    if (direction.id == 0 || gain.id == 0) return weft_no_value(direction.graph);
    for (int d = 0; d < weft_shape_of(gain)->n_dims; d++)
        if (!has_dim(direction, "weight_norm", "the gain has", weft_shape_of(gain)->dims[d]))
            return weft_no_value(direction.graph);
    const weft_value wide = weft_wide(direction);
    const weft_value square = weft_sum_to(weft_square(wide), gain);
    const weft_value by = weft_mul(weft_wide(gain), weft_rsqrt(square));
    return weft_cast(weft_mul(wide, by), weft_dtype_of(direction));
}

/* ---- labels and logits ----------------------------------------------------------------------------- */

weft_value weft_smooth_labels(weft_value labels, weft_dim dim, double by)
{
    if (labels.id == 0 || !has_dim(labels, "smooth_labels", "classes are", dim))
        return weft_no_value(labels.graph);
    if (!(by >= 0 && by <= 1))
        return weft_graph_fail(labels.graph, "smooth_labels: by is %g; it is from 0 to 1", by);
    const weft_value all = weft_sum(weft_shape_without(weft_shape_of(labels), dim.name), labels);
    return weft_add(weft_scale(labels, 1.0 - by), weft_scale(all, by / (double)dim.size));
}

weft_value weft_soft_cross_entropy(weft_value logits, weft_value labels, weft_dim dim)
{
    if (logits.id == 0 || labels.id == 0) return weft_no_value(logits.graph);
    if (!has_dim(logits, "soft_cross_entropy", "classes are", dim) ||
        !has_dim(labels, "soft_cross_entropy", "classes are", dim))
        return weft_no_value(logits.graph);
    const weft_value x = weft_wide(logits), weights = weft_wide(labels);
    const weft_normalizer by = weft_normalizer_of(x, dim);
    const weft_value apart = weft_mul(weights, weft_add(weft_sub(by.maximum, x), by.log_sum));
    if (apart.id == 0) return apart;
    return weft_sum(weft_shape_without(weft_shape_of(apart), dim.name), apart);
}

weft_value weft_z_loss(weft_value logits, weft_dim dim)
{
    return weft_square(weft_logsumexp(weft_wide(logits), dim));
}
