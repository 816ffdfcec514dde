/* carried: `weft ckpt import`: checkpoints from other programs' files, by their names or ours.
 *
 * A map, or the config.json beside a file, says more of the model than its tensors do. That goes into model.json beside the
 * checkpoint, and the files of its vocabulary into a folder there. So `gpt sample` needs no options.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../carry/carry.h"
#include "ckpt.h"
#include "weft/io.h"

enum { MAX_PATH = 4096 };

/* ---- which map -------------------------------------------------------------------------------- */

/* A map by its name, or that of the names which there are. */
weft_status ckpt_read_named(const ckpt_call *c, const source *from, bool is_theirs,
                            const carry_said *said, carry_map **map, weft_error *error)
{
    char name[CARRY_MAP_NAME];
    if (!c->has_names) return carry_map_read(c->map, said, map, error);
    WEFT_TRY(carry_map_for(from, is_theirs, name, error));
    return carry_map_read(name, said, map, error);
}

weft_status ckpt_check_map(const ckpt_call *c, weft_error *error)
{
    if (!c->has_names || !*c->map) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "--names hf and --map: the first looks for a map, and the other is one; give "
                     "one of the two");
}

/* ---- import: its folder ----------------------------------------------------------------------- */

/* What a folder of Hugging Face's calls its tensors. */
static const char *const tensor_files[] = {"model.safetensors.index.json", "model.safetensors"};
enum { N_TENSOR_FILES = sizeof tensor_files / sizeof *tensor_files };

/* The file of a folder, and the folder of a file. */
static weft_status find_file(const char *said, char *file, char *folder, weft_error *error)
{
    if (strlen(said) > MAX_PATH - 64)
        return weft_fail(error, WEFT_USAGE,
                         "the path %.100s... has %zu letters; name a shorter one", said,
                         strlen(said));
    snprintf(file, MAX_PATH, "%s", said);
    snprintf(folder, MAX_PATH, "%s", said);
    char *slash = strrchr(folder, '/');
    if (!ckpt_is_folder(said)) {
        snprintf(slash ? slash + 1 : folder, 2, ".");
        return WEFT_OK;
    }
    for (int i = 0; i < N_TENSOR_FILES; i++) {
        snprintf(file, MAX_PATH, "%.4000s/%s", said, tensor_files[i]);
        if (access(file, F_OK) == 0) return WEFT_OK;
    }
    return weft_fail(error, WEFT_USAGE,
                     "the folder %.200s has neither %s nor %s; name the file of tensors itself",
                     said, tensor_files[1], tensor_files[0]);
}

/* ---- import: what goes along ------------------------------------------------------------------ */

/* Into DIR/words, when the folder has a vocabulary of pairs. */
static weft_status copy_words(const char *folder, const char *directory, json_t *options,
                              weft_error *error)
{
    char to[MAX_PATH];
    int n = 0;
    snprintf(to, sizeof to, "%.4000s/words", directory);
    WEFT_TRY(ckpt_copy_words(folder, to, &n, error));
    if (n > 0) json_object_set_new(options, "tokens", json_string("words"));
    return WEFT_OK;
}

/* {"options": {"epsilon": "1e-6", "tokens": "words"}}: of gpt; a path is from the file's own folder. */
static weft_status write_model(const carry_map *map, const char *folder, const char *directory,
                               weft_error *error)
{
    char path[MAX_PATH];
    const json_t *said = carry_map_options(map);
    if (json_object_size(said) == 0) return WEFT_OK;
    json_t *options = json_copy((json_t *)said);
    weft_status status =
        options ? copy_words(folder, directory, options, error) : weft_fail_memory(error, 0);
    json_t *all = json_pack("{s:o}", "options", options);
    snprintf(path, sizeof path, "%.4000s/" APP_MODEL_FILE, directory);
    if (status == WEFT_OK && (!all || json_dump_file(all, path, JSON_INDENT(2)) != 0))
        status = weft_fail(error, WEFT_IO, "cannot write %.300s: %s", path, strerror(errno));
    json_decref(all);
    return status;
}

/* ---- import ----------------------------------------------------------------------------------- */

/* "3 of f16, 1 of i64" */
static void print_counts(const char *what, const json_t *counts, const char *between)
{
    const char *kind, *comma = "";
    json_t *n;
    if (json_object_size(counts) == 0) return;
    printf("%s:", what);
    json_object_foreach((json_t *)counts, kind, n)
    {
        printf("%s %lld%s%s", comma, (long long)json_integer_value(n), between, kind);
        comma = ",";
    }
    printf("\n");
}

static void print_facts(const json_t *facts)
{
    const int unnamed = (int)json_integer_value(json_object_get(facts, "unnamed"));
    print_counts("converted, each number exactly", json_object_get(facts, "converted"), " of ");
    print_counts("left, as the map says", json_object_get(facts, "left"), ": ");
    if (unnamed > 0)
        printf("%d of them %s dims that the file does not name, called dim0, dim1, ...; name them "
               "with --dims NAME=a,b or --map FILE\n",
               unnamed, unnamed == 1 ? "has" : "have");
}

/* The names that a file has, before it is read. */
static weft_status find_map(const ckpt_call *c, const carry_format *format, const char *file,
                            const carry_said *said, carry_map **map, weft_error *error)
{
    source from = {0};
    if (!c->has_names) return carry_map_read(c->map, said, map, error);
    WEFT_TRY(format->open(file, &from, error));
    const weft_status status = ckpt_read_named(c, &from, true, said, map, error);
    if (from.close) from.close(&from);
    return status;
}

static weft_status read_map(const ckpt_call *c, const carry_format *format, const char *file,
                            const char *folder, carry_map **map, weft_error *error)
{
    const bool has_map = *c->map || c->has_names;
    *map = NULL;
    WEFT_TRY(ckpt_check_map(c, error));
    if (*c->dims && has_map)
        return weft_fail(error, WEFT_USAGE,
                         "--dims and --%s: a map names dims itself; give one of the two",
                         *c->map ? "map" : "names");
    if (has_map) return find_map(c, format, file, &(carry_said){c->sizes, folder}, map, error);
    if (*c->dims) return carry_map_of_dims(c->dims, c->sizes, map, error);
    if (!*c->sizes) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "--sizes %.100s: sizes of what? They are of dims in --map FILE or --dims",
                     c->sizes);
}

static weft_status take(ckpt_call *c, json_t **facts, weft_error *error)
{
    char file[MAX_PATH], folder[MAX_PATH];
    carry_map *map = NULL;
    const carry_format *format;
    WEFT_TRY(find_file(c->paths[0], file, folder, error));
    WEFT_TRY(carry_format_of(file, c->format, true, &format, error));
    weft_status status = read_map(c, format, file, folder, &map, error);
    if (status == WEFT_OK) status = carry_import(format, file, c->paths[1], map, facts, error);
    if (status == WEFT_OK && map) status = write_model(map, folder, c->paths[1], error);
    carry_map_destroy(&map);
    return status;
}

weft_status ckpt_import(ckpt_call *c, weft_error *error)
{
    weft_stored *stored = NULL;
    json_t *facts = NULL;
    weft_status status = take(c, &facts, error);
    if (status == WEFT_OK) status = weft_stored_open(c->paths[1], &stored, error);
    if (status == WEFT_OK) {
        c->json = ckpt_stored_json(stored);
        json_object_update(c->json, facts);
    }
    if (status == WEFT_OK && !c->is_json) {
        printf("%s: %d tensors, %lld bytes\n", weft_stored_path(stored),
               weft_stored_n_tensors(stored), (long long)ckpt_bytes_of(stored));
        print_facts(facts);
    }
    weft_stored_close(&stored);
    json_decref(facts);
    return status;
}
