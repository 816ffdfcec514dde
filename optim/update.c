/* update.c: what update rules share: where an update and its slots live, decay, norms, the number of the step. */
#include "rules/rules.h"

#include <stdio.h>

#include "weft/name.h"
#include "weft/ops.h"

weft_value weft_scalar_for(weft_value scalar, weft_value like)
{
    return weft_cast(scalar, weft_dtype_of(like));
}

void weft_update_at(const weft_update *u, weft_value variable)
{
    if (u == NULL || u->graph == NULL) return;
    u->graph->place_as =
        variable.graph == u->graph && variable.id < u->graph->n_tensors ? variable.id : 0;
}

weft_value weft_update_slot(const weft_update *u, weft_value variable, const char *name,
                            const weft_shape *shape)
{
    if (u == NULL || weft_graph_status(u->graph) != WEFT_OK)
        return weft_no_value(u == NULL ? NULL : u->graph);
    if (!weft_graph_takes(u->graph, u->name, "variable", (weft_values){&variable, 1}))
        return weft_no_value(u->graph);
    if (name == NULL || shape == NULL)
        return weft_graph_fail(u->graph, "%s: a slot of %s without a %s", u->name,
                               u->graph->tensors[variable.id].name,
                               name == NULL ? "name" : "shape");
    const weft_node *other = weft_slot_called(variable, name);
    if (other == NULL) return weft_slot_of(variable, name, *shape, weft_constant_of(0.0));
    char where[160] = "before";
    if (other->origin.file != NULL)
        snprintf(where, sizeof where, "at %s:%d", other->origin.file, other->origin.line);
    return weft_graph_fail(u->graph,
                           "%s: %s is updated by another optimizer already: its slot %s was made "
                           "%s; give each optimizer variables of its own, by options.variables or "
                           "options.prefix",
                           u->name, u->graph->tensors[variable.id].name,
                           u->graph->tensors[other->out].name, where);
}

weft_value weft_step_number(weft_graph *graph)
{
    if (graph != NULL && graph->loss_scale.scale != 0)
        return (weft_value){graph, graph->loss_scale.step};
    return weft_run_number(graph, WEFT_F64);
}

/* "sgd, momentum, adam or adamw" */
static void print_names(const char *const *names, int n, char *text, size_t bytes)
{
    int used = 0;
    for (int i = 0; i < n && used < (int)bytes; i++)
        used += snprintf(text + used, bytes - (size_t)used, "%s%s",
                         i == 0      ? ""
                         : i + 1 < n ? ", "
                                     : " or ",
                         names[i]);
}

weft_status weft_fail_unknown(const char *what, const char *name, const char *const *names, int n,
                              weft_error *error)
{
    char all[300];
    const char *near = weft_nearest(name, names, n);
    print_names(names, n, all, sizeof all);
    return weft_fail(error, WEFT_USAGE, "there is no %s %.100s; %s%s%s", what, name,
                     near == NULL ? "choose " : "did you mean ", near == NULL ? all : near,
                     near == NULL ? "" : "?");
}

int weft_dims_of_one(weft_value variable)
{
    return weft_shape_of(variable)->n_dims - weft_has_rows(variable);
}

weft_shape weft_dims_of_each(weft_value variable)
{
    weft_shape all = *weft_shape_of(variable);
    all.n_dims = weft_has_rows(variable);
    return all;
}

bool weft_decays(const weft_update *u, weft_value variable)
{
    const bool is_meant = u->group != NULL && u->group->weight_decay > 0.0;
    return u->options.weight_decay > 0.0 && (is_meant || weft_dims_of_one(variable) >= 2);
}

weft_value weft_decayed(const weft_update *u, weft_value variable)
{
    if (!weft_decays(u, variable)) return variable;
    weft_value shrink = weft_shift(weft_scale(u->rate, -u->options.weight_decay), 1.0);
    return weft_mul(variable, weft_scalar_for(shrink, variable));
}

weft_value weft_move_down(const weft_update *u, weft_value variable, weft_value move)
{
    return weft_assign(variable, weft_sub(weft_decayed(u, variable), move));
}

weft_value weft_running_mean(weft_value mean, weft_value x, double beta)
{
    return weft_add(weft_scale(mean, beta), weft_scale(x, 1.0 - beta));
}

weft_value weft_at_least(weft_value x, double low)
{
    return weft_maximum(x, weft_constant(x.graph, weft_dtype_of(x), WEFT_SCALAR, low));
}

static weft_value squares_of(weft_value x, weft_shape each)
{
    return weft_cast(weft_sum(each, weft_square(x)), WEFT_F64);
}

weft_value weft_norm_of(weft_value x, weft_shape each)
{
    return weft_sqrt(squares_of(x, each));
}

weft_value weft_rms_of(weft_value x, weft_shape each)
{
    const double count = weft_count_of(weft_shape_of(x)) / weft_count_of(&each);
    return weft_sqrt(weft_scale(squares_of(x, each), 1.0 / count));
}
