/* loss_scale.c: dynamic loss scaling, for gradients in f16: whose least numbers are lost and whose largest overflow.
 *
 * Gradients are taken of the loss times a scale, and divided by it in f32. Where one has overflowed, nothing is updated - neither
 * variables nor slots nor the count of updates, by which schedules and bias corrections go - and the scale is halved; after
 * `growth` updates in a row it is doubled. The scale is a power of two, so it changes no digit.
 * source  Micikevicius et al. 2018, "Mixed precision training", section 3.2
 */
#include <math.h>

#include "update.h"
#include "weft/autodiff.h"
#include "weft/ops.h"

enum { MOST_DOUBLINGS = 24 };

static weft_value scalar(weft_graph *graph, const char *name, double first)
{
    return weft_variable(graph, name, WEFT_F64, WEFT_SCALAR, weft_constant_of(first));
}

static weft_value number(weft_value like, double x)
{
    return weft_constant(like.graph, weft_dtype_of(like), WEFT_SCALAR, x);
}

weft_value weft_loss_scale(weft_graph *graph, double first, int64_t growth)
{
    int exponent = 0;
    if (graph == NULL || weft_graph_status(graph) != WEFT_OK) return weft_no_value(graph);
    if (!(first > 0 && isfinite(first)) || frexp(first, &exponent) != 0.5)
        return weft_graph_fail(
            graph, "loss_scale: it begins at %g; it is a power of two, such as 65536", first);
    if (growth < 1)
        return weft_graph_fail(graph,
                               "loss_scale: it is doubled after %lld updates; that is at least 1",
                               (long long)growth);
    if (graph->loss_scale.scale != 0)
        return weft_graph_fail(graph, "loss_scale: this graph has one already");
    const weft_value scale = scalar(graph, "loss_scale", first);
    const weft_value good = scalar(graph, "loss_scale.good", 0.0);
    const weft_value updates = scalar(graph, "loss_scale.updates", 0.0);
    const weft_value step = weft_shift(updates, 1.0);
    if (weft_graph_status(graph) != WEFT_OK) return weft_no_value(graph);
    graph->loss_scale = (weft_loss_scaling){.scale = scale.id,
                                            .good = good.id,
                                            .updates = updates.id,
                                            .step = step.id,
                                            .growth = growth};
    return scale;
}

/* The loss in place of the sum of its elements: times the scale. */
void weft_scaled_gradients(weft_value loss, weft_values variables, weft_value *gradients)
{
    weft_graph *graph = loss.graph;
    if (graph->loss_scale.scale == 0) {
        weft_gradients(loss, variables, gradients, 0);
        return;
    }
    const weft_value scale = {graph, graph->loss_scale.scale};
    weft_value seed = weft_cast(scale, weft_dtype_of(loss));
    if (weft_shape_of(loss)->n_dims > 0) seed = weft_broadcast_to(seed, *weft_shape_of(loss));
    weft_gradients_seeded((weft_values){&loss, 1}, (weft_values){&seed, 1}, variables, gradients,
                          0);
}

/* Each where its variable is stored. */
void weft_unscale(const weft_update *u, const weft_selection *s)
{
    weft_graph *graph = u->graph;
    if (graph->loss_scale.scale == 0) return;
    const weft_value scale = {graph, graph->loss_scale.scale};
    const weft_value inverse = weft_div(number(scale, 1.0), scale);
    for (int i = 0; i < s->n; i++) {
        weft_update_at(u, s->variables[i]);
        s->gradients[i] = weft_mul(s->gradients[i], weft_scalar_for(inverse, s->gradients[i]));
    }
    weft_update_at(u, weft_no_value(graph));
}

void weft_skip_unless_finite(const weft_update *u, weft_value norm)
{
    weft_graph *graph = u->graph;
    if (graph->loss_scale.scale == 0) return;
    graph->assign_if = weft_equal(weft_sub(norm, norm), number(norm, 0.0)).id; /* no inf, no NaN */
    graph->loss_scale.is_finite = graph->assign_if;
}

/* scale, good and updates after this run. Returns a token. */
weft_value weft_scale_on(const weft_update *u)
{
    weft_graph *graph = u->graph;
    const weft_loss_scaling *l = &graph->loss_scale;
    const weft_value is_good = {graph, graph->assign_if}, scale = {graph, l->scale};
    const weft_value good = {graph, l->good}, step = {graph, l->step};
    const weft_value next = weft_shift(good, 1.0);
    const weft_value grows = weft_greater_equal(next, number(next, (double)l->growth));
    const weft_value larger =
        weft_minimum(weft_scale(scale, 2.0), number(scale, ldexp(1.0, MOST_DOUBLINGS)));
    const weft_value smaller = weft_scale(scale, 0.5);
    const weft_value kept = weft_where(grows, larger, scale);
    const weft_value none = number(good, 0.0);
    const weft_value updates = weft_assign((weft_value){graph, l->updates}, step);
    graph->assign_if = 0; /* these change when nothing else does */
    const weft_value tokens[] = {
        updates, weft_assign(scale, weft_where(is_good, kept, smaller)),
        weft_assign(good, weft_where(is_good, weft_where(grows, none, next), none))};
    return weft_group(graph, (weft_values){tokens, 3});
}
