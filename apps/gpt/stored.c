/* stored: what an earlier training left in its run directory, for writing text: run.json says which
 * model, the newest checkpoint has its variables.
 *
 * The training may still be going on: this only reads, while weft_checkpoints_open would clear away
 * what looks like an interrupted save. */
#include "../json.h"
#include "../text.h"
#include "setup.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What makes a model that the variables fit; and the seed, of which the draws are. */
static const char *const model_options[] = {
    "layers", "width",    "heads", "seq",  "dtype", "seed",    "stages", "scan-layers", "average",
    "tokens", "kv-heads", "rope",  "norm", "tie",   "experts", "top-k",  "capacity",    "route"};

weft_status gpt_stored_defaults(settings *s, weft_error *error)
{
    char path[4096];
    json_t *all = NULL;
    weft_status status = settings_default(s, "sample", "500", error);
    snprintf(path, sizeof path, "%.4000s/run.json", settings_text(s, "run"));
    if (status == WEFT_OK && access(path, F_OK) == 0)
        status = app_json_read(path, "options of the run", &all, error);
    json_t *stored = json_object_get(all, "settings");
    for (size_t i = 0; i < sizeof model_options / sizeof *model_options; i++) {
        const json_t *value = json_object_get(json_object_get(stored, model_options[i]), "value");
        if (status == WEFT_OK && json_is_string(value))
            status = settings_default(s, model_options[i], json_string_value(value), error);
    }
    json_decref(all);
    return status == WEFT_OK ? app_json_status(error) : status;
}

weft_status gpt_stored_check(gpt_setup *job, weft_error *error)
{
    char folder[4096];
    const char *run = settings_text(job->settings, "run");
    app_checkpoint_folder(run, folder, sizeof folder);
    int64_t *steps;
    int n;
    WEFT_TRY(app_steps(folder, &steps, &n, error));
    free(steps);
    if (n > 0) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "there is no checkpoint in %s; train first: gpt train --run %s", folder, run);
}

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

static int find_tensor(const weft_stored *stored, const char *name)
{
    const int n = weft_stored_n_tensors(stored);
    for (int i = 0; i < n; i++)
        if (strcmp(weft_stored_tensor_at(stored, i)->name, name) == 0) return i;
    return -1;
}

static bool fits(const weft_stored_tensor *t, weft_value variable)
{
    const weft_shape *shape = weft_shape_of(variable);
    const weft_dtype stored = weft_dtype_find(t->dtype), wanted = weft_dtype_of(variable);
    bool is_same =
        (stored == wanted || (weft_dtype_is_float(stored) && weft_dtype_is_float(wanted))) &&
        t->shape.n_dims == shape->n_dims;
    for (int d = 0; is_same && d < shape->n_dims; d++)
        is_same = t->shape.dims[d].size == shape->dims[d].size &&
                  strcmp(t->shape.dims[d].name, shape->dims[d].name) == 0;
    return is_same;
}

/* A model of another program may be stored in 16 bits. */
static void take_numbers(const weft_stored_tensor *t, const void *raw, weft_dtype dtype, void *to)
{
    const weft_dtype stored = weft_dtype_find(t->dtype);
    const int64_t count = weft_shape_count(&t->shape);
    if (stored == dtype)
        memcpy(to, raw, (size_t)t->bytes);
    else
        for (int64_t i = 0; i < count; i++)
            weft_dtype_put(dtype, to, i, weft_dtype_get(stored, raw, i));
}

/* Of a text that is being written, not of the model. */
static bool is_cache(weft_value variable)
{
    return strncmp(weft_name_of(variable), GPT_CACHE, strlen(GPT_CACHE)) == 0;
}

static weft_status fill(const weft_stored *stored, weft_program *program, weft_value variable,
                        bool is_average, weft_error *error)
{
    char name[WEFT_MAX_PATH + 16];
    snprintf(name, sizeof name, "%s%s", weft_name_of(variable), is_average ? "/average" : "");
    const int index = find_tensor(stored, name);
    if (index < 0 || !fits(weft_stored_tensor_at(stored, index), variable))
        return weft_fail(
            error, WEFT_USAGE,
            "%s in %.200s is not what these options make: leave --layers, --width, "
            "--kv-heads, --rope, --norm, --tie, --experts, --seq, --tokens, --dtype and --average "
            "away, so that "
            "those of the run are taken",
            name, weft_stored_path(stored));
    const weft_stored_tensor *t = weft_stored_tensor_at(stored, index);
    const weft_dtype dtype = weft_dtype_of(variable);
    const int64_t bytes = weft_shape_count(&t->shape) * (int64_t)weft_dtype_bytes(dtype);
    void *raw = malloc((size_t)t->bytes + 1), *buffer = malloc((size_t)bytes + 1);
    weft_status status = raw && buffer ? weft_stored_read(stored, index, raw, error)
                                       : weft_fail_memory(error, (size_t)(t->bytes + bytes));
    if (status == WEFT_OK) {
        take_numbers(t, raw, dtype, buffer);
        status = weft_write(program, variable, dtype, buffer, bytes, error);
    }
    free(raw);
    free(buffer);
    return status;
}

/* The words that it writes in are those that it was trained with. */
static weft_status check_words(const gpt_setup *job, const weft_stored *stored, weft_error *error)
{
    static const char name[] = "; " GPT_WORDS_FACT ": ";
    char now[BPE_TOLD], before[BPE_TOLD];
    const char *at = strstr(weft_stored_data(stored), name);
    if (!job->words || !at || settings_flag(job->settings, "data-changed")) return WEFT_OK;
    at += sizeof name - 1;
    snprintf(before, sizeof before, "%.*s", (int)strcspn(at, ";"), at);
    bpe_told(job->words, now);
    if (strcmp(before, now) == 0) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "--tokens %.100s has %s, and %.200s was trained with %s; name the vocabulary "
                     "that it was trained with, or give --data-changed",
                     settings_text(job->settings, "tokens"), now, weft_stored_path(stored), before);
}

weft_status gpt_stored_restore(const gpt_setup *job, weft_program *program, weft_error *error)
{
    const settings *s = job->settings;
    char path[4200];
    weft_value variable;
    weft_stored *stored = NULL;
    weft_error own = {.rank = -1};
    find_path(s, path, sizeof path);
    weft_status status = weft_stored_open(path, &stored, &own);
    if (status == WEFT_OK) status = check_words(job, stored, &own);
    for (int i = 0; status == WEFT_OK && (variable = weft_variable_at(program, i)).id != 0; i++)
        if (!is_cache(variable))
            status = fill(stored, program, variable, settings_real(s, "average") > 0, &own);
    weft_stored_close(&stored);
    if (weft_world_agree(&own) != WEFT_OK) *error = own;
    return own.status;
}
