/* opened: a saved program as it is loaded, laid out and given its variables, whoever runs it. */
#include "opened.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../stored_fill.h"
#include "weft/checkpoint.h"
#include "weft/collectives.h"

/* ---- what it is ---------------------------------------------------------------------------------- */

/* The file's rules for another mesh than its own: by the axes that are there ("batch:data?"). To be freed; NULL: no memory. */
static char *rules_where_there(const char *layout)
{
    char *text = malloc(2 * strlen(layout) + 2), *to = text;
    for (const char *at = layout; text && (*to = *at) != '\0'; at++, to++) {
        const bool ends = at[1] == '\0' || at[1] == ',' || at[1] == '+';
        if (ends && *at != '?' && *at != ',' && *at != '+') *++to = '?';
    }
    return text;
}

static weft_status take_layout(settings *s, const weft_saved *saved, weft_error *error)
{
    if (saved->mesh == NULL || strcmp(settings_text(s, "mesh"), saved->mesh) == 0)
        return settings_default(s, "layout", saved->layout, error);
    char *rules = rules_where_there(saved->layout);
    if (rules == NULL) return weft_fail_memory(error, strlen(saved->layout));
    const weft_status status = settings_default(s, "layout", rules, error);
    free(rules);
    return status;
}

/* What was saved with it is taken where nothing else is said. */
static weft_status take_defaults(settings *s, const weft_saved *saved, weft_error *error)
{
    if (saved->mesh) WEFT_TRY(settings_default(s, "mesh", saved->mesh, error));
    if (saved->layout) WEFT_TRY(take_layout(s, saved, error));
    if (saved->checkpoint) WEFT_TRY(settings_default(s, "checkpoint", saved->checkpoint, error));
    return WEFT_OK;
}

static weft_status load(opened *o, weft_error *error)
{
    if (weft_graph_load(o->path, &o->graph, &o->saved, error) == WEFT_OK)
        (void)!take_defaults(o->s, o->saved, error);
    return weft_world_agree(error);
}

/* ---- its variables --------------------------------------------------------------------------------- */

static weft_status fail_variable(const weft_stored *stored, const weft_stored_tensor *t,
                                 weft_value variable, weft_error *error)
{
    char there[256] = "not there", wanted[256];
    if (t) weft_shape_print(&t->shape, there, sizeof there);
    weft_shape_print(weft_shape_of(variable), wanted, sizeof wanted);
    return weft_fail(error, WEFT_USAGE,
                     "%.80s of %.200s is %s%s, and the program has it as %s%s; name a checkpoint "
                     "of this program with --checkpoint",
                     weft_name_of(variable), weft_stored_path(stored), t ? t->dtype : "", there,
                     weft_dtype_name(weft_dtype_of(variable)), wanted);
}

/* The tensor of a variable; -1: there is none that fits. */
static int source_of(const weft_stored *stored, weft_value variable, weft_error *error)
{
    const int index = app_stored_find(stored, weft_name_of(variable));
    const weft_stored_tensor *t = index < 0 ? NULL : weft_stored_tensor_at(stored, index);
    if (t && app_stored_fits(t, variable)) return index;
    (void)!fail_variable(stored, t, variable, error);
    return -1;
}

static weft_status check_variables(const weft_stored *stored, const weft_program *program,
                                   weft_error *error)
{
    weft_value variable;
    for (int i = 0; (variable = weft_variable_at(program, i)).id != 0; i++)
        if (source_of(stored, variable, error) < 0) return error->status;
    return WEFT_OK;
}

/* The runs that it counts go on where the checkpoint's ended: schedules and random numbers do too. */
weft_status opened_restore(opened *o, weft_error *error)
{
    const char *path = settings_text(o->s, "checkpoint");
    weft_checkpoint_state state = {0};
    weft_stored *stored = NULL;
    weft_value variable;
    if (*path == '\0') return WEFT_OK;
    if (weft_stored_open(path, &stored, error) == WEFT_OK)
        (void)!check_variables(stored, o->program, error);
    weft_status status = weft_world_agree(error);
    for (int i = 0; status == WEFT_OK && (variable = weft_variable_at(o->program, i)).id != 0; i++)
        status = app_stored_fill(stored, source_of(stored, variable, error), o->program, variable,
                                 error);
    if (status == WEFT_OK) {
        weft_stored_state(stored, &state);
        weft_set_runs(o->program, state.step);
    }
    weft_stored_close(&stored);
    return status;
}

/* ---- all together --------------------------------------------------------------------------------- */

/* A rule, as batch:data+pod?, names the axis. */
static bool has_axis(const char *layout, const char *axis)
{
    const size_t n = strlen(axis);
    for (const char *at = layout; (at = strstr(at, axis)) != NULL; at += n)
        if (at > layout && strchr(":+", at[-1]) && strchr("?,+", at[n])) return true;
    return false;
}

/* Of the file's rules none may be left. */
static void warn_of_copies(const opened *o)
{
    const int n_ranks = weft_mesh_n_ranks(o->mesh);
    const char *origin = settings_origin(o->s, "layout");
    const bool is_said = strcmp(origin, "default") != 0 && strcmp(origin, "run.json") != 0;
    bool is_split = n_ranks == 1 || is_said;
    for (int a = 0; a < weft_mesh_n_axes(o->mesh) && !is_split; a++)
        is_split = has_axis(weft_layout_text(o->layout), weft_mesh_axis_name(o->mesh, a));
    if (is_split || !weft_mesh_is_root(o->mesh)) return;
    fprintf(stderr,
            "%s: no rule of the file's layout (%s) has an axis of the mesh %s: each of %d "
            "ranks computes everything; give --layout\n",
            o->command, o->saved->layout ? o->saved->layout : "none", weft_mesh_text(o->mesh),
            n_ranks);
}

weft_status opened_begin(opened *o, bool is_plan, weft_world *world, weft_error *error)
{
    WEFT_TRY(app_begin(o->s, is_plan, world, error));
    WEFT_TRY(load(o, error));
    WEFT_TRY(app_lay_out(o->s, is_plan, world, &o->mesh, &o->layout, error));
    warn_of_copies(o);
    return weft_compile(o->mesh, o->layout, o->saved->outputs, NULL, &o->program, error);
}

static weft_status name_output(const opened_output *before, int n, opened_output *out,
                               weft_error *error)
{
    const char *name = weft_name_of(out->value);
    if (name && *name)
        snprintf(out->name, sizeof out->name, "%s", name);
    else
        snprintf(out->name, sizeof out->name, "output%d", n);
    for (int k = 0; k < n; k++)
        if (strcmp(before[k].name, out->name) == 0)
            return weft_fail(error, WEFT_USAGE,
                             "two outputs of the program are called %.80s; name them apart before "
                             "it is saved (weft_name)",
                             out->name);
    return WEFT_OK;
}

weft_status opened_outputs(const weft_saved *saved, opened_output **made, int *n, weft_error *error)
{
    opened_output *all = *made = calloc((size_t)saved->outputs.n_values, sizeof *all);
    weft_status status = all ? WEFT_OK : weft_fail_memory(error, sizeof *all);
    *n = 0;
    for (int i = 0; status == WEFT_OK && i < saved->outputs.n_values; i++) {
        if (weft_is_update(saved->outputs.values[i])) continue;
        all[*n].value = saved->outputs.values[i];
        status = name_output(all, *n, &all[*n], error);
        *n += status == WEFT_OK;
    }
    if (status == WEFT_OK) return WEFT_OK;
    free(all);
    *made = NULL;
    return status;
}

void opened_end(opened *o)
{
    (void)!weft_program_destroy(&o->program);
    (void)!weft_graph_destroy(&o->graph);
}
