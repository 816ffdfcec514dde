/* ckpt: `weft ckpt list | show | verify`, and the command line of all that it does. */
#include "ckpt.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "weft/io.h"

static const option options[] = {
    {"format", OPTION_CHOICE, "auto", "NAME", "Options",
     "of FILE; auto: .safetensors (.json: an index of several), or .h5 and .hdf5, by its ending",
     "auto safetensors hdf5"},
    {"dims", OPTION_LIST, "", "NAME=a,b ...", "Options",
     "import: what the dims of tensors are called; {i} in a NAME stands for any number"},
    {"map", OPTION_TEXT, "", "FILE", "Options",
     "names, dims, transposes and splits, as JSON, or one that comes with Weft: bert, gpt2, llama"},
    {"names", OPTION_CHOICE, "ours", "WHOSE", "Options",
     "hf: those of Hugging Face's models, by the map that fits", "ours hf"},
    {"sizes", OPTION_LIST, "", "NAME=N ...", "Options",
     "import: sizes of dims that --map or --dims have in one dim of the file, as heads*kv"},
    {"shard-bytes", OPTION_COUNT, "0", "N", "Options",
     "export by --names or --map: more than N bytes go into several files, with an index; 0: one"},
    {"json", OPTION_FLAG, "no", "", "Options", "the same as data"},
};
const option_table ckpt_table = {
    .program = "weft ckpt",
    .usage = "weft ckpt list DIR                   the checkpoints of a run\n"
             "weft ckpt show PATH                  step, mesh, layout and tensors of one\n"
             "weft ckpt verify PATH                every hash of every file\n"
             "weft ckpt diff A B                   exit status 1 when they differ\n"
             "weft ckpt export PATH FILE           all tensors as one .safetensors or .h5 file\n"
             "weft ckpt import FILE DIR            such a file as a checkpoint in DIR\n"
             "weft ckpt import FILE DIR --names hf a Hugging Face model: its folder or file\n"
             "weft ckpt export PATH FILE --names hf\n"
             "                                     with the names of such a model; into a\n"
             "                                     folder with config.json and vocabulary\n"
             "weft ckpt import FILE DIR --map gpt2 that of another program, by a map\n"
             "\n"
             "PATH is a checkpoint (step_...), a folder of them, or a run: then its newest.\n",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .about = "checkpoints on disk: list, show, verify, diff, export, import",
    .commands = "list show verify diff export import",
};

enum { MAX_PATH = 4096 };

/* ---- parts of answers ----------------------------------------------------------------------- */

int64_t ckpt_bytes_of(const weft_stored *stored)
{
    int64_t bytes = 0;
    for (int i = 0; i < weft_stored_n_tensors(stored); i++)
        bytes += weft_stored_tensor_at(stored, i)->bytes;
    return bytes;
}

json_t *ckpt_stored_json(const weft_stored *stored)
{
    weft_checkpoint_state state;
    weft_stored_state(stored, &state);
    json_t *loss = state.has_loss ? json_real(state.loss) : json_null();
    return json_pack("{s:s, s:I, s:I, s:I, s:s, s:s, s:s, s:s, s:s, s:o, s:s, s:i, s:I}", "path",
                     weft_stored_path(stored), "step", (json_int_t)state.step, "sample",
                     (json_int_t)state.sample, "seed", (json_int_t)state.seed, "mesh",
                     weft_stored_mesh(stored), "layout", weft_stored_layout(stored), "data",
                     weft_stored_data(stored), "program", weft_stored_program(stored), "library",
                     weft_stored_library(stored), "held_out", loss, "held_out_data",
                     weft_stored_held_out(stored), "n_tensors", weft_stored_n_tensors(stored),
                     "bytes", (json_int_t)ckpt_bytes_of(stored));
}

static json_t *tensor_json(const weft_stored_tensor *t)
{
    json_t *dims = json_array();
    for (int d = 0; d < t->shape.n_dims; d++)
        json_array_append_new(
            dims, json_pack("[s, I]", t->shape.dims[d].name, (json_int_t)t->shape.dims[d].size));
    return json_pack("{s:s, s:s, s:o, s:s, s:I, s:I, s:b}", "name", t->name, "dtype", t->dtype,
                     "dims", dims, "file", t->file, "offset", (json_int_t)t->offset, "bytes",
                     (json_int_t)t->bytes, "slot", t->is_slot);
}

/* ---- list, show, verify --------------------------------------------------------------------- */

/* One line of the list; a checkpoint that cannot be read is a line too. */
static weft_status list_one(ckpt_call *c, const char *folder, int64_t step, int64_t best,
                            weft_error *error)
{
    char path[MAX_PATH], loss[32] = "-";
    weft_checkpoint_state state;
    weft_stored *stored = NULL;
    weft_error why = {.rank = -1};
    snprintf(path, sizeof path, "%.4000s/step_%08lld", folder, (long long)step);
    const weft_status status = weft_stored_open(path, &stored, &why);
    if (status == WEFT_MEMORY) return weft_fail(error, status, "%s", why.message);
    if (status != WEFT_OK) {
        json_array_append_new(c->json, json_pack("{s:s, s:I, s:s}", "path", path, "step",
                                                 (json_int_t)step, "error", why.message));
        if (!c->is_json) printf("%10lld  %s\n", (long long)step, why.message);
        return WEFT_OK;
    }
    json_t *json = ckpt_stored_json(stored);
    json_object_set_new(json, "best", json_boolean(step == best));
    json_array_append_new(c->json, json);
    weft_stored_state(stored, &state);
    if (state.has_loss) snprintf(loss, sizeof loss, "%.4f", state.loss);
    if (!c->is_json)
        printf("%10lld  %7d  %10.1f  %8s  %-4s  %s  %s\n", (long long)step,
               weft_stored_n_tensors(stored), (double)ckpt_bytes_of(stored) / (1 << 20), loss,
               step == best ? "best" : "", weft_stored_mesh(stored),
               *weft_stored_layout(stored) ? weft_stored_layout(stored) : "none");
    weft_stored_close(&stored);
    return WEFT_OK;
}

static weft_status list(ckpt_call *c, weft_error *error)
{
    char folder[MAX_PATH];
    weft_checkpoint_state best;
    snprintf(folder, sizeof folder, "%s", c->paths[0]);
    int64_t *steps;
    int n;
    WEFT_TRY(app_steps(folder, &steps, &n, error));
    if (n == 0) {
        free(steps);
        snprintf(folder, sizeof folder, "%.4000s/ckpt", c->paths[0]);
        WEFT_TRY(app_steps(folder, &steps, &n, error));
    }
    if (n == 0) {
        struct stat facts;
        free(steps);
        if (stat(c->paths[0], &facts) == 0 && S_ISREG(facts.st_mode))
            WEFT_TRY(weft_file_check(c->paths[0], WEFT_FILE_CHECKPOINT, error));
        return weft_fail(error, WEFT_USAGE, "there are no checkpoints in %s, nor in its ckpt",
                         c->paths[0]);
    }
    c->json = json_array();
    if (!c->is_json)
        printf("%10s  %7s  %10s  %8s  %-4s  mesh, layout\n", "step", "tensors", "MiB", "held out",
               "");
    const int64_t best_step = weft_stored_best(folder, NULL, &best) ? best.step : -1;
    weft_status status = WEFT_OK;
    for (int i = 0; i < n && status == WEFT_OK; i++)
        status = list_one(c, folder, steps[i], best_step, error);
    free(steps);
    return status;
}

static weft_status show(ckpt_call *c, weft_error *error)
{
    char dims[1024], loss[32] = "not measured";
    weft_stored *stored = NULL;
    weft_checkpoint_state state;
    WEFT_TRY(weft_stored_open(c->paths[0], &stored, error));
    weft_stored_state(stored, &state);
    c->json = ckpt_stored_json(stored);
    json_t *tensors = json_array();
    if (state.has_loss) snprintf(loss, sizeof loss, "%.17g", state.loss);
    if (!c->is_json)
        printf("path    %s\nstep    %lld\nsample  %lld\nseed    %llu\nmesh    %s\nlayout  "
               "%s\ndata    %s\nheld out %s\nprogram %s\nlibrary %s\n\n",
               weft_stored_path(stored), (long long)state.step, (long long)state.sample,
               (unsigned long long)state.seed, weft_stored_mesh(stored), weft_stored_layout(stored),
               *weft_stored_data(stored) ? weft_stored_data(stored) : "not said", loss,
               weft_stored_program(stored), weft_stored_library(stored));
    for (int i = 0; i < weft_stored_n_tensors(stored); i++) {
        const weft_stored_tensor *t = weft_stored_tensor_at(stored, i);
        json_array_append_new(tensors, tensor_json(t));
        weft_shape_print(&t->shape, dims, sizeof dims);
        if (!c->is_json)
            printf("  %-24s %s %-9s %-32s %s at %lld\n", t->name, t->dtype,
                   t->is_slot ? "slot" : "parameter", dims, t->file, (long long)t->offset);
    }
    json_object_set_new(c->json, "tensors", tensors);
    weft_stored_close(&stored);
    return WEFT_OK;
}

static weft_status verify(ckpt_call *c, weft_error *error)
{
    weft_stored *stored = NULL;
    WEFT_TRY(weft_stored_open(c->paths[0], &stored, error));
    const weft_status status = weft_stored_verify(stored, error);
    c->json = ckpt_stored_json(stored);
    json_object_set_new(c->json, "good", json_boolean(status == WEFT_OK));
    if (status == WEFT_OK && !c->is_json)
        printf("%s is good: %d tensors, %lld bytes\n", weft_stored_path(stored),
               weft_stored_n_tensors(stored), (long long)ckpt_bytes_of(stored));
    weft_stored_close(&stored);
    return status;
}

/* ---- the command line ----------------------------------------------------------------------- */

static const struct {
    const char *name, *wants;
    int n_paths;
    weft_status (*run)(ckpt_call *, weft_error *);
} subcommands[] = {
    {"list", "DIR", 1, list},
    {"show", "PATH", 1, show},
    {"verify", "PATH", 1, verify},
    {"diff", "A B", 2, ckpt_diff},
    {"export", "PATH FILE", 2, ckpt_export},
    {"import", "FILE DIR", 2, ckpt_import},
};
enum { N_SUBCOMMANDS = sizeof subcommands / sizeof *subcommands };

static int find_subcommand(const char *name, weft_error *error)
{
    const char *names[N_SUBCOMMANDS];
    for (int i = 0; i < N_SUBCOMMANDS; i++)
        names[i] = subcommands[i].name;
    return app_find_command("ckpt", name, names, N_SUBCOMMANDS, error);
}

static weft_status answer(int which, int n, char **arguments, const settings *s, ckpt_call *c,
                          weft_error *error)
{
    if (n != subcommands[which].n_paths)
        return weft_fail(error, WEFT_USAGE, "ckpt %s wants %s, and %d %s given: weft ckpt %s %s",
                         subcommands[which].name, subcommands[which].wants, n,
                         n == 1 ? "name was" : "names were", subcommands[which].name,
                         subcommands[which].wants);
    c->paths = (const char *const *)arguments;
    c->is_json = settings_flag(s, "json");
    c->format = settings_text(s, "format");
    c->dims = settings_text(s, "dims");
    c->map = settings_text(s, "map");
    c->sizes = settings_text(s, "sizes");
    c->has_names = settings_is(s, "names", "hf");
    c->shard_bytes = settings_count(s, "shard-bytes");
    const bool is_import = subcommands[which].run == ckpt_import;
    if ((*c->dims || *c->sizes) && !is_import)
        return weft_fail(error, WEFT_USAGE, "ckpt %s: --dims and --sizes are for ckpt import",
                         subcommands[which].name);
    if ((*c->map || c->has_names) && !is_import && subcommands[which].run != ckpt_export)
        return weft_fail(error, WEFT_USAGE,
                         "ckpt %s: --map and --names are for ckpt import and ckpt export",
                         subcommands[which].name);
    if (c->shard_bytes > 0 && !(subcommands[which].run == ckpt_export && (*c->map || c->has_names)))
        return weft_fail(error, WEFT_USAGE,
                         "ckpt %s: --shard-bytes is for ckpt export with --names or --map",
                         subcommands[which].name);
    const weft_status status = subcommands[which].run(c, error);
    if (c->json && c->is_json) {
        json_dumpf(c->json, stdout, JSON_INDENT(2));
        putchar('\n');
    }
    json_decref(c->json);
    if (fflush(stdout) != 0) return weft_fail(error, WEFT_IO, "cannot write to stdout");
    return status;
}

int ckpt_main(int n, char **arguments)
{
    weft_error error = {.rank = -1};
    ckpt_call c = {0};
    const int n_operands = options_operands(&ckpt_table, n, arguments, &error);
    const int which = n_operands > 0 ? find_subcommand(arguments[0], &error) : -1;
    settings *s = error.status == WEFT_OK
                      ? settings_read(&ckpt_table, n - n_operands, arguments + n_operands, &error)
                      : NULL;
    if (s && which >= 0)
        (void)!answer(which, n_operands - 1, arguments + 1, s, &c, &error);
    else if (s)
        weft_fail(&error, WEFT_USAGE, "ckpt what? weft ckpt --help lists what there is");
    settings_destroy(&s);
    const int code = app_leave(ckpt_table.program, APP_STARTING, &error);
    weft_world_close();
    return code != 0 ? code : c.code;
}
