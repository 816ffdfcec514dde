/* clip.c: gradients made smaller: all together, each variable's for itself, by element, or by what they would change.
 *
 * source  adaptive: Brock et al. 2021, "High-performance large-scale image recognition without normalization", section 4
 */
#include <string.h>

#include "rules/rules.h"
#include "weft/ops.h"

weft_value weft_global_norm(weft_values gradients)
{
    if (gradients.values == NULL || gradients.n_values < 1) return weft_no_value(NULL);
    weft_graph *graph = gradients.values[0].graph;
    if (!weft_graph_takes(graph, "global_norm", "gradients", gradients))
        return weft_no_value(graph);
    const weft_dtype dtype = weft_dtype_of(gradients.values[0]);
    weft_value total = weft_no_value(graph);
    for (int i = 0; i < gradients.n_values; i++) {
        weft_value squares = weft_sum(WEFT_SCALAR, weft_square(gradients.values[i]));
        squares = weft_cast(squares, dtype);
        total = i == 0 ? squares : weft_add(total, squares);
    }
    return weft_sqrt(total);
}

/* As PyTorch's clip_grad_norm_: min(1, largest / (norm + 1e-6)). */
static weft_value scale_of(weft_value norm, double largest)
{
    weft_value one = weft_constant(norm.graph, weft_dtype_of(norm), WEFT_SCALAR, 1.0);
    weft_value limit = weft_constant(norm.graph, weft_dtype_of(norm), WEFT_SCALAR, largest);
    return weft_minimum(one, weft_div(limit, weft_shift(norm, 1e-6)));
}

/* ---- one gradient; `scale` is what all are multiplied by, where they are clipped together ----- */

typedef weft_value (*clip)(const weft_update *u, weft_value variable, weft_value gradient,
                           weft_value scale);

static weft_value by_global_norm(const weft_update *u, weft_value variable, weft_value gradient,
                                 weft_value scale)
{
    (void)u, (void)variable;
    return weft_mul(gradient, weft_scalar_for(scale, gradient));
}

static weft_value by_norm(const weft_update *u, weft_value variable, weft_value gradient,
                          weft_value scale)
{
    weft_value norm = weft_norm_of(gradient, weft_dims_of_each(variable));
    scale = scale_of(norm, u->options.clip);
    return weft_mul(gradient, weft_scalar_for(scale, gradient));
}

static weft_value by_value(const weft_update *u, weft_value variable, weft_value gradient,
                           weft_value scale)
{
    (void)variable, (void)scale;
    return weft_clamp(gradient, -u->options.clip, u->options.clip);
}

/* What has a norm of its own: of a matrix and more what goes to one element of the last dim, else the whole. */
static weft_shape units_of(weft_value variable)
{
    const weft_shape *shape = weft_shape_of(variable);
    weft_shape units = weft_dims_of_each(variable);
    if (weft_dims_of_one(variable) >= 2)
        units.dims[units.n_dims++] = shape->dims[shape->n_dims - 1];
    return units;
}

/* g min(1, clip max(|p|, 1e-3) / |g|) */
static weft_value adaptive(const weft_update *u, weft_value variable, weft_value gradient,
                           weft_value scale)
{
    const weft_shape units = units_of(variable);
    weft_value size = weft_at_least(weft_norm_of(variable, units), 1e-3);
    weft_value norm = weft_at_least(weft_norm_of(gradient, units), 1e-6);
    weft_value one = weft_constant(u->graph, WEFT_F64, WEFT_SCALAR, 1.0);
    scale = weft_minimum(one, weft_div(weft_scale(size, u->options.clip), norm));
    return weft_mul(gradient, weft_scalar_for(scale, gradient));
}

/* ---- the table ------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    clip clip;
    bool is_of_all; /* by the norm of all gradients together */
} kinds[] = {
    {"global_norm", by_global_norm, true},
    {"norm", by_norm, false},
    {"value", by_value, false},
    {"adaptive", adaptive, false},
};
enum { N_KINDS = sizeof kinds / sizeof kinds[0] };

/* Its index; -1: the graph's error. */
static int find(const weft_update *u)
{
    const char *names[N_KINDS], *name = u->options.clip_by;
    weft_error error = {WEFT_OK, -1, ""};
    for (int i = 0; i < N_KINDS; i++) {
        if (name == NULL || strcmp(name, kinds[i].name) == 0) return i;
        names[i] = kinds[i].name;
    }
    (void)!weft_fail_unknown("kind of clipping", name, names, N_KINDS, &error);
    weft_graph_fail(u->graph, "%s: %s", u->name, error.message);
    return -1;
}

bool weft_clip_needs_norm(const weft_update *u)
{
    const int kind = find(u);
    return kind >= 0 && kinds[kind].is_of_all && u->options.clip > 0.0;
}

void weft_clip(const weft_update *u, const weft_selection *s, weft_value norm)
{
    const int kind = find(u);
    if (kind < 0 || u->options.clip == 0.0) return;
    weft_value scale = kinds[kind].is_of_all ? scale_of(norm, u->options.clip) : norm;
    for (int i = 0; i < s->n; i++) {
        weft_update_at(u, s->variables[i]);
        s->gradients[i] = kinds[kind].clip(u, s->variables[i], s->gradients[i], scale);
    }
    weft_update_at(u, weft_no_value(u->graph));
}
