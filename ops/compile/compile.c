/* compile: the table of passes, run in turn over one plan. */
#include "passes.h"
#include "rewrite.h"
#include "trials.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    weft_pass pass;
    bool goes_by_seconds; /* of a machine, where the plan is for one: so do all that follow */
} passes[] = {
    {"unroll", weft_pass_unroll, false},
    {"expand", weft_pass_expand, false},
    {"simplify", weft_pass_simplify, false},
    {"cut_first", weft_pass_cut_first, false},
    {"join_parts", weft_pass_join_parts, false},
    {"fission", weft_pass_fission, false},
    {"place", weft_pass_place, false},
    {"lower", weft_pass_lower, false},
    {"accumulate", weft_pass_accumulate, false},
    {"elide_casts", weft_pass_elide_casts, false},
    {"copy_casts", weft_pass_copy_casts, false},
    {"fuse", weft_pass_fuse, false},
    {"fuse_horizontal", weft_pass_fuse_horizontal, false},
    {"order", weft_pass_order, false},
    {"bucket", weft_pass_bucket, false},
    {"hoist", weft_pass_hoist, false},
    {"prefetch", weft_pass_prefetch, false},
    {"views", weft_pass_views, false},
    {"schedule", weft_pass_schedule, true},
};
enum { n_passes = sizeof passes / sizeof passes[0] };

static weft_status check_dump(const char *dump, weft_error *error)
{
    const char *names[n_passes];
    for (int i = 0; i < n_passes; i++) {
        names[i] = passes[i].name;
        if (!dump || strcmp(dump, names[i]) == 0) return WEFT_OK;
    }
    const char *near = weft_nearest(dump, names, n_passes);
    char all[256];
    size_t length = 0;
    for (int i = 0; i < n_passes; i++)
        length +=
            (size_t)snprintf(all + length, sizeof all - length, "%s%s", i ? ", " : "", names[i]);
    return weft_fail(error, WEFT_USAGE, "there is no pass \"%s\"%s%s%s; the passes are %s", dump,
                     near ? "; did you mean \"" : "", near ? near : "", near ? "\"" : "", all);
}

static weft_status copy_layout(const weft_layout *layout, weft_layout **copy, weft_error *error)
{
    WEFT_TRY(weft_layout_create(layout ? weft_layout_text(layout) : "", copy, error));
    if (!layout) return WEFT_OK;
    return weft_layout_store(*copy, weft_layout_stage(layout), weft_layout_store_dim(layout),
                             error);
}

/* Dims of the whole graph, for "no such dim". */
static weft_status check_layout(const weft_plan *plan, weft_error *error)
{
    int n_dims = 0, room = 0;
    const char **dims = NULL;
    for (uint32_t value = 1; value < plan->graph->n_tensors; value++) {
        const weft_shape *shape = &plan->graph->tensors[value].type.shape;
        for (int d = 0; d < shape->n_dims; d++) {
            int at = 0;
            while (at < n_dims && strcmp(dims[at], shape->dims[d].name) != 0)
                at++;
            if (at < n_dims || weft_name_length(shape->dims[d].name) == 0) continue;
            if (n_dims == room) {
                room = 2 * room + 64;
                const char **more = weft_arena_take(plan->arena, (size_t)room * sizeof *more);
                if (!more) return weft_fail_memory(error, (size_t)room * sizeof *more);
                if (n_dims > 0) memcpy(more, dims, (size_t)n_dims * sizeof *more);
                dims = more;
            }
            dims[n_dims++] = shape->dims[d].name;
        }
    }
    if (!dims) return weft_layout_check(plan->layout, plan->mesh, &(const char *){""}, 0, error);
    return weft_layout_check(plan->layout, plan->mesh, dims, n_dims, error);
}

/* A copy of the user's graph to work on: passes replace it, and the user's stays as it is. */
static weft_status copy_graph(weft_plan *plan, const weft_graph *user, weft_error *error)
{
    plan->graph = weft_graph_like(user);
    if (!plan->graph) return weft_fail_memory(error, user->n_nodes * sizeof(weft_node));
    for (uint32_t id = 1; id < user->n_nodes; id++)
        if (!weft_node_copy(plan->graph, user, &user->nodes[id], user->nodes[id].in))
            return weft_fail_memory(error, sizeof(weft_node));
    for (uint32_t value = 1; value < user->n_tensors; value++)
        plan->graph->tensors[value] = user->tensors[value];
    return WEFT_OK;
}

/* What is of a scan's body has no value after the run, but one of each trip. */
static weft_status check_outside(const weft_graph *graph, weft_value value, weft_error *error)
{
    const weft_node *node = weft_node_of(graph, value.id);
    char origin[160];
    if (node->scan == 0) return WEFT_OK;
    weft_origin_print(node, origin, sizeof origin);
    return weft_fail(error, WEFT_USAGE,
                     "compile: the result of %s is of a scan's body, another in each trip; compile "
                     "weft_scan_last of what is carried, or weft_scan_stack",
                     origin);
}

/* Every scan has its end, and every part that is computed again. */
static weft_status check_ends(const weft_graph *graph, weft_error *error)
{
    char origin[160];
    if (graph->part != 0) {
        weft_part_print(graph, graph->part, origin, sizeof origin);
        return weft_fail(error, WEFT_USAGE,
                         "compile: the part of %s has not ended; call weft_recompute_end", origin);
    }
    if (graph->scan == 0) return WEFT_OK;
    weft_origin_print(weft_node_of(graph, graph->scans[graph->scan].trip), origin, sizeof origin);
    return weft_fail(error, WEFT_USAGE, "compile: the scan of %s has not ended; call weft_scan_end",
                     origin);
}

static weft_status mark_outputs(weft_plan *plan, weft_values values, weft_error *error)
{
    if (values.n_values < 1 || values.values == NULL)
        return weft_fail(error, WEFT_USAGE,
                         "compile: no value is given; name at least one to compute");
    weft_graph *user = values.values[0].graph;
    if (user == NULL)
        return weft_fail(error, WEFT_USAGE,
                         "compile: value 1 of %d belongs to no graph; pass what builders returned",
                         values.n_values);
    size_t n = user->n_tensors;
    WEFT_TRY(check_ends(user, error));
    user->built =
        weft_graph_here(user); /* no builder is under way: clearing an error goes back no further */
    plan->user = user;
    plan->n_user_values = (uint32_t)n;
    plan->user_value = weft_arena_take(plan->arena, n * sizeof *plan->user_value);
    plan->kept = weft_arena_take(plan->arena, n * sizeof *plan->kept);
    if (!plan->user_value || !plan->kept) return weft_fail_memory(error, n * sizeof *plan->kept);
    for (uint32_t value = 1; value < n; value++)
        plan->user_value[value] = value;
    for (int i = 0; i < values.n_values; i++) {
        weft_value value = values.values[i];
        if (value.graph != user || value.id == 0 || value.id >= n)
            return weft_fail(
                error, WEFT_USAGE,
                "compile: value %d of %d is not a value of the first one's graph; compile "
                "values of one graph",
                i + 1, values.n_values);
        WEFT_TRY(check_outside(user, value, error));
        plan->kept[value.id] = 1;
    }
    return WEFT_OK;
}

static weft_status run_passes(weft_plan *plan, bool by_seconds, const char *dump, weft_error *error)
{
    for (int i = 0; i < n_passes; i++) {
        if (passes[i].goes_by_seconds != by_seconds) continue;
        WEFT_TRY(passes[i].pass(plan, error));
        if (dump && strcmp(dump, passes[i].name) == 0) weft_plan_dump(plan, stderr);
    }
    return WEFT_OK;
}

static weft_status build(weft_plan *plan, weft_values values, const char *dump, weft_error *error)
{
    WEFT_TRY(check_dump(dump, error));
    WEFT_TRY(mark_outputs(plan, values, error));
    WEFT_TRY(copy_graph(plan, values.values[0].graph, error));
    WEFT_TRY(weft_layout_check(plan->layout, plan->mesh, NULL, 0, error));
    WEFT_TRY(check_layout(plan, error));
    return run_passes(plan, false, dump, error);
}

static weft_status take_options(weft_plan *plan, const weft_compile_options *options,
                                weft_error *error)
{
    plan->build.strict = options->strict;
    plan->build.is_synchronous = options->synchronous;
    plan->build.has_infinities = options->infinities;
    plan->build.is_explained = options->explain;
    if (options->unroll < 0)
        return weft_fail(error, WEFT_USAGE,
                         "compile: unroll is %lld; give how many trips a scan may have to be "
                         "written down trip by trip, or 0 for the usual %d",
                         (long long)options->unroll, WEFT_UNROLL);
    if (options->unroll > 0) plan->build.unrolled = options->unroll;
    plan->build.policy = options->policy;
    if (options->cost) plan->build.cost = *options->cost;
    if (!(plan->build.cost.flops_per_byte >= 0))
        return weft_fail(
            error, WEFT_USAGE,
            "compile: flops_per_byte of the cost function is %g; give more than 0, or 0 "
            "for the usual %d",
            plan->build.cost.flops_per_byte, WEFT_FLOPS_PER_BYTE);
    if (!(plan->build.cost.latency >= 0))
        return weft_fail(error, WEFT_USAGE,
                         "compile: latency of the cost function is %g; give bytes through a link "
                         "that take as long as an exchange of nothing, or 0 for the usual %d",
                         plan->build.cost.latency, WEFT_LATENCY);
    if ((unsigned)options->precision >= WEFT_PRECISIONS)
        return weft_fail(error, WEFT_USAGE,
                         "compile: precision is %d; it is one of f32 (0), tf32 (1) and bf16 (2)",
                         (int)options->precision);
    plan->precision = options->precision;
    if (!plan->build.policy) return WEFT_OK;
    const char *name = plan->build.policy->name ? plan->build.policy->name : "policy";
    plan->policy_name = weft_arena_intern(plan->arena, name);
    return plan->policy_name ? WEFT_OK : weft_fail_memory(error, strlen(name));
}

weft_status weft_plan_begin(const weft_plan_request *request, const weft_pricing *pricing,
                            weft_plan **plan, weft_error *error)
{
    *plan = NULL;
    weft_plan *made = calloc(1, sizeof *made);
    if (!made) return weft_fail_memory(error, sizeof *made);
    made->mesh = request->mesh;
    made->build.unrolled = WEFT_UNROLL;
    made->arena = weft_arena_create();
    weft_status status = made->arena ? copy_layout(request->layout, &made->layout, error)
                                     : weft_fail_memory(error, sizeof *made);
    if (status == WEFT_OK) status = weft_read_links(made, pricing->links, error);
    if (status == WEFT_OK) status = take_options(made, request->options, error);
    if (status == WEFT_OK && made->build.cost.flops_per_byte <= 0)
        made->build.cost.flops_per_byte = pricing->flops_per_byte;
    if (status == WEFT_OK) status = build(made, request->values, pricing->dump, error);
    if (status != WEFT_OK) weft_plan_destroy(&made);
    *plan = made;
    return status;
}

static weft_status end(weft_plan *plan, const weft_pricing *pricing, weft_error *error)
{
    plan->build.machine = pricing->machine;
    WEFT_TRY(run_passes(plan, true, pricing->dump, error));
    WEFT_TRY(weft_keep_memory(plan, error));
    plan->build.machine = NULL; /* all were borrowed */
    plan->build.policy = NULL;
    plan->build.cost = (weft_cost){0};
    return weft_plan_index(plan, error);
}

weft_status weft_plan_end(weft_plan *plan, const weft_pricing *pricing, weft_plan *next,
                          weft_error *error)
{
    const weft_status status = end(plan, pricing, error);
    if (next) {
        next->build.trials = plan->build.trials;
        plan->build.trials = NULL;
    }
    weft_trials_end(plan);
    return status;
}

weft_status weft_plan_make(const weft_plan_request *request, const weft_pricing *pricing,
                           weft_plan **plan, weft_error *error)
{
    WEFT_TRY(weft_plan_begin(request, pricing, plan, error));
    const weft_status status = weft_plan_end(*plan, pricing, NULL, error);
    if (status != WEFT_OK) weft_plan_destroy(plan);
    return status;
}

weft_status weft_plan_build(weft_mesh *mesh, const weft_layout *layout, weft_values values,
                            const weft_compile_options *options, weft_plan **plan,
                            weft_error *error)
{
    static const weft_compile_options none;
    const weft_plan_request request = {mesh, layout, values, options ? options : &none};
    *plan = NULL;
    if (values.n_values > 0 && values.values) {
        const weft_error *first = weft_graph_error(values.values[0].graph);
        if (first->status != WEFT_OK) return weft_fail(error, first->status, "%s", first->message);
    }
    if (request.options->machine) return weft_plan_for_machine(&request, plan, error);
    const weft_pricing usual = {.links = request.options->link, .dump = request.options->dump};
    return weft_plan_make(&request, &usual, plan, error);
}
