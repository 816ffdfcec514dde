/* saved: `weft run FILE`: a saved program on a mesh and layout, its own or others, fed from files. */
#include "saved.h"

#include <stdlib.h>
#include <string.h>

#include "../../feed.h"
#include "../../json.h"
#include "../../stored_fill.h"
#include "weft/checkpoint.h"
#include "weft/collectives.h"

static const option options[] = {
    {"input", OPTION_LIST, "", "NAME=FILE ...", "Options",
     "what an input or variable holds: a file of NumPy, x=x.npy, or a number, rate=0.1"},
    {"data", OPTION_TEXT, "", "FILE", "Options",
     "records, of a file or pattern, whose fields fill the inputs of their names, batch by batch"},
    {"steps", OPTION_COUNT, "0", "N", "Options",
     "runs of the program; 0: one, or as many as --data has batches"},
    {"checkpoint", OPTION_TEXT, "", "PATH", "Options",
     "a run or checkpoint that has its variables; without it, the one it was saved with"},
    {"output", OPTION_TEXT, "", "DIR", "Options",
     "write outputs there, NAME.npy: rows of all batches, and of others what the last step left"},
    {"save", OPTION_TEXT, "", "DIR", "Options", "at the end a checkpoint of its variables, there"},
    {"mesh", OPTION_TEXT, "", "AXES", "Options", "as for gpt; without it, that of the file"},
    {"layout", OPTION_TEXT, "", "RULES", "Options",
     "as for gpt; without it, that of the file, by the axes that the mesh has"},
    {"zero", OPTION_CHOICE, "0", "STAGE", "Options", "as for gpt", "0 1 2 3"},
    APP_READERS_OPTION("Options"),
    APP_EXTEND_OPTIONS("Options"),
    {"dry-run", OPTION_FLAG, "no", "", "Options", "print the plan in place of running it"},
    {"json", OPTION_FLAG, "no", "", "Options", "the outputs as data; with --dry-run the plan"},
};
const option_table run_table = {
    .program = "weft run",
    .usage = "weft run FILE [options]   a saved program, without the code that built it\n",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .about = "a saved program (weft_graph_save), run on any mesh and layout",
};

typedef struct job {
    settings *s;
    const char *path; /* of the program */
    weft_graph *graph;
    const weft_saved *saved; /* the graph's */
    weft_mesh *mesh;
    weft_layout *layout;
    weft_program *program;
    weft_chain *chain; /* of --data, until the dataset has it */
    weft_dataset *data;
    int64_t steps;
    outputs *outputs;
} job;

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

static weft_status load(job *j, weft_error *error)
{
    if (weft_graph_load(j->path, &j->graph, &j->saved, error) == WEFT_OK)
        (void)!take_defaults(j->s, j->saved, error);
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
static weft_status restore(job *j, weft_error *error)
{
    const char *path = settings_text(j->s, "checkpoint");
    weft_checkpoint_state state = {0};
    weft_stored *stored = NULL;
    weft_value variable;
    if (*path == '\0') return WEFT_OK;
    if (weft_stored_open(path, &stored, error) == WEFT_OK)
        (void)!check_variables(stored, j->program, error);
    weft_status status = weft_world_agree(error);
    for (int i = 0; status == WEFT_OK && (variable = weft_variable_at(j->program, i)).id != 0; i++)
        status = app_stored_fill(stored, source_of(stored, variable, error), j->program, variable,
                                 error);
    if (status == WEFT_OK) {
        weft_stored_state(stored, &state);
        weft_set_runs(j->program, state.step);
    }
    weft_stored_close(&stored);
    return status;
}

static weft_status save(const job *j, weft_error *error)
{
    const char *folder = settings_text(j->s, "save");
    const weft_checkpoint_state state = {.step = weft_runs(j->program)};
    weft_checkpoints *checkpoints = NULL;
    if (*folder == '\0') return WEFT_OK;
    WEFT_TRY(weft_checkpoints_open(folder, NULL, &checkpoints, error));
    weft_status status = weft_checkpoints_save(checkpoints, j->program, &state, error);
    if (status == WEFT_OK) status = weft_checkpoints_wait(checkpoints, error);
    weft_checkpoints_close(&checkpoints);
    return status;
}

/* ---- what it reads --------------------------------------------------------------------------------- */

/* Samples of a batch, by the first input that a field fills; 0: none does. */
static int64_t batch_of(const weft_chain *chain, const weft_program *program)
{
    for (int f = 0; f < weft_chain_fields(chain); f++) {
        const weft_value input = weft_find_input(program, weft_chain_field_name(chain, f));
        if (input.id != 0 && weft_shape_of(input)->n_dims > 0)
            return weft_shape_of(input)->dims[0].size;
    }
    return 0;
}

static weft_status open_data(job *j, weft_error *error)
{
    const char *path = settings_text(j->s, "data");
    if (*path != '\0') WEFT_TRY(weft_chain_open(path, NULL, &j->chain, error));
    WEFT_TRY(givens_check(j->s, j->saved, j->program, j->chain, error));
    const int64_t batch = batch_of(j->chain, j->program), n = weft_chain_records(j->chain);
    j->steps = settings_count(j->s, "steps");
    if (j->steps == 0) j->steps = j->chain && batch > 0 ? n / batch : 1;
    if (j->steps == 0)
        return weft_fail(error, WEFT_USAGE,
                         "--data %.200s has %lld records, and a batch takes %lld; give more, or "
                         "--steps N to begin again at its end",
                         path, (long long)n, (long long)batch);
    if (j->chain == NULL) return WEFT_OK;
    WEFT_TRY(weft_chain_dataset(&j->chain, NULL, &j->data, error));
    WEFT_TRY(app_feed(j->s, j->mesh, j->data, error));
    return weft_dataset_start(j->data, j->program, error);
}

/* ---- running --------------------------------------------------------------------------------------- */

static weft_status print_plan(const job *j, weft_error *error)
{
    if (!weft_world_is_root()) return WEFT_OK;
    return settings_flag(j->s, "json") ? weft_plan_json(j->program, stdout, error)
                                       : weft_plan_summary(j->program, stdout, error);
}

static weft_status print_json(const job *j, weft_error *error)
{
    json_t *all =
        json_pack("{s:s, s:s, s:s, s:I}", "program", j->path, "mesh", weft_mesh_text(j->mesh),
                  "layout", weft_program_layout(j->program), "steps", (json_int_t)j->steps);
    json_t *told = outputs_json(j->outputs);
    json_object_update(all, told);
    json_decref(told);
    json_dumpf(all, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(all);
    return app_json_status(error);
}

/* A rule, as batch:data+pod?, names the axis. */
static bool has_axis(const char *layout, const char *axis)
{
    const size_t n = strlen(axis);
    for (const char *at = layout; (at = strstr(at, axis)) != NULL; at += n)
        if (at > layout && strchr(":+", at[-1]) && strchr("?,+", at[n])) return true;
    return false;
}

static weft_status run_steps(job *j, weft_error *error)
{
    for (int64_t step = 1; step <= j->steps; step++) {
        if (j->data) WEFT_TRY(weft_dataset_next(j->data, j->program, error));
        WEFT_TRY(weft_run(j->program, error));
        WEFT_TRY(outputs_take(j->outputs, step, error));
    }
    WEFT_TRY(outputs_end(j->outputs, error));
    WEFT_TRY(save(j, error));
    if (settings_flag(j->s, "json") && weft_mesh_is_root(j->mesh)) return print_json(j, error);
    return WEFT_OK;
}

/* Of the file's rules none may be left. */
static void warn_of_copies(const job *j)
{
    const int n_ranks = weft_mesh_n_ranks(j->mesh);
    const char *origin = settings_origin(j->s, "layout");
    const bool is_said = strcmp(origin, "default") != 0 && strcmp(origin, "run.json") != 0;
    bool is_split = n_ranks == 1 || is_said;
    for (int a = 0; a < weft_mesh_n_axes(j->mesh) && !is_split; a++)
        is_split = has_axis(weft_layout_text(j->layout), weft_mesh_axis_name(j->mesh, a));
    if (is_split || !weft_mesh_is_root(j->mesh)) return;
    fprintf(stderr,
            "weft run: no rule of the file's layout (%s) has an axis of the mesh %s: each of %d "
            "ranks computes everything; give --layout\n",
            j->saved->layout ? j->saved->layout : "none", weft_mesh_text(j->mesh), n_ranks);
}

static weft_status run(job *j, weft_world *world, weft_error *error)
{
    const bool is_plan = settings_flag(j->s, "dry-run");
    WEFT_TRY(app_begin(j->s, is_plan, world, error));
    WEFT_TRY(load(j, error));
    WEFT_TRY(app_lay_out(j->s, is_plan, world, &j->mesh, &j->layout, error));
    warn_of_copies(j);
    WEFT_TRY(weft_compile(j->mesh, j->layout, j->saved->outputs, NULL, &j->program, error));
    if (is_plan) return print_plan(j, error);
    WEFT_TRY(restore(j, error));
    WEFT_TRY(givens_write(j->s, j->program, error));
    (void)!open_data(j, error);
    WEFT_TRY(weft_world_agree(error));
    WEFT_TRY(outputs_open(j->s, j->saved, j->program, &j->outputs, error));
    return run_steps(j, error);
}

static int close_job(job *j, const weft_error *error)
{
    const app_phase phase = j->outputs ? APP_RUNNING : APP_STARTING;
    outputs_close(&j->outputs);
    weft_dataset_close(&j->data);
    weft_chain_close(&j->chain);
    (void)!weft_program_destroy(&j->program);
    (void)!weft_graph_destroy(&j->graph);
    return app_close(&run_table, &j->s, &j->mesh, &j->layout, phase, error);
}

int run_main(int n, char **arguments)
{
    weft_error error = {.rank = -1};
    weft_world world;
    job j = {NULL};
    const int n_operands = options_operands(&run_table, n, arguments, &error);
    if (error.status == WEFT_OK)
        j.s = settings_read(&run_table, n - n_operands, arguments + n_operands, &error);
    j.path = n_operands > 0 ? arguments[0] : "";
    if (j.s && n_operands != 1)
        (void)!weft_fail(&error, WEFT_USAGE,
                         "weft run takes one saved program, and here %s; write weft run FILE",
                         n_operands == 0 ? "none is named" : "several are named");
    else if (j.s && run(&j, &world, &error) == WEFT_OK && fflush(stdout) != 0)
        (void)!weft_fail(&error, WEFT_IO, "cannot write to stdout");
    return close_job(&j, &error);
}
