/* selection.c: which variables an optimizer updates, and by which gradients: all that the loss depends on, or a list;
 * of these, those with a prefix; gradients taken here, or handed in one to one.
 */
#include <stdlib.h>
#include <string.h>

#include "update.h"
#include "weft/autodiff.h"
#include "weft/ops.h"

static bool is_sound(const weft_update *u)
{
    return weft_graph_status(u->graph) == WEFT_OK;
}

static const char *name_of(const weft_update *u, weft_value value)
{
    const char *name = u->graph->tensors[value.id].name;
    return name != NULL ? name : "(no name)";
}

/* ---- checks ---------------------------------------------------------------------------------- */

static void check_variable(const weft_update *u, int i)
{
    const weft_value *values = u->options.variables.values;
    const weft_node *node = weft_node_of(u->graph, values[i].id);
    if (node->op != &weft_op_variable) {
        char place[160];
        weft_origin_print(node, place, sizeof place);
        weft_graph_fail(
            u->graph,
            "%s: value %d of variables is the result of %s; list what weft_variable returned",
            u->name, i, place);
        return;
    }
    if (weft_owner_of(u->graph, values[i].id) != 0)
        weft_graph_fail(u->graph,
                        "%s: %s is a slot, which is state of another variable; list variables only",
                        u->name, name_of(u, values[i]));
    else if (!weft_dtype_is_float(weft_dtype_of(values[i])))
        weft_graph_fail(u->graph,
                        "%s: the variable %s is i32; only float variables are updated by gradients",
                        u->name, name_of(u, values[i]));
    for (int k = 0; k < i && is_sound(u); k++)
        if (values[k].id == values[i].id)
            weft_graph_fail(u->graph,
                            "%s: %s is in variables twice, as number %d and %d; list it once",
                            u->name, name_of(u, values[i]), k, i);
}

/* A gradient handed in fits its variable, or not. */
static void check_gradient(const weft_update *u, int i)
{
    const weft_value variable = u->options.variables.values[i],
                     gradient = u->options.gradients.values[i];
    char wanted[200], given[200];
    if (weft_dtype_of(gradient) == weft_dtype_of(variable) &&
        weft_shape_same_dims(weft_shape_of(gradient), weft_shape_of(variable)))
        return;
    weft_shape_print(weft_shape_of(variable), wanted, sizeof wanted);
    weft_shape_print(weft_shape_of(gradient), given, sizeof given);
    weft_graph_fail(u->graph,
                    "%s: %s is %s%s and its gradient, number %d, is %s%s; both must have the same "
                    "dims and dtype",
                    u->name, name_of(u, variable), weft_dtype_name(weft_dtype_of(variable)), wanted,
                    i, weft_dtype_name(weft_dtype_of(gradient)), given);
}

bool weft_check_lists(const weft_update *u, weft_value loss)
{
    const weft_values variables = u->options.variables, gradients = u->options.gradients;
    if (!weft_graph_takes(u->graph, u->name, "variables", variables) ||
        !weft_graph_takes(u->graph, u->name, "gradients", gradients))
        return false;
    if (gradients.n_values > 0 && gradients.n_values != variables.n_values)
        weft_graph_fail(
            u->graph,
            "%s: gradients has %d values and variables has %d; list for each gradient its variable",
            u->name, gradients.n_values, variables.n_values);
    else if (gradients.n_values == 0)
        weft_graph_takes(u->graph, u->name, "loss", (weft_values){&loss, 1});
    for (int i = 0; i < variables.n_values && is_sound(u); i++) {
        check_variable(u, i);
        if (is_sound(u) && gradients.n_values > 0) check_gradient(u, i);
    }
    return is_sound(u);
}

/* ---- the choice ------------------------------------------------------------------------------ */

static void refuse_prefix(const weft_update *u, const weft_selection *s)
{
    bool is_near;
    const char *near = weft_selection_nearest(u, s, u->options.prefix, &is_near);
    weft_graph_fail(u->graph, "%s: no variable's name begins with %.100s; %s%.100s%s", u->name,
                    u->options.prefix, is_near ? "did you mean " : "one of them is ", near,
                    is_near ? "?" : "");
}

/* Keep the pairs whose variable has the prefix. */
static bool keep_prefix(const weft_update *u, weft_selection *s)
{
    const char *prefix = u->options.prefix;
    if (prefix == NULL) return true;
    int n = 0;
    for (int i = 0; i < s->n; i++) {
        if (strncmp(name_of(u, s->variables[i]), prefix, strlen(prefix)) != 0) continue;
        s->variables[n] = s->variables[i];
        s->gradients[n++] = s->gradients[i];
    }
    if (n == 0) refuse_prefix(u, s);
    s->n = n;
    return n > 0;
}

static bool take_room(const weft_update *u, weft_selection *s)
{
    const size_t n = (size_t)s->n * (3 + WEFT_MAX_TOKENS);
    s->variables = calloc(n, sizeof *s->variables);
    if (s->variables == NULL) {
        weft_fail_memory(&u->graph->error, n * sizeof *s->variables);
        return false;
    }
    s->gradients = s->variables + s->n;
    s->tokens = s->gradients + s->n;
    s->group = (int *)(void *)(s->tokens + (size_t)s->n * WEFT_MAX_TOKENS);
    return true;
}

/* In the variable's order of dims. */
static weft_value in_order_of(weft_value gradient, weft_value variable)
{
    if (weft_shape_same_order(weft_shape_of(gradient), weft_shape_of(variable))) return gradient;
    return weft_transpose(gradient, *weft_shape_of(variable));
}

bool weft_select(const weft_update *u, weft_value loss, weft_selection *s)
{
    const weft_values listed = u->options.variables, handed = u->options.gradients;
    if (!weft_check_lists(u, loss)) return false;
    if (u->graph->loss_scale.scale != 0 && handed.n_values > 0)
        weft_graph_fail(u->graph,
                        "%s: the graph has a loss scale, which is for gradients that are taken of "
                        "the loss; leave options.gradients away, or the scale",
                        u->name);
    if (u->graph->loss_scale.is_used)
        weft_graph_fail(u->graph,
                        "%s: another optimizer goes by the graph's loss scale already; with a loss "
                        "scale there is one",
                        u->name);
    s->is_own = handed.n_values == 0;
    s->n = listed.n_values > 0 ? listed.n_values : weft_trainable(loss, NULL, 0);
    if (s->n == 0 && is_sound(u))
        weft_graph_fail(
            u->graph, "%s: the loss depends on no variable; make some with weft_variable", u->name);
    if (!is_sound(u) || !take_room(u, s)) return false;
    if (listed.n_values > 0)
        memcpy(s->variables, listed.values, (size_t)s->n * sizeof *s->variables);
    else
        weft_trainable(loss, s->variables, s->n);
    for (int i = 0; i < handed.n_values; i++)
        s->gradients[i] = in_order_of(handed.values[i], s->variables[i]);
    if (!keep_prefix(u, s) || !weft_groups_take(u, s)) return false;
    if (s->is_own) weft_scaled_gradients(loss, (weft_values){s->variables, s->n}, s->gradients);
    return is_sound(u);
}

void weft_selection_end(weft_selection *selection)
{
    free(selection->variables);
    *selection = (weft_selection){0};
}
