/* safetensors_source: a safetensors file as a source, or several by their index, which names the file of each tensor.
 *
 *     {"metadata": {"total_size": 204800}, "weight_map": {"h.0.ln_1.weight": "model-00001-of-00002.safetensors"}}
 *
 * source  https://github.com/huggingface/safetensors, "Format"; Hugging Face's "sharded checkpoints" for the index
 */
#include <stdlib.h>
#include <string.h>

#include "../../json.h"
#include "../../text.h"
#include "carry.h"
#include "safetensors.h"

enum { MOST_SHARDS = 1024, MAX_PATH = 4096 };

/* The files of a source, one after the other. */
typedef struct shards {
    int n;
    safetensors *files; /* [n] */
    char **paths;       /* [n] */
    int *first;         /* [n] of the source's tensors */
} shards;

static uint64_t number_of(const safetensors *f, const char *key)
{
    const char *text = safetensors_metadata(f, key);
    return text ? strtoull(text, NULL, 10) : 0;
}

static weft_status convert(const safetensors *f, const safetensor *t, void *raw, void *buffer,
                           weft_error *error)
{
    const int64_t count = (t->end - t->begin) / t->type->bytes;
    WEFT_TRY(safetensors_read(f, t, raw, error));
    const int64_t good = t->type->convert(buffer, raw, count);
    if (good == count) return WEFT_OK;
    return weft_fail(
        error, WEFT_USAGE,
        "%.200s is not taken: tensor %.120s is of %s, and its number %lld does not fit "
        "into %s, the widest integers there are here",
        f->path, t->name, t->type->said, (long long)good, weft_dtype_name(t->type->dtype));
}

static weft_status read_tensor(source *from, int i, void *buffer, weft_error *error)
{
    const shards *all = from->file;
    int s = all->n - 1;
    while (all->first[s] > i)
        s--;
    const safetensors *f = &all->files[s];
    const safetensor *t = &f->tensors[i - all->first[s]];
    if (!t->type->convert) return safetensors_read(f, t, buffer, error);
    void *raw = malloc((size_t)(t->end - t->begin) + 1);
    if (!raw) return weft_fail_memory(error, (size_t)(t->end - t->begin));
    const weft_status status = convert(f, t, raw, buffer, error);
    free(raw);
    return status;
}

static void close_files(source *from)
{
    shards *all = from->file;
    for (int i = 0; i < from->n_tensors; i++)
        free((char *)from->tensors[i].problem);
    for (int s = 0; all && s < all->n; s++) {
        safetensors_close(&all->files[s]);
        free(all->paths[s]);
    }
    if (all) free(all->files), free(all->paths), free(all->first);
    free(all);
    free(from->tensors);
    *from = (source){0};
}

/* Names of dims that its metadata has; NULL: none. Borrowed. */
static const char *dims_of(const safetensors *f, const char *name)
{
    char *key = NULL;
    const char *dims = asprintf(&key, "dims.%s", name) >= 0 ? safetensors_metadata(f, key) : NULL;
    free(key);
    return dims;
}

/* Why it can only be left; NULL: it need not. To be freed. */
static weft_status find_problem(const safetensor *t, char **problem, weft_error *error)
{
    int n = 0;
    *problem = NULL;
    if (!t->type || t->type->dtype == WEFT_DTYPES)
        n = asprintf(problem,
                     "has the tensor %.120s of %.40s, which is no number here: f32, f64, bf16, f16 "
                     "and whole numbers of up to 64 bits are",
                     t->name, t->dtype);
    else if (t->n_dims > WEFT_MAX_DIMS)
        n = asprintf(problem, "has the tensor %.120s of %d dims; the most is %d", t->name,
                     t->n_dims, WEFT_MAX_DIMS);
    if (n >= 0) return WEFT_OK;
    *problem = NULL;
    return weft_fail_memory(error, strlen(t->name));
}

static weft_status set_tensor(const safetensors *f, const safetensor *t, carried *c,
                              weft_error *error)
{
    char *problem;
    WEFT_TRY(find_problem(t, &problem, error));
    *c = (carried){.name = t->name, .problem = problem};
    if (problem) return WEFT_OK;
    c->dims = dims_of(f, t->name);
    c->dtype = t->type->dtype;
    c->n_dims = t->n_dims;
    c->type = t->type->said;
    memcpy(c->sizes, t->sizes, sizeof c->sizes);
    return WEFT_OK;
}

/* ---- its files ------------------------------------------------------------------------------- */

static weft_status begin(const char *path, int most, source *from, weft_error *error)
{
    shards *all = calloc(1, sizeof *all);
    *from = (source){
        .path = path, .separators = " ", .file = all, .read = read_tensor, .close = close_files};
    if (!all) return weft_fail_memory(error, sizeof *all);
    all->files = calloc((size_t)most, sizeof *all->files);
    all->paths = calloc((size_t)most, sizeof *all->paths);
    all->first = calloc((size_t)most, sizeof *all->first);
    return all->files && all->paths && all->first ? WEFT_OK : weft_fail_memory(error, (size_t)most);
}

/* One file more; its tensors behind those that are there. */
static weft_status add_file(source *from, const char *path, weft_error *error)
{
    shards *all = from->file;
    safetensors *f = &all->files[all->n];
    all->first[all->n] = from->n_tensors;
    char *own = strdup(path);
    if (!own) return weft_fail_memory(error, strlen(path));
    const weft_status status = safetensors_open(own, f, error);
    if (status != WEFT_OK) {
        free(own);
        return status;
    }
    all->paths[all->n++] = own;
    const size_t n = (size_t)(from->n_tensors + f->n_tensors) + 1;
    carried *more = realloc(from->tensors, n * sizeof *more);
    if (!more) return weft_fail_memory(error, n * sizeof *more);
    from->tensors = more;
    for (int i = 0; i < f->n_tensors; i++) {
        WEFT_TRY(set_tensor(f, &f->tensors[i], &more[from->n_tensors], error));
        from->n_tensors++;
    }
    return WEFT_OK;
}

static void take_state(source *from)
{
    const shards *all = from->file;
    const safetensors *f = &all->files[0];
    from->step = (int64_t)number_of(f, "step");
    from->sample = (int64_t)number_of(f, "sample");
    from->seed = safetensors_metadata(f, "seed") ? number_of(f, "seed") : 1;
    const char *format = safetensors_metadata(f, "format");
    if (format && strcmp(format, "weft") == 0) from->data = safetensors_metadata(f, "data");
}

/* ---- an index of several files ---------------------------------------------------------------- */

static bool is_index(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot && strcmp(dot, ".json") == 0;
}

static int find_file(const shards *all, const char *path)
{
    for (int s = 0; s < all->n; s++)
        if (strcmp(all->paths[s], path) == 0) return s;
    return -1;
}

/* Beside the index, and nowhere else. */
static weft_status path_of(const char *index, const char *name, char *path, weft_error *error)
{
    const char *slash = strrchr(index, '/');
    const int folder = slash ? (int)(slash - index) + 1 : 0;
    if (strchr(name, '/') || snprintf(path, MAX_PATH, "%.*s%s", folder, index, name) >= MAX_PATH)
        return weft_fail(error, WEFT_USAGE,
                         "%.200s names the file %.100s; files of an index lie beside it, and are "
                         "named without a folder",
                         index, name);
    return WEFT_OK;
}

static weft_status add_files(source *from, const json_t *map, weft_error *error)
{
    const char *name;
    json_t *file;
    char path[MAX_PATH];
    const shards *all = from->file;
    json_object_foreach((json_t *)map, name, file)
    {
        const char *text = json_string_value(file);
        if (!text)
            return weft_fail(error, WEFT_USAGE,
                             "%.200s: the file of the tensor %.100s is no text; it is the name of "
                             "a .safetensors file",
                             from->path, name);
        WEFT_TRY(path_of(from->path, text, path, error));
        if (find_file(all, path) >= 0) continue;
        if (all->n == MOST_SHARDS)
            return weft_fail(error, WEFT_USAGE, "%.200s names more than %d files", from->path,
                             MOST_SHARDS);
        WEFT_TRY(add_file(from, path, error));
    }
    return WEFT_OK;
}

/* Every tensor of every file is one of the index, and in that file. */
static weft_status check_files(const source *from, const json_t *map, weft_error *error)
{
    const char *name;
    json_t *file;
    const shards *all = from->file;
    json_t *found = json_object();
    weft_status status = found ? WEFT_OK : weft_fail_memory(error, 0);
    for (int s = 0, i = 0; status == WEFT_OK && s < all->n; s++) {
        const char *own = strrchr(all->paths[s], '/');
        own = own ? own + 1 : all->paths[s];
        for (const int end = i + all->files[s].n_tensors; status == WEFT_OK && i < end; i++) {
            const char *said = json_string_value(json_object_get(map, from->tensors[i].name));
            if (!said || strcmp(said, own) != 0)
                status = weft_fail(error, WEFT_USAGE,
                                   "%.150s has the tensor %.100s, which %.150s has in %.100s; get "
                                   "the index and its files again, all of one version",
                                   all->paths[s], from->tensors[i].name, from->path,
                                   said ? said : "no file");
            json_object_set_new(found, from->tensors[i].name, json_true());
        }
    }
    json_object_foreach((json_t *)map, name, file)
    {
        if (status != WEFT_OK || json_object_get(found, name)) continue;
        status = weft_fail(error, WEFT_USAGE,
                           "%.200s has the tensor %.100s in %.100s, and there it is not; get the "
                           "index and its files again, all of one version",
                           from->path, name, json_string_value(file));
    }
    json_decref(found);
    return status;
}

static weft_status open_index(const char *path, source *from, weft_error *error)
{
    json_t *index;
    WEFT_TRY(begin(path, MOST_SHARDS, from, error));
    WEFT_TRY(app_json_read(path, "index of safetensors files", &index, error));
    const json_t *map = json_object_get(index, "weight_map");
    weft_status status =
        json_is_object(map) && json_object_size(map) > 0
            ? add_files(from, map, error)
            : weft_fail(error, WEFT_USAGE,
                        "%.200s is no index of safetensors files: it has no \"weight_map\", which "
                        "says in which file each tensor is; name the .safetensors file itself",
                        path);
    if (status == WEFT_OK) status = check_files(from, map, error);
    json_decref(index);
    return status;
}

static weft_status open_one(const char *path, source *from, weft_error *error)
{
    WEFT_TRY(begin(path, 1, from, error));
    return add_file(from, path, error);
}

weft_status safetensors_source_open(const char *path, source *from, weft_error *error)
{
    const weft_status status =
        is_index(path) ? open_index(path, from, error) : open_one(path, from, error);
    if (status == WEFT_OK)
        take_state(from);
    else
        close_files(from);
    return status;
}
