/* home_spec: which spec the annotations ask for, and where a variable is kept between runs.
 *
 * A value's own placement comes first, then the storage of the variable it is placed as, then the
 * layout's rules. ZeRO is the storage spec: slots from stage 1 on, parameters from stage 3 on.
 */
#include "passes.h"

#include <string.h>

static const weft_type *type_of(const weft_plan *plan, uint32_t value)
{
    return &plan->graph->tensors[value].type;
}

static weft_status placement_spec(const weft_plan *plan, const char *text, const weft_shape *shape,
                                  weft_spec *spec, weft_error *error)
{
    weft_layout *own = NULL;
    WEFT_TRY(weft_layout_create(text, &own, error));
    weft_status status = weft_layout_check(own, plan->mesh, NULL, 0, error);
    if (status == WEFT_OK) weft_layout_spec(own, plan->mesh, shape, spec, NULL, 0);
    weft_layout_destroy(&own);
    return status;
}

static const weft_variable_attributes *variable_of(const weft_plan *plan, uint32_t value)
{
    return weft_node_of(plan->graph, value)->attributes;
}

/* The value whose placement says where this one lives, whatever the rules say: itself, or for a slot the variable it
 * belongs to (a value of the user's graph), of which it may have other dims. */
static const weft_tensor *placed_with(const weft_plan *plan, uint32_t value)
{
    const weft_tensor *tensor = &plan->graph->tensors[value];
    if (tensor->placement || weft_node_of(plan->graph, value)->op != &weft_op_variable)
        return tensor;
    const uint32_t owner = variable_of(plan, value)->owner;
    return owner && owner < plan->n_user_values ? &plan->user->tensors[owner] : tensor;
}

/* Of the many values that are placed, this one, by this call. */
static weft_status refuse_placement(const weft_plan *plan, uint32_t value, const weft_origin *by,
                                    const weft_error *why, weft_error *error)
{
    const char *name = plan->graph->tensors[value].name;
    char origin[160], call[160] = "";
    weft_origin_print(weft_node_of(plan->graph, value), origin, sizeof origin);
    if (by->file) snprintf(call, sizeof call, "%s at %s:%d: ", by->builder, by->file, by->line);
    return weft_fail(error, why->status, "%sthe placement of %.63s%s%s%s: %s", call,
                     name ? name : "", name ? " (" : "", origin, name ? ")" : "", why->message);
}

static weft_status compute_spec(const weft_plan *plan, uint32_t value, weft_spec *spec,
                                weft_error *error)
{
    const weft_tensor *tensor = placed_with(plan, value);
    const weft_shape *shape = &type_of(plan, value)->shape;
    memset(spec, 0, sizeof *spec);
    weft_error own = {WEFT_OK, -1, ""};
    if (!tensor->placement)
        weft_layout_spec(plan->layout, plan->mesh, shape, spec, NULL, 0);
    else if (placement_spec(plan, tensor->placement, shape, spec, &own) != WEFT_OK)
        return refuse_placement(plan, value, &tensor->placed_by, &own, error);
    return WEFT_OK;
}

static weft_status storage_spec(const weft_plan *plan, uint32_t variable, int from_stage,
                                weft_spec *spec, weft_error *error)
{
    weft_spec compute;
    WEFT_TRY(compute_spec(plan, variable, &compute, error));
    *spec = compute;
    if (weft_layout_stage(plan->layout) >= from_stage)
        weft_layout_storage(plan->layout, plan->mesh, &type_of(plan, variable)->shape, &compute,
                            spec);
    return WEFT_OK;
}

weft_status weft_home_spec(const weft_plan *plan, uint32_t variable, weft_spec *spec,
                           weft_error *error)
{
    bool is_slot = variable_of(plan, variable)->owner != 0;
    return storage_spec(plan, variable, is_slot ? 1 : 3, spec, error);
}

/* The same placement for the same dims in another order. */
static void reorder_spec(const weft_shape *from, const weft_spec *spec, const weft_shape *to,
                         weft_spec *out)
{
    memset(out, 0, sizeof *out);
    for (int d = 0; d < from->n_dims; d++) {
        int e = weft_shape_find(to, from->dims[d].name);
        if (e < 0) continue;
        out->n_split[e] = spec->n_split[d];
        memcpy(out->split[e], spec->split[d], sizeof out->split[e]);
    }
}

weft_status weft_wanted_spec(const weft_plan *plan, uint32_t value, weft_spec *spec,
                             weft_error *error)
{
    const weft_tensor *tensor = &plan->graph->tensors[value];
    if (tensor->placement || !tensor->place_as) return compute_spec(plan, value, spec, error);
    weft_spec storage;
    WEFT_TRY(storage_spec(plan, tensor->place_as, 1, &storage, error));
    reorder_spec(&type_of(plan, tensor->place_as)->shape, &storage, &tensor->type.shape, spec);
    return WEFT_OK;
}
