/* stored: what an earlier training left in its run directory, for writing text: run.json says which
 * model, the newest checkpoint has its variables.
 *
 * The training may still be going on: this only reads, while weft_checkpoints_open would clear away
 * what looks like an interrupted save. */
#include "../json.h"
#include "../stored_fill.h"
#include "../text.h"
#include "setup.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What makes a model that the variables fit; and the seed, of which the draws are. */
static const char *const model_options[] = {
    "layers", "width",       "heads",       "seq",       "dtype",    "seed",
    "stages", "scan-layers", "average",     "tokens",    "kv-heads", "rope",
    "norm",   "tie",         "experts",     "top-k",     "capacity", "route",
    "hidden", "gated",       "activation",  "biases",    "epsilon",  "rope-base",
    "vocab",  "head-dim",    "rope-factor", "rope-rows", "rope-low", "rope-high"};

/* The checkpoint to read: the newest, or that of --resume STEP. */
static void find_path(const settings *s, char *path, size_t bytes)
{
    char folder[4096];
    const long long step = strtoll(settings_text(s, "resume"), NULL, 10);
    app_checkpoint_folder(settings_text(s, "run"), folder, sizeof folder);
    if (step > 0)
        snprintf(path, bytes, "%.4000s/step_%08lld", folder, step);
    else
        snprintf(path, bytes, "%s", folder);
}

static const weft_stored_tensor *tensor_of(const weft_stored *stored, const char *name)
{
    const int i = app_stored_find(stored, name);
    return i < 0 ? NULL : weft_stored_tensor_at(stored, i);
}

/* 1 where a tensor, or the dim in it, is not there. */
static int64_t size_of(const weft_stored_tensor *t, const char *dim)
{
    for (int d = 0; t && d < t->shape.n_dims; d++)
        if (strcmp(t->shape.dims[d].name, dim) == 0) return t->shape.dims[d].size;
    return 1;
}

/* Of one layer; of all of them, as --scan-layers has them. */
static const weft_stored_tensor *tensor_in_block(const weft_stored *stored, const char *name)
{
    char one[64], all[64];
    snprintf(one, sizeof one, "block0.%s", name);
    snprintf(all, sizeof all, "layer.block0.%s", name);
    const weft_stored_tensor *t = tensor_of(stored, one);
    return t ? t : tensor_of(stored, all);
}

static int64_t count_blocks(const weft_stored *stored)
{
    char name[64];
    const weft_stored_tensor *all = tensor_of(stored, "layer.block0.query");
    for (int64_t n = 0;; n++) {
        snprintf(name, sizeof name, "block%lld.query", (long long)n);
        if (app_stored_find(stored, name) < 0) return all ? size_of(all, "layer") : n;
    }
}

static weft_status take_count(settings *s, const char *name, int64_t count, weft_error *error)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)count);
    return settings_default(s, name, text, error);
}

/* Where no training has written down its options, as after an import, tensors say what they are of. */
static weft_status take_shape(settings *s, const weft_stored *stored, weft_error *error)
{
    const weft_stored_tensor *query = tensor_in_block(stored, "query"),
                             *places = tensor_of(stored, "places");
    const int64_t shared = size_of(query, "heads");
    WEFT_TRY(take_count(s, "layers", count_blocks(stored), error));
    WEFT_TRY(take_count(s, "width", size_of(query, "embed"), error));
    WEFT_TRY(take_count(s, "heads", shared * size_of(query, "group"), error));
    WEFT_TRY(take_count(s, "kv-heads", shared, error));
    WEFT_TRY(take_count(s, "head-dim", size_of(query, "kv"), error));
    WEFT_TRY(
        take_count(s, "experts", size_of(tensor_in_block(stored, "router"), "experts"), error));
    if (query && strcmp(query->dtype, "f64") == 0)
        WEFT_TRY(settings_default(s, "dtype", "f64", error));
    if (places) WEFT_TRY(take_count(s, "seq", size_of(places, "seq"), error));
    WEFT_TRY(take_count(s, "hidden", size_of(tensor_in_block(stored, "up"), "hidden"), error));
    WEFT_TRY(take_count(s, "vocab", size_of(tensor_of(stored, "bytes"), "vocab"), error));
    WEFT_TRY(settings_default(s, "gated", tensor_in_block(stored, "gate") ? "yes" : "no", error));
    WEFT_TRY(settings_default(s, "biases",
                              tensor_in_block(stored, "query.bias") ? "all"
                              : tensor_in_block(stored, "up.bias")  ? "mlp"
                                                                    : "none",
                              error));
    WEFT_TRY(settings_default(s, "rope", places ? "no" : "yes", error));
    WEFT_TRY(settings_default(s, "norm", tensor_of(stored, "norm.bias") ? "layer" : "rms", error));
    WEFT_TRY(settings_default(s, "scan-layers",
                              tensor_of(stored, "layer.block0.query") ? "yes" : "no", error));
    return settings_default(s, "tie", tensor_of(stored, "head") ? "no" : "yes", error);
}

static weft_status take_stored(settings *s, weft_error *error)
{
    char path[4200];
    weft_stored *stored = NULL;
    weft_status status = WEFT_OK;
    find_path(s, path, sizeof path);
    if (weft_stored_open(path, &stored, NULL) == WEFT_OK && tensor_in_block(stored, "query"))
        status = take_shape(s, stored, error);
    weft_stored_close(&stored);
    return status; /* what cannot be opened gpt_stored_check tells of */
}

/* A vocabulary lies beside the file, whose folder this is. */
static weft_status take_option(settings *s, const char *folder, const char *name,
                               const json_t *value, weft_error *error)
{
    char path[4200];
    const char *text = json_string_value(value);
    for (size_t i = 0; text && i < sizeof model_options / sizeof *model_options; i++) {
        if (strcmp(model_options[i], name) != 0) continue;
        if (strcmp(name, "tokens") != 0) return settings_default(s, name, text, error);
        snprintf(path, sizeof path, "%.4000s/%.100s", folder, text);
        return settings_default(s, name, path, error);
    }
    return weft_fail(error, WEFT_USAGE,
                     "%.200s/" APP_MODEL_FILE ": %.60s is no option of a model with a text for its "
                     "value; import the model again: weft ckpt import",
                     folder, name);
}

static weft_status take_model(settings *s, const char *folder, const char *path, weft_error *error)
{
    const char *name;
    json_t *all, *value;
    WEFT_TRY(app_json_read(path, "options of the model", &all, error));
    weft_status status = take_stored(s, error);
    json_object_foreach(json_object_get(all, "options"), name, value)
    {
        if (status == WEFT_OK) status = take_option(s, folder, name, value, error);
    }
    json_decref(all);
    return status;
}

/* What an import has told besides tensors; where none has, they tell by themselves, if they are to. */
static weft_status take_imported(settings *s, bool takes_tensors, weft_error *error)
{
    char folder[4096], path[4200];
    app_checkpoint_folder(settings_text(s, "run"), folder, sizeof folder);
    snprintf(path, sizeof path, "%.4000s/" APP_MODEL_FILE, folder);
    if (access(path, F_OK) == 0) return take_model(s, folder, path, error);
    return takes_tensors ? take_stored(s, error) : WEFT_OK;
}

weft_status gpt_model_defaults(settings *s, weft_error *error)
{
    return take_imported(s, false, error);
}

weft_status gpt_stored_defaults(settings *s, weft_error *error)
{
    char path[4096];
    json_t *all = NULL;
    weft_status status = settings_default(s, "sample", "500", error);
    snprintf(path, sizeof path, "%.4000s/run.json", settings_text(s, "run"));
    const bool is_told = access(path, F_OK) == 0;
    if (status == WEFT_OK && is_told)
        status = app_json_read(path, "options of the run", &all, error);
    if (status == WEFT_OK) status = take_imported(s, !is_told, error);
    json_t *stored = json_object_get(all, "settings");
    for (size_t i = 0; i < sizeof model_options / sizeof *model_options; i++) {
        const json_t *value = json_object_get(json_object_get(stored, model_options[i]), "value");
        if (status == WEFT_OK && json_is_string(value))
            status = settings_default(s, model_options[i], json_string_value(value), error);
    }
    json_decref(all);
    return status == WEFT_OK ? app_json_status(error) : status;
}

weft_status gpt_stored_check(gpt_setup *setup, weft_error *error)
{
    char folder[4096];
    const char *run = settings_text(setup->settings, "run");
    app_checkpoint_folder(run, folder, sizeof folder);
    int64_t *steps;
    int n;
    WEFT_TRY(app_steps(folder, &steps, &n, error));
    free(steps);
    if (n > 0) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "there is no checkpoint in %s; train first: gpt train --run %s", folder, run);
}

/* Of a text that is being written, not of the model. */
static bool is_cache(weft_value variable)
{
    return strncmp(weft_name_of(variable), GPT_CACHE, strlen(GPT_CACHE)) == 0;
}

/* " --layers --width": of the model's options those that were said, here, in a file or in the environment. */
static void list_said(const settings *s, char *text, size_t bytes)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < sizeof model_options / sizeof *model_options && used < bytes; i++) {
        const char *name = model_options[i], *origin = settings_origin(s, name);
        if (strcmp(name, "seed") == 0 || strcmp(origin, "default") == 0 ||
            strcmp(origin, "run.json") == 0)
            continue;
        used += (size_t)snprintf(text + used, bytes - used, " --%s", name);
    }
}

/* t: NULL: there is none of that name */
static weft_status fail_other(const settings *s, const weft_stored *stored, const char *name,
                              const weft_stored_tensor *t, weft_value variable, weft_error *error)
{
    char said[160], there[100] = "not there", wanted[100];
    list_said(s, said, sizeof said);
    if (t) weft_shape_print(&t->shape, there, sizeof there);
    weft_shape_print(weft_shape_of(variable), wanted, sizeof wanted);
    return weft_fail(error, WEFT_USAGE, "%.60s of %.100s is %s, and these options make it %s; %s%s",
                     name, weft_stored_path(stored), there, wanted,
                     *said ? "what the run has is taken without"
                     : settings_is(s, "tokens", "")
                         ? "give options of the model as it was trained with, and "
                           "--tokens DIR where it writes words"
                         : "give options of the model as it was trained with",
                     said);
}

/* The tensor that a variable is taken from; -1: there is none that fits. */
static int source_of(const settings *s, const weft_stored *stored, weft_value variable,
                     weft_error *error)
{
    char name[WEFT_MAX_PATH + 16];
    const bool is_average = settings_real(s, "average") > 0;
    snprintf(name, sizeof name, "%s%s", weft_name_of(variable), is_average ? "/average" : "");
    const int index = app_stored_find(stored, name);
    const weft_stored_tensor *t = index < 0 ? NULL : weft_stored_tensor_at(stored, index);
    if (t && app_stored_fits(t, variable)) return index;
    (void)!fail_other(s, stored, name, t, variable, error);
    return -1;
}

/* The words that it writes in are those that it was trained with. */
static weft_status check_words(const gpt_setup *setup, const weft_stored *stored, weft_error *error)
{
    static const char name[] = "; " GPT_WORDS_FACT ": ";
    char now[BPE_TOLD], before[BPE_TOLD];
    const char *at = strstr(weft_stored_data(stored), name);
    if (!setup->words || !at || settings_flag(setup->settings, "data-changed")) return WEFT_OK;
    at += sizeof name - 1;
    snprintf(before, sizeof before, "%.*s", (int)strcspn(at, ";"), at);
    bpe_told(setup->words, now);
    if (strcmp(before, now) == 0) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "--tokens %.100s has %s, and %.200s was trained with %s; name the vocabulary "
                     "that it was trained with, or give --data-changed",
                     settings_text(setup->settings, "tokens"), now, weft_stored_path(stored),
                     before);
}

weft_status gpt_stored_restore(const gpt_setup *setup, weft_program *program, weft_error *error)
{
    const settings *s = setup->settings;
    char path[4200];
    weft_value variable;
    weft_stored *stored = NULL;
    weft_error own = {.rank = -1};
    find_path(s, path, sizeof path);
    weft_status status = weft_stored_open(path, &stored, &own);
    if (status == WEFT_OK) status = check_words(setup, stored, &own);
    for (int i = 0; status == WEFT_OK && (variable = weft_variable_at(program, i)).id != 0; i++)
        if (!is_cache(variable) && source_of(s, stored, variable, &own) < 0) status = own.status;
    status = weft_world_agree(&own);
    for (int i = 0; status == WEFT_OK && (variable = weft_variable_at(program, i)).id != 0; i++)
        if (!is_cache(variable))
            status = app_stored_fill(stored, source_of(s, stored, variable, &own), program,
                                     variable, &own);
    weft_stored_close(&stored);
    if (status != WEFT_OK) *error = own;
    return status;
}
