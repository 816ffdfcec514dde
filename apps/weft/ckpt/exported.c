/* exported: `weft ckpt export`: a checkpoint into other programs' files, by their names or ours.
 *
 * Into a folder goes a model as others publish it: its tensors, config.json by the map, and its vocabulary. Options of the model
 * are in run.json of the run, or in model.json beside a checkpoint that was imported.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../text.h"
#include "../../whole_file.h"
#include "ckpt.h"

enum { MAX_PATH = 4096 };

/* ---- its options ------------------------------------------------------------------------------ */

/* A file of the checkpoint's folder, or of the run's above it; NULL: it is not there. Yours. */
static weft_status read_beside(const weft_stored *stored, const char *below, const char *name,
                               json_t **json, weft_error *error)
{
    char path[2 * MAX_PATH];
    snprintf(path, sizeof path, "%.4000s/%s/%s", weft_stored_path(stored), below, name);
    *json = NULL;
    if (access(path, F_OK) != 0) return WEFT_OK;
    return app_json_read(path, "options of the model", json, error);
}

/* Of an import: a vocabulary lies beside it. */
static weft_status take_imported(const weft_stored *stored, json_t *options, weft_error *error)
{
    char path[2 * MAX_PATH];
    json_t *all, *said;
    WEFT_TRY(read_beside(stored, "..", APP_MODEL_FILE, &all, error));
    said = json_object_get(all, "options");
    const char *words = json_string_value(json_object_get(said, "tokens"));
    if (said) json_object_update(options, said);
    if (words) {
        snprintf(path, sizeof path, "%.4000s/../%.4000s", weft_stored_path(stored), words);
        json_object_set_new(options, "tokens", json_string(path));
    }
    json_decref(all);
    return WEFT_OK;
}

/* Of a training. */
static weft_status take_trained(const weft_stored *stored, json_t *options, weft_error *error)
{
    const char *name;
    json_t *all, *one;
    WEFT_TRY(read_beside(stored, "../..", "run.json", &all, error));
    json_object_foreach(json_object_get(all, "settings"), name, one)
    {
        json_t *value = json_object_get(one, "value");
        if (json_is_string(value)) json_object_set(options, name, value);
    }
    json_decref(all);
    return WEFT_OK;
}

/* ---- beside the tensors ----------------------------------------------------------------------- */

static weft_status write_config(const json_t *config, const char *folder, weft_error *error)
{
    char path[MAX_PATH];
    app_whole_file file;
    snprintf(path, sizeof path, "%.4000s/config.json", folder);
    WEFT_TRY(app_whole_open(&file, path, error));
    const bool is_good =
        json_dumpf(config, file.stream, JSON_INDENT(2)) == 0 && fputc('\n', file.stream) != EOF;
    return app_whole_close(&file, is_good, error);
}

static weft_status write_beside(const weft_stored *stored, const carry_map *map, const source *ours,
                                const char *folder, weft_error *error)
{
    int n = 0;
    json_t *options = json_object();
    weft_status status = take_imported(stored, options, error);
    if (status == WEFT_OK) status = take_trained(stored, options, error);
    const char *words = json_string_value(json_object_get(options, "tokens"));
    json_t *config = status == WEFT_OK ? carry_map_config(map, ours, options) : NULL;
    if (config) status = write_config(config, folder, error);
    if (status == WEFT_OK && words && *words) status = ckpt_copy_words(words, folder, &n, error);
    json_decref(config);
    json_decref(options);
    return status;
}

/* ---- all -------------------------------------------------------------------------------------- */

/* Where a file is to be; in a folder, which is made, one of the name that others look for. */
static weft_status find_place(const ckpt_call *c, char *file, char *folder, weft_error *error)
{
    const char *said = c->paths[1];
    const size_t n = strlen(said);
    *folder = 0;
    snprintf(file, MAX_PATH, "%s", said);
    if (n > MAX_PATH - 64)
        return weft_fail(error, WEFT_USAGE,
                         "the path %.100s... has %zu letters; name a shorter one", said, n);
    if (!(*c->map || c->has_names) || (!ckpt_is_folder(said) && (n == 0 || said[n - 1] != '/')))
        return WEFT_OK;
    snprintf(folder, MAX_PATH, "%.4000s", said);
    for (size_t i = n; i > 1 && folder[i - 1] == '/'; i--)
        folder[i - 1] = 0;
    snprintf(file, MAX_PATH, "%.4000s/model.safetensors", folder);
    if (mkdir(folder, 0777) == 0 || errno == EEXIST) return WEFT_OK;
    return weft_fail(error, WEFT_IO, "cannot make the folder %.300s: %s", folder, strerror(errno));
}

/* By our names, or those of a map. */
static weft_status write_stored(const ckpt_call *c, const weft_stored *stored,
                                const carry_format *format, const char *file, const char *folder,
                                weft_error *error)
{
    carry_map *map = NULL;
    source from;
    if (!*c->map && !c->has_names) return carry_export(stored, format, file, NULL, 0, error);
    WEFT_TRY(carry_stored_source(stored, &from, error));
    weft_status status =
        ckpt_read_named(c, &from, false, &(carry_said){.sizes = c->sizes}, &map, error);
    if (status == WEFT_OK) status = carry_export(stored, format, file, map, c->shard_bytes, error);
    if (status == WEFT_OK && *folder) status = write_beside(stored, map, &from, folder, error);
    from.close(&from);
    carry_map_destroy(&map);
    return status;
}

static void print(const ckpt_call *c, const weft_stored *stored, const char *file)
{
    struct stat facts;
    const bool is_ours = !*c->map && !c->has_names;
    if (is_ours)
        printf("%s: %d tensors, %lld bytes\n", file, weft_stored_n_tensors(stored),
               (long long)ckpt_bytes_of(stored));
    else if (stat(file, &facts) == 0)
        printf("%s: %lld bytes, by the names of %s\n", file, (long long)facts.st_size,
               c->has_names ? "Hugging Face" : c->map);
    else
        printf("%s: files of at most %lld bytes, by the names of %s\n", file,
               (long long)c->shard_bytes, c->has_names ? "Hugging Face" : c->map);
}

weft_status ckpt_export(ckpt_call *c, weft_error *error)
{
    char file[MAX_PATH], folder[MAX_PATH];
    weft_stored *stored = NULL;
    const carry_format *format;
    WEFT_TRY(ckpt_check_map(c, error));
    WEFT_TRY(find_place(c, file, folder, error));
    WEFT_TRY(carry_format_of(file, c->format, false, &format, error));
    WEFT_TRY(weft_stored_open(c->paths[0], &stored, error));
    const weft_status status = write_stored(c, stored, format, file, folder, error);
    if (status == WEFT_OK) {
        c->json = ckpt_stored_json(stored);
        json_object_set_new(c->json, "file", json_string(file));
        json_object_set_new(c->json, "format", json_string(format->name));
    }
    if (status == WEFT_OK && !c->is_json) print(c, stored, file);
    weft_stored_close(&stored);
    return status;
}
