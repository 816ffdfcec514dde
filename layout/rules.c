/* rules: a layout's ordered rules, applied to the dims of one tensor: first wins, a taken axis is
 * skipped. */
#include "rules.h"

#include <stdlib.h>
#include <string.h>

#include "print.h"
#include "clamp.h"

weft_status weft_layout_create(const char *text, weft_layout **layout, weft_error *error)
{
    WEFT_GIVEN(layout, error);
    weft_layout *l = *layout = calloc(1, sizeof *l);
    if (l == NULL) return weft_fail_memory(error, sizeof *l);
    l->arena = weft_arena_create();
    weft_status status = l->arena == NULL ? weft_fail_memory(error, sizeof *l) : WEFT_OK;
    if (status == WEFT_OK && text != NULL) status = weft_rules_parse(l, text, error);
    if (status == WEFT_OK) status = weft_rules_write(l, error);
    if (status != WEFT_OK) weft_layout_destroy(layout);
    return status;
}

void weft_layout_destroy(weft_layout **layout)
{
    if (layout == NULL || *layout == NULL) return;
    weft_arena_destroy(&(*layout)->arena);
    free(*layout);
    *layout = NULL;
}

const char *weft_layout_text(const weft_layout *layout)
{
    return layout != NULL ? layout->text : "";
}

weft_status weft_layout_store(weft_layout *layout, int stage, const char *dim, weft_error *error)
{
    WEFT_GIVEN(layout, error);
    WEFT_GIVEN_RANGE(stage, 0, 3, error);
    if (stage > 0) WEFT_TRY(weft_name_check("weft_layout_store: dim", dim, error));
    layout->stage = stage;
    weft_print print = weft_print_begin(layout->store_dim, sizeof layout->store_dim);
    weft_print_more(&print, "%s", stage > 0 ? dim : "");
    return WEFT_OK;
}

int weft_layout_stage(const weft_layout *layout)
{
    return layout != NULL ? layout->stage : 0;
}

const char *weft_layout_store_dim(const weft_layout *layout)
{
    return weft_layout_stage(layout) > 0 ? layout->store_dim : "";
}

/* ---- check ----------------------------------------------------------------------------------- */

/* A name that a layout uses, and the names there are. */
typedef struct known_names {
    const char *owner; /* "mesh data:2,model:2 has no axis" */
    const char *const *names;
    int n_names;
} known_names;

static weft_status check_name(const weft_layout *layout, const char *name, const known_names *known,
                              weft_error *error)
{
    for (int i = 0; i < known->n_names; i++)
        if (known->names[i] != NULL && strcmp(known->names[i], name) == 0) return WEFT_OK;
    const char *nearest = weft_nearest(name, known->names, known->n_names);
    if (nearest != NULL)
        return weft_fail(error, WEFT_USAGE, "layout %.120s: %.120s %s; did you mean %.63s?",
                         layout->text, known->owner, name, nearest);
    char list[160];
    weft_print print = weft_print_begin(list, sizeof list);
    for (int i = 0; i < known->n_names; i++)
        weft_print_more(&print, "%s%s", i > 0 ? ", " : "",
                        known->names[i] != NULL ? known->names[i] : "");
    return weft_fail(error, WEFT_USAGE, "layout %.120s: %.120s %s; use one of: %s", layout->text,
                     known->owner, name, list);
}

weft_status weft_layout_check(const weft_layout *layout, const weft_mesh *mesh,
                              const char *const *dims, int n_dims, weft_error *error)
{
    WEFT_GIVEN(layout, error);
    WEFT_GIVEN(mesh, error);
    if (n_dims < 0) n_dims = 0;
    char mesh_says[140];
    weft_print print = weft_print_begin(mesh_says, sizeof mesh_says);
    weft_print_more(&print, "mesh %.100s has no axis", weft_mesh_text(mesh));
    const char *axes[WEFT_MAX_AXES];
    for (int a = 0; a < weft_mesh_n_axes(mesh); a++)
        axes[a] = weft_mesh_axis_name(mesh, a);
    known_names known_axes = {mesh_says, axes, weft_mesh_n_axes(mesh)};
    known_names known_dims = {"no tensor has a dim", dims, n_dims};
    known_names stored_dims = {"storage is sharded by a dim that no tensor has,", dims, n_dims};
    for (int i = 0; i < layout->n_rules; i++) {
        const weft_rule *rule = &layout->rules[i];
        if (dims != NULL) WEFT_TRY(check_name(layout, rule->dim, &known_dims, error));
        for (int j = 0; j < rule->n_axes; j++)
            if (!(rule->optional >> j & 1))
                WEFT_TRY(check_name(layout, rule->axes[j], &known_axes, error));
    }
    if (layout->stage > 0 && dims != NULL)
        WEFT_TRY(check_name(layout, layout->store_dim, &stored_dims, error));
    return WEFT_OK;
}

/* ---- apply ----------------------------------------------------------------------------------- */

static void append_axis(weft_spec *spec, int dim, int axis)
{
    const int n = weft_splits_of(spec, dim);
    if (n == WEFT_MAX_AXES)
        return; /* every axis of the mesh is there: only in a spec that is none */
    spec->split[dim][n] = (int8_t)axis;
    spec->n_split[dim] = (int8_t)(n + 1);
}

/* The spec by the rules, and what was skipped, as far as there is room; returns how much that was. */
static int apply(const weft_layout *layout, const weft_mesh *mesh, const weft_shape *shape,
                 weft_spec *spec, weft_skipped *skipped, int room)
{
    int n_skipped = 0;
    if (spec == NULL) return 0;
    *spec = (weft_spec){0};
    for (int i = 0; layout != NULL && i < layout->n_rules; i++) {
        const weft_rule *rule = &layout->rules[i];
        int dim = weft_shape_find(shape, rule->dim);
        for (int j = 0; dim >= 0 && j < rule->n_axes; j++) {
            int axis = weft_mesh_find_axis(mesh, rule->axes[j]);
            if (axis < 0) continue; /* optional; else weft_layout_check is where it is refused */
            int taken_by = weft_spec_state(spec, weft_dims_of(shape), axis);
            if (taken_by == WEFT_REPLICATED) {
                append_axis(spec, dim, axis);
                continue;
            }
            if (n_skipped < room && skipped != NULL)
                skipped[n_skipped] =
                    (weft_skipped){rule->dim, axis, weft_dim_name(shape, taken_by)};
            n_skipped++;
        }
    }
    return n_skipped;
}

/* An axis of one rank splits nothing, whatever the rules give it: two specs that differ in it alone would be two names of
 * one place. It has its part in the rules all the same, so what is skipped does not depend on sizes. */
static void drop_single_axes(const weft_mesh *mesh, int n_dims, weft_spec *spec)
{
    for (int d = 0; d < n_dims; d++) {
        int n = 0;
        for (int i = 0; i < weft_splits_of(spec, d); i++)
            if (weft_mesh_axis_size(mesh, spec->split[d][i]) > 1)
                spec->split[d][n++] = spec->split[d][i];
        memset(&spec->split[d][n], 0, sizeof spec->split[d] - (size_t)n);
        spec->n_split[d] = (int8_t)n;
    }
}

int weft_layout_skipped(const weft_layout *layout, const weft_mesh *mesh, const weft_shape *shape,
                        weft_skipped *skipped, int room)
{
    weft_spec spec;
    return apply(layout, mesh, shape, &spec, skipped, room);
}

int weft_layout_spec(const weft_layout *layout, const weft_mesh *mesh, const weft_shape *shape,
                     weft_spec *spec, char *skipped, size_t bytes)
{
    weft_skipped list[16];
    enum { room = sizeof list / sizeof *list };
    int n = apply(layout, mesh, shape, spec, list, room);
    if (spec != NULL) drop_single_axes(mesh, weft_dims_of(shape), spec);
    weft_print print = weft_print_begin(skipped, skipped != NULL ? bytes : 0);
    for (int i = 0; i < n && i < room; i++)
        weft_print_more(&print, "%s%s: %s is taken by %s", i > 0 ? "; " : "", list[i].dim,
                        weft_mesh_axis_name(mesh, list[i].axis), list[i].taken_by);
    if (n > room) weft_print_more(&print, "; and %d more", n - room);
    return n;
}

/* The axes that rules give to `dim`, in order, each once. Returns how many. */
static int axes_of_dim(const weft_layout *layout, const weft_mesh *mesh, const char *dim,
                       int8_t *axes)
{
    int n = 0;
    uint32_t seen = 0;
    for (int i = 0; layout != NULL && dim != NULL && i < layout->n_rules; i++) {
        const weft_rule *rule = &layout->rules[i];
        if (strcmp(rule->dim, dim) != 0) continue;
        for (int j = 0; j < rule->n_axes; j++) {
            int axis = weft_mesh_find_axis(mesh, rule->axes[j]);
            if (axis < 0 || seen >> axis & 1) continue;
            seen |= 1u << axis;
            axes[n++] = (int8_t)axis;
        }
    }
    return n;
}

/* The largest dim that nothing splits, else the largest; the first of equals, whose parts are
 * contiguous. */
static int storage_dim(const weft_shape *shape, const weft_spec *spec)
{
    int best = 0;
    for (int d = 1; d < weft_dims_of(shape); d++) {
        bool is_free = spec->n_split[d] == 0, best_is_free = spec->n_split[best] == 0;
        if (is_free != best_is_free ? is_free : shape->dims[d].size > shape->dims[best].size)
            best = d;
    }
    return best;
}

void weft_layout_storage(const weft_layout *layout, const weft_mesh *mesh, const weft_shape *shape,
                         const weft_spec *compute, weft_spec *storage)
{
    if (storage == NULL) return;
    *storage = compute != NULL ? *compute : (weft_spec){0};
    if (layout == NULL || weft_dims_of(shape) == 0) return;
    int8_t axes[WEFT_MAX_AXES];
    int n = axes_of_dim(layout, mesh, layout->store_dim, axes);
    for (int i = 0; i < n; i++)
        if (weft_mesh_axis_size(mesh, axes[i]) > 1 &&
            weft_spec_state(storage, weft_dims_of(shape), axes[i]) == WEFT_REPLICATED)
            append_axis(storage, storage_dim(shape, storage), axes[i]);
}

int weft_layout_order(const weft_layout *layout, const weft_mesh *mesh, const char *dim,
                      uint32_t axes, int8_t *order)
{
    int8_t ruled[WEFT_MAX_AXES];
    if (order == NULL) return 0;
    int n = 0, n_ruled = axes_of_dim(layout, mesh, dim, ruled);
    for (int i = 0; i < n_ruled; i++) {
        if (!(axes >> ruled[i] & 1)) continue;
        order[n++] = ruled[i];
        axes &= ~(1u << ruled[i]);
    }
    for (int a = 0; a < weft_mesh_n_axes(mesh); a++)
        if (axes >> a & 1) order[n++] = (int8_t)a;
    return n;
}
