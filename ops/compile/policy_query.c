/* policy_query: where the plan differs from what was asked for: placements that a policy wants, and layout rules that were
 * skipped.
 */
#include "passes.h"

#include <string.h>

/* ---- what the policy wants ------------------------------------------------------------------- */

/* A slot is asked about as its variable, which the plan need not have: it is of the user's graph. */
static void describe_wanting(const weft_plan *plan, uint32_t value, weft_wanting *wanting)
{
    const weft_graph *graph = plan->graph;
    const weft_node *node = weft_node_of(graph, value);
    if (node->op == &weft_op_variable) {
        const uint32_t owner = ((const weft_variable_attributes *)node->attributes)->owner;
        if (owner && owner < plan->n_user_values) {
            graph = plan->user;
            value = owner;
            node = weft_node_of(graph, value);
        }
    }
    const weft_tensor *tensor = &graph->tensors[value];
    *wanting = (weft_wanting){.mesh = plan->mesh,
                              .layout = plan->layout,
                              .name = tensor->name,
                              .dtype = tensor->type.dtype,
                              .shape = &tensor->type.shape,
                              .op = node->op->name,
                              .builder = node->origin.builder,
                              .file = node->origin.file,
                              .line = node->origin.line,
                              .phase = (weft_phase)node->phase,
                              .placement = tensor->placement};
    if (tensor->place_as) wanting->place_as = graph->tensors[tensor->place_as].name;
}

/* What the policy wants becomes a placement of the plan's own graph, as weft_place makes one. */
static weft_status ask(weft_plan *plan, uint32_t value, weft_error *error)
{
    weft_tensor *tensor = &plan->graph->tensors[value];
    weft_wanting wanting;
    weft_error wrong = {0};
    weft_spec spec;
    char place[160];
    describe_wanting(plan, value, &wanting);
    const char *text = plan->build.policy->wants(plan->build.policy->context, &wanting);
    if (!text) return WEFT_OK;
    tensor->placement = weft_arena_intern(plan->arena, text);
    tensor->placed_by = (weft_origin){0};
    if (!tensor->placement) return weft_fail_memory(error, strlen(text));
    if (weft_wanted_spec(plan, value, &spec, &wrong) == WEFT_OK) return WEFT_OK;
    weft_origin_print(weft_node_of(plan->graph, value), place, sizeof place);
    return weft_fail(error, wrong.status,
                     "%s: the policy \"%.60s\" wants its result at a place that is none: %s", place,
                     plan->policy_name, wrong.message);
}

weft_status weft_ask_policy(weft_plan *plan, weft_error *error)
{
    if (!plan->build.policy || !plan->build.policy->wants) return WEFT_OK;
    for (uint32_t value = 1; value < plan->graph->n_tensors; value++)
        if (!weft_node_of(plan->graph, value)->op->makes_token) WEFT_TRY(ask(plan, value, error));
    return WEFT_OK;
}

/* ---- rules that were skipped ------------------------------------------------------------------ */

static weft_status refuse_skipped(const weft_plan *plan, const weft_planned_skip *skip,
                                  weft_error *error)
{
    char shape[200];
    weft_shape_print(skip->shape, shape, sizeof shape);
    return weft_fail(
        error, WEFT_USAGE,
        "%s %s: %s: %s is taken by %s, and strict of the compile options refuses a rule "
        "that is skipped. Change the layout, or leave strict out to keep that dim whole",
        skip->name, shape, skip->dim, weft_mesh_axis_name(plan->mesh, skip->axis), skip->taken_by);
}

static weft_status add_skipped(weft_plan *plan, uint32_t value, weft_error *error)
{
    const weft_tensor *tensor = &plan->graph->tensors[value];
    const weft_shape *shape = &tensor->type.shape;
    int n = weft_layout_skipped(plan->layout, plan->mesh, shape, NULL, 0);
    weft_skipped *found = weft_arena_take(plan->arena, (size_t)n * sizeof *found);
    if (!found) return weft_fail_memory(error, (size_t)n * sizeof *found);
    weft_layout_skipped(plan->layout, plan->mesh, shape, found, n);
    for (int i = 0; i < n; i++) {
        weft_planned_skip *skip = weft_plan_skip(plan);
        if (!skip) return weft_fail_memory(error, sizeof *skip);
        *skip = (weft_planned_skip){.value = value,
                                    .name = tensor->name,
                                    .shape = shape,
                                    .dim = found[i].dim,
                                    .axis = found[i].axis,
                                    .taken_by = found[i].taken_by};
        if (plan->build.strict) return refuse_skipped(plan, skip, error);
    }
    return WEFT_OK;
}

weft_status weft_find_skipped(weft_plan *plan, weft_error *error)
{
    for (uint32_t value = 1; value < plan->graph->n_tensors; value++) {
        const weft_tensor *tensor = &plan->graph->tensors[value];
        if (!tensor->placement && tensor->name) WEFT_TRY(add_skipped(plan, value, error));
    }
    return WEFT_OK;
}
