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
    {"output", OPTION_TEXT, "", "DIR", "Options",
     "write outputs there, NAME.npy: rows of all batches, and of others what the last step left"},
    {"save", OPTION_TEXT, "", "DIR", "Options", "at the end a checkpoint of its variables, there"},
    OPENED_OPTIONS("Options"),
    APP_READERS_OPTION("Options"),
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
    opened o;
    weft_chain *chain; /* of --data, until the dataset has it */
    weft_dataset *data;
    int64_t steps;
    outputs *outputs;
} job;

static weft_status save(const job *j, weft_error *error)
{
    const char *folder = settings_text(j->o.s, "save");
    const weft_checkpoint_state state = {.step = weft_runs(j->o.program)};
    weft_checkpoints *checkpoints = NULL;
    if (*folder == '\0') return WEFT_OK;
    WEFT_TRY(weft_checkpoints_open(folder, NULL, &checkpoints, error));
    weft_status status = weft_checkpoints_save(checkpoints, j->o.program, &state, error);
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
    const char *path = settings_text(j->o.s, "data");
    if (*path != '\0') WEFT_TRY(weft_chain_open(path, NULL, &j->chain, error));
    WEFT_TRY(givens_check(j->o.s, j->o.saved, j->o.program, j->chain, error));
    const int64_t batch = batch_of(j->chain, j->o.program), n = weft_chain_records(j->chain);
    j->steps = settings_count(j->o.s, "steps");
    if (j->steps == 0) j->steps = j->chain && batch > 0 ? n / batch : 1;
    if (j->steps == 0)
        return weft_fail(error, WEFT_USAGE,
                         "--data %.200s has %lld records, and a batch takes %lld; give more, or "
                         "--steps N to begin again at its end",
                         path, (long long)n, (long long)batch);
    if (j->chain == NULL) return WEFT_OK;
    WEFT_TRY(weft_chain_dataset(&j->chain, NULL, &j->data, error));
    WEFT_TRY(app_feed(j->o.s, j->o.mesh, j->data, error));
    return weft_dataset_start(j->data, j->o.program, error);
}

/* ---- running --------------------------------------------------------------------------------------- */

static weft_status print_plan(const job *j, weft_error *error)
{
    if (!weft_world_is_root()) return WEFT_OK;
    return settings_flag(j->o.s, "json") ? weft_plan_json(j->o.program, stdout, error)
                                         : weft_plan_summary(j->o.program, stdout, error);
}

static weft_status print_json(const job *j, weft_error *error)
{
    json_t *all =
        json_pack("{s:s, s:s, s:s, s:I}", "program", j->o.path, "mesh", weft_mesh_text(j->o.mesh),
                  "layout", weft_program_layout(j->o.program), "steps", (json_int_t)j->steps);
    json_t *told = outputs_json(j->outputs);
    json_object_update(all, told);
    json_decref(told);
    json_dumpf(all, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(all);
    return app_json_status(error);
}

static weft_status run_steps(job *j, weft_error *error)
{
    for (int64_t step = 1; step <= j->steps; step++) {
        if (j->data) WEFT_TRY(weft_dataset_next(j->data, j->o.program, error));
        WEFT_TRY(weft_run(j->o.program, error));
        WEFT_TRY(outputs_take(j->outputs, step, error));
    }
    WEFT_TRY(outputs_end(j->outputs, error));
    WEFT_TRY(save(j, error));
    if (settings_flag(j->o.s, "json") && weft_mesh_is_root(j->o.mesh)) return print_json(j, error);
    return WEFT_OK;
}

static weft_status run(job *j, weft_world *world, weft_error *error)
{
    const bool is_plan = settings_flag(j->o.s, "dry-run");
    WEFT_TRY(opened_begin(&j->o, is_plan, world, error));
    if (is_plan) return print_plan(j, error);
    WEFT_TRY(opened_restore(&j->o, error));
    WEFT_TRY(givens_write(j->o.s, j->o.program, error));
    (void)!open_data(j, error);
    WEFT_TRY(weft_world_agree(error));
    WEFT_TRY(outputs_open(j->o.s, j->o.saved, j->o.program, &j->outputs, error));
    return run_steps(j, error);
}

static int close_job(job *j, const weft_error *error)
{
    const app_phase phase = j->outputs ? APP_RUNNING : APP_STARTING;
    outputs_close(&j->outputs);
    weft_dataset_close(&j->data);
    weft_chain_close(&j->chain);
    opened_end(&j->o);
    return app_close(&run_table, &j->o.s, &j->o.mesh, &j->o.layout, phase, error);
}

int run_main(int n, char **arguments)
{
    weft_error error = {.rank = -1};
    weft_world world;
    job j = {.o = {.command = "weft run"}};
    const int n_operands = options_operands(&run_table, n, arguments, &error);
    if (error.status == WEFT_OK)
        j.o.s = settings_read(&run_table, n - n_operands, arguments + n_operands, &error);
    j.o.path = n_operands > 0 ? arguments[0] : "";
    if (j.o.s && n_operands != 1)
        (void)!weft_fail(&error, WEFT_USAGE,
                         "weft run takes one saved program, and here %s; write weft run FILE",
                         n_operands == 0 ? "none is named" : "several are named");
    else if (j.o.s && run(&j, &world, &error) == WEFT_OK && fflush(stdout) != 0)
        (void)!weft_fail(&error, WEFT_IO, "cannot write to stdout");
    return close_job(&j, &error);
}
