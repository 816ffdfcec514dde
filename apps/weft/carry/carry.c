/* carry: a checkpoint into one file of another format, and such a file into a checkpoint.
 *
 * A checkpoint is written as any run writes one: by a program, here of nothing but the variables.
 * All elements are read before anything is written.
 */
#include "carry.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "weft/collectives.h"
#include "weft/io.h"
#include "weft/name.h"

enum { DIMS = 1024, MAX_PATH = 4096 };

static const carry_format *const formats[] = {&carry_safetensors, &carry_hdf5};
enum { N_FORMATS = sizeof formats / sizeof *formats };

/* ---- formats --------------------------------------------------------------------------------- */

static bool has_ending(const char *path, const carry_format *format)
{
    const char *dot = strrchr(path, '.');
    for (int i = 0; dot && format->endings[i]; i++)
        if (strcmp(dot, format->endings[i]) == 0) return true;
    return false;
}

weft_status carry_format_of(const char *path, const char *name, bool is_there,
                            const carry_format **format, weft_error *error)
{
    weft_error other = WEFT_NO_ERROR;
    for (int i = 0; i < N_FORMATS; i++) {
        *format = formats[i];
        if (strcmp(name, "auto") == 0 ? has_ending(path, *format)
                                      : strcmp(name, (*format)->name) == 0)
            return WEFT_OK;
    }
    if (is_there && strcmp(name, "auto") == 0 &&
        weft_file_check(path, WEFT_FILE_SAFETENSORS, &other) == WEFT_USAGE)
        return weft_fail(error, WEFT_USAGE, "%s", other.message);
    return weft_fail(error, WEFT_USAGE,
                     "%.300s: its ending does not say what it is; .safetensors and .h5 (or .hdf5) "
                     "are known: use one of these, or say --format safetensors or --format hdf5",
                     path);
}

/* ---- export ---------------------------------------------------------------------------------- */

/* Under the names of another program. */
static weft_status write_turned(const weft_stored *stored, const carry_format *format,
                                const char *path, carry_map *map, int64_t most, weft_error *error)
{
    source from;
    if (!format->write_source)
        return weft_fail(error, WEFT_USAGE,
                         "names of another program are written into .safetensors alone, and %.200s "
                         "would be %s",
                         path, format->name);
    WEFT_TRY(carry_stored_source(stored, &from, error));
    weft_status status = carry_map_turn(map, &from, error);
    if (status == WEFT_OK) status = carry_write(&from, format, path, most, error);
    from.close(&from);
    return status;
}

weft_status carry_export(const weft_stored *stored, const carry_format *format, const char *path,
                         carry_map *map, int64_t most, weft_error *error)
{
    char fresh[MAX_PATH];
    if (map) return write_turned(stored, format, path, map, most, error);
    WEFT_TRY(carry_fresh_name(path, fresh, sizeof fresh, error));
    return carry_put(fresh, path, format->write(stored, fresh, error), error);
}

/* ---- import: what is believed ---------------------------------------------------------------- */

typedef struct importer {
    source from;
    int *by_name; /* [from.n_tensors] */
    int *owner;   /* [from.n_tensors] whose slot it is; -1: a variable of its own */
    weft_mesh *mesh;
    weft_layout *layout;
    weft_graph *graph;
    weft_value *values; /* [from.n_tensors] */
    weft_program *program;
    weft_checkpoints *checkpoints;
    int n_unnamed; /* tensors with dims that nobody has named */
} importer;

static weft_status fail_tensor(const source *from, const carried *t, weft_error *error,
                               const char *rule)
{
    char name[120];
    snprintf(name, sizeof name, "%s", t->name);
    for (char *c = name; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7F) *c = '?';
    return weft_fail(error, WEFT_USAGE, "%.200s is not taken: tensor %s %s", from->path, name,
                     rule);
}

/* Between slashes: nothing that a path would take for something else. */
static bool has_dots(const char *name)
{
    for (const char *part = name, *end; part; part = end ? end + 1 : NULL) {
        end = strchr(part, '/');
        const size_t bytes = end ? (size_t)(end - part) : strlen(part);
        if (bytes == 0 || (bytes <= 2 && strncmp(part, "..", bytes) == 0)) return true;
    }
    return false;
}

static bool has_control(const char *text)
{
    for (const char *c = text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7F) return true;
    return false;
}

static bool is_utf8(const char *text)
{
    json_t *judge = json_string(text); /* none when it is not */
    const bool is_good = judge != NULL;
    json_decref(judge);
    return is_good;
}

weft_status carry_check_numbers(const source *from, const carried *t, const char *leave_it,
                                weft_error *error)
{
    int64_t count = 1;
    if (t->problem)
        return weft_fail(error, t->is_damaged ? WEFT_CORRUPT : WEFT_USAGE, "%.140s %s%.300s; %s",
                         from->path, t->is_damaged ? "is damaged: " : "", t->problem, leave_it);
    for (int d = 0; d < t->n_dims; d++) {
        if (t->sizes[d] < 1)
            return fail_tensor(from, t, error, "has a dim of size 0; a size is at least 1");
        if (__builtin_mul_overflow(count, t->sizes[d], &count) || count > INT64_C(1) << 50)
            return fail_tensor(from, t, error, "has more than 2^50 elements");
    }
    return WEFT_OK;
}

/* What could not even be printed; of all tensors. */
static weft_status check_name(const source *from, const carried *t, weft_error *error)
{
    if (!is_utf8(t->name)) return fail_tensor(from, t, error, "has a name that is not UTF-8");
    if (!has_control(t->name)) return WEFT_OK;
    return fail_tensor(from, t, error, "has a control character in its name");
}

static int compare_names(const void *a, const void *b, void *argument)
{
    const carried *tensors = argument;
    return strcmp(tensors[*(const int *)a].name, tensors[*(const int *)b].name);
}

/* The tensor whose name is the first `bytes` of `name`; -1: none. */
static int find(const importer *m, const char *name, size_t bytes)
{
    int low = 0, high = m->from.n_tensors;
    while (low < high) {
        const int middle = low + (high - low) / 2, i = m->by_name[middle];
        const char *other = m->from.tensors[i].name;
        const int order = strncmp(other, name, bytes);
        if (order == 0 && other[bytes] == 0) return i;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}

/* The tensor whose slot it is by its name: "w" of "w/m"; -1 when it is none. */
static int owner_of(const importer *m, int i)
{
    const carried *t = &m->from.tensors[i];
    const char *slash = strrchr(t->name, '/');
    if (!slash || (m->from.knows_slots && !t->is_slot)) return -1;
    const int found = find(m, t->name, (size_t)(slash - t->name));
    const carried *o = found < 0 ? NULL : &m->from.tensors[found];
    const bool is_alike = o && o->dtype == t->dtype && o->n_dims == t->n_dims &&
                          memcmp(o->sizes, t->sizes, sizeof t->sizes) == 0;
    return is_alike ? found : -1;
}

/* Variables, a copy for the disk, and the buffer of one tensor: three times at the most. */
static weft_status check_memory(const source *from, double bytes, weft_error *error)
{
    const double there = (double)weft_machine_info()->memory_bytes, gib = 1 << 30;
    if (3 * bytes <= there) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "%.200s has tensors of %.1f GiB, and to take them in needs three times as "
                     "much memory; this machine has %.1f GiB",
                     from->path, bytes / gib, there / gib);
}

/* Before a map: of what it leaves nothing more is asked. */
static weft_status check_file(const source *from, weft_error *error)
{
    const int n = from->n_tensors;
    if (n == 0)
        return weft_fail(error, WEFT_USAGE, "%.300s has no tensors: nothing to import", from->path);
    if (n > CARRY_MOST_TENSORS)
        return weft_fail(error, WEFT_USAGE, "%.300s has %d tensors; at most %d are taken",
                         from->path, n, CARRY_MOST_TENSORS);
    for (int i = 0; i < n; i++)
        WEFT_TRY(check_name(from, &from->tensors[i], error));
    return WEFT_OK;
}

static weft_status check_taken(const source *from, const carried *t, weft_error *error)
{
    WEFT_TRY(check_name(from, t, error));
    WEFT_TRY(carry_check_numbers(from, t, "a map can leave it: --map FILE", error));
    if (has_dots(t->name) || strlen(t->name) > DIMS)
        return fail_tensor(from, t, error,
                           "has a part of its name empty, \".\" or \"..\", or is called by more "
                           "than 1024 bytes");
    if (weft_path_check("tensor", t->name, NULL) == WEFT_OK) return WEFT_OK;
    return fail_tensor(from, t, error,
                       "has a name that none of ours may have: letters, digits and _, not "
                       "beginning with a digit, parts joined by . / - or :; --map FILE can call "
                       "it otherwise");
}

static double bytes_of(const source *from)
{
    double all = 0;
    for (int i = 0; i < from->n_tensors; i++) {
        double own = (double)weft_dtype_bytes(from->tensors[i].dtype);
        for (int d = 0; d < from->tensors[i].n_dims; d++)
            own *= (double)from->tensors[i].sizes[d];
        all += own;
    }
    return all;
}

static weft_status check_source(importer *m, weft_error *error)
{
    source *from = &m->from;
    const int n = from->n_tensors;
    if (n == 0)
        return weft_fail(error, WEFT_USAGE, "%.300s: the map takes none of its tensors",
                         from->path);
    for (int i = 0; i < n; i++)
        WEFT_TRY(check_taken(from, &from->tensors[i], error));
    if (from->choose) WEFT_TRY(from->choose(from, NULL, error));
    WEFT_TRY(check_memory(from, bytes_of(from), error));
    m->by_name = calloc((size_t)n, sizeof *m->by_name);
    m->owner = calloc((size_t)n, sizeof *m->owner);
    m->values = calloc((size_t)n, sizeof *m->values);
    if (!m->by_name || !m->owner || !m->values) return weft_fail_memory(error, (size_t)n);
    for (int i = 0; i < n; i++)
        m->by_name[i] = i;
    qsort_r(m->by_name, (size_t)n, sizeof *m->by_name, compare_names, from->tensors);
    for (int i = 1; i < n; i++)
        if (compare_names(&m->by_name[i - 1], &m->by_name[i], from->tensors) == 0)
            return fail_tensor(from, &from->tensors[m->by_name[i]], error, "is there twice");
    for (int i = 0; i < n; i++)
        m->owner[i] = owner_of(m, i);
    for (int i = 0; i < n; i++) /* a slot has no slots */
        if (m->owner[i] >= 0 && owner_of(m, m->owner[i]) >= 0) m->owner[i] = -1;
    return WEFT_OK;
}

/* ---- import: the program and its checkpoint -------------------------------------------------- */

/* Dims by name: the file's when there are as many good ones, else dim0, dim1 ... `names` [DIMS]
 * keeps the letters. */
static weft_shape shape_of(importer *m, const carried *t, char *names)
{
    const source *from = &m->from;
    weft_dim dims[WEFT_MAX_DIMS];
    weft_shape shape = {0};
    char *rest = NULL;
    bool is_good = !t->dims || strlen(t->dims) < DIMS;
    snprintf(names, DIMS, "%s", t->dims && is_good ? t->dims : "");
    for (char *word = strtok_r(names, from->separators, &rest); word;
         word = strtok_r(NULL, from->separators, &rest)) {
        is_good = is_good && shape.n_dims < t->n_dims && weft_shape_find(&shape, word) < 0 &&
                  weft_name_check("dim", word, NULL) == WEFT_OK;
        if (is_good) shape.dims[shape.n_dims] = (weft_dim){word, t->sizes[shape.n_dims]};
        shape.n_dims += is_good;
    }
    if (is_good && shape.n_dims == t->n_dims) return shape;
    m->n_unnamed++;
    for (int d = 0; d < t->n_dims; d++) {
        snprintf(names + 8 * d, 8, "dim%d", d);
        dims[d] = (weft_dim){names + 8 * d, t->sizes[d]};
    }
    return weft_shape_make(dims, t->n_dims);
}

static weft_status build(importer *m, weft_error *error)
{
    char names[DIMS];
    const source *from = &m->from;
    m->graph = weft_graph_create(1);
    if (!m->graph) return weft_fail_memory(error, 0);
    for (int i = 0; i < from->n_tensors; i++) {
        const carried *t = &from->tensors[i];
        if (m->owner[i] < 0)
            m->values[i] = weft_variable(m->graph, t->name, t->dtype, shape_of(m, t, names),
                                         weft_constant_of(0));
    }
    for (int i = 0; i < from->n_tensors; i++)
        if (m->owner[i] >= 0)
            m->values[i] = weft_slot(m->values[m->owner[i]],
                                     strrchr(from->tensors[i].name, '/') + 1, weft_constant_of(0));
    return weft_compile(m->mesh, m->layout, (weft_values){m->values, from->n_tensors}, NULL,
                        &m->program, error);
}

static weft_status fill(importer *m, weft_error *error)
{
    for (int i = 0; i < m->from.n_tensors; i++) {
        const carried *t = &m->from.tensors[i];
        const int64_t bytes = carry_bytes_of(t);
        void *buffer = malloc((size_t)bytes + 1);
        if (!buffer) return weft_fail_memory(error, (size_t)bytes);
        weft_status status = m->from.read(&m->from, i, buffer, error);
        if (status == WEFT_OK)
            status = weft_write(m->program, m->values[i], weft_dtype_of(m->values[i]), buffer,
                                bytes, error);
        free(buffer);
        WEFT_TRY(status);
    }
    return m->from.finish ? m->from.finish(&m->from, error) : WEFT_OK;
}

static weft_status import_all(importer *m, const carry_format *format, const char *path,
                              const char *directory, carry_map *map, weft_error *error)
{
    weft_world world;
    WEFT_TRY(format->open(path, &m->from, error));
    WEFT_TRY(check_file(&m->from, error));
    if (map) WEFT_TRY(carry_map_lay(map, &m->from, error));
    WEFT_TRY(check_source(m, error));
    WEFT_TRY(weft_world_open(&world, error));
    WEFT_TRY(weft_mesh_create(&world, "data:1", &m->mesh, error));
    WEFT_TRY(weft_layout_create("", &m->layout, error));
    WEFT_TRY(build(m, error));
    WEFT_TRY(fill(m, error));
    const source *from = &m->from;
    const weft_checkpoint_state state = {from->step < 1 ? 1 : from->step,
                                         from->sample < 0 ? 0 : from->sample, from->seed};
    const weft_checkpoint_options options = {.keep = 1 << 20, /* nothing there is removed */
                                             .data = from->data};
    weft_set_runs(m->program, state.step);
    WEFT_TRY(weft_checkpoints_open(directory, &options, &m->checkpoints, error));
    WEFT_TRY(weft_checkpoints_save(m->checkpoints, m->program, &state, error));
    return weft_checkpoints_wait(m->checkpoints, error);
}

/* {"f16": 3}: of the tensors that are taken, those whose type is none of ours. */
static json_t *converted(const source *from)
{
    json_t *all = json_object();
    for (int i = 0; i < from->n_tensors; i++) {
        const carried *t = &from->tensors[i];
        if (!t->type || strcmp(t->type, weft_dtype_name(t->dtype)) == 0) continue;
        const json_int_t n = json_integer_value(json_object_get(all, t->type));
        json_object_set_new(all, t->type, json_integer(n + 1));
    }
    return all;
}

weft_status carry_import(const carry_format *format, const char *path, const char *directory,
                         carry_map *map, json_t **facts, weft_error *error)
{
    importer m = {0};
    const weft_status status = import_all(&m, format, path, directory, map, error);
    *facts = NULL;
    weft_checkpoints_close(&m.checkpoints);
    weft_program_destroy(&m.program);
    weft_graph_destroy(&m.graph);
    weft_layout_destroy(&m.layout);
    weft_mesh_destroy(&m.mesh);
    free(m.values);
    free(m.by_name);
    free(m.owner);
    if (status == WEFT_OK)
        *facts = json_pack("{s:o, s:O?, s:i}", "converted", converted(&m.from), "left", m.from.left,
                           "unnamed", m.n_unnamed);
    if (m.from.close) m.from.close(&m.from);
    return status;
}
