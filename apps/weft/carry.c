/* carry: a checkpoint into one safetensors file, and a safetensors file into a checkpoint.
 *
 * A checkpoint is written as any run writes one: by a program, here of nothing but the variables.
 */
#include "ckpt.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "safetensors.h"

enum { ALIGNMENT = 8, KEY = 512, DIMS = 1024 };

/* ---- export --------------------------------------------------------------------------------- */

static const char *dtype_text(const char *name)
{
    for (int d = 0; d < WEFT_DTYPES; d++)
        if (strcmp(weft_dtype_name((weft_dtype)d), name) == 0) return safetensors_dtypes[d];
    return "";
}

static void add_number(json_t *metadata, const char *key, unsigned long long number)
{
    char text[32];
    snprintf(text, sizeof text, "%llu", number);
    json_object_set_new(metadata, key, json_string(text));
}

static void add_tensor(json_t *header, json_t *metadata, const weft_stored_tensor *t, int64_t *at)
{
    char key[KEY], dims[DIMS] = "";
    json_t *sizes = json_array();
    for (int d = 0; d < t->shape.n_dims; d++) {
        const size_t used = strlen(dims);
        snprintf(dims + used, sizeof dims - used, "%s%s", d > 0 ? " " : "", t->shape.dims[d].name);
        json_array_append_new(sizes, json_integer(t->shape.dims[d].size));
    }
    snprintf(key, sizeof key, "dims.%s", t->name);
    json_object_set_new(metadata, key, json_string(dims));
    json_object_set_new(header, t->name,
                        json_pack("{s:s, s:o, s:[I, I]}", "dtype", dtype_text(t->dtype), "shape",
                                  sizes, "data_offsets", (json_int_t)*at,
                                  (json_int_t)(*at + t->bytes)));
    *at += t->bytes;
}

/* The header's text, padded so that the tensors begin at a multiple of 8; the caller frees it. */
static char *header_text(const weft_stored *stored)
{
    json_t *header = json_object(), *metadata = json_object();
    weft_checkpoint_state state;
    int64_t at = 0;
    weft_stored_state(stored, &state);
    json_object_set_new(header, "__metadata__", metadata);
    json_object_set_new(metadata, "format", json_string("weft"));
    add_number(metadata, "step", (unsigned long long)state.step);
    add_number(metadata, "sample", (unsigned long long)state.sample);
    add_number(metadata, "seed", state.seed);
    for (int i = 0; i < weft_stored_n_tensors(stored); i++)
        add_tensor(header, metadata, weft_stored_tensor_at(stored, i), &at);
    char *text = json_dumps(header, JSON_COMPACT);
    json_decref(header);
    const size_t length = text ? strlen(text) : 0;
    const size_t padded = (length + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    char *all = text ? realloc(text, padded + 1) : NULL;
    if (!all) {
        free(text);
        return NULL;
    }
    memset(all + length, ' ', padded - length);
    all[padded] = '\0';
    return all;
}

static weft_status fail_write(const char *path, weft_error *error)
{
    return weft_fail(error, WEFT_IO, "cannot write %s: %s", path, strerror(errno));
}

static weft_status write_tensors(const weft_stored *stored, const char *path, FILE *file,
                                 weft_error *error)
{
    for (int i = 0; i < weft_stored_n_tensors(stored); i++) {
        const size_t bytes = (size_t)weft_stored_tensor_at(stored, i)->bytes;
        void *buffer = malloc(bytes + 1);
        if (!buffer) return weft_fail_memory(error, bytes);
        weft_status status = weft_stored_read(stored, i, buffer, error);
        if (status == WEFT_OK && fwrite(buffer, 1, bytes, file) != bytes)
            status = fail_write(path, error);
        free(buffer);
        WEFT_TRY(status);
    }
    return WEFT_OK;
}

static weft_status write_all(const weft_stored *stored, const char *path, FILE *file,
                             weft_error *error)
{
    unsigned char prefix[8];
    char *text = header_text(stored);
    if (!text) return weft_fail_memory(error, 0);
    const size_t length = strlen(text);
    for (int i = 0; i < 8; i++)
        prefix[i] = (unsigned char)((uint64_t)length >> 8 * i);
    const bool is_written =
        fwrite(prefix, 1, 8, file) == 8 && fwrite(text, 1, length, file) == length;
    free(text);
    return is_written ? write_tensors(stored, path, file, error) : fail_write(path, error);
}

weft_status ckpt_export(const weft_stored *stored, const char *path, weft_error *error)
{
    char fresh[4096];
    snprintf(fresh, sizeof fresh, "%.4000s.new", path);
    FILE *file = fopen(fresh, "wbe");
    if (!file) return fail_write(fresh, error);
    weft_status status = write_all(stored, fresh, file, error);
    const bool is_synced = fflush(file) == 0 && fsync(fileno(file)) == 0;
    if (status == WEFT_OK && !is_synced) status = fail_write(fresh, error);
    if (fclose(file) != 0 && status == WEFT_OK) status = fail_write(fresh, error);
    if (status == WEFT_OK && rename(fresh, path) != 0) status = fail_write(path, error);
    if (status != WEFT_OK) unlink(fresh);
    return status;
}

/* ---- import --------------------------------------------------------------------------------- */

typedef struct importer {
    safetensors file;
    weft_mesh *mesh;
    weft_layout *layout;
    weft_graph *graph;
    weft_value *values; /* [file.n_tensors] */
    weft_program *program;
    weft_checkpoints *checkpoints;
} importer;

/* Dims by name: those of the metadata when there are as many of them, else dim0, dim1 ... `names`
 * [DIMS] keeps the letters. */
static weft_shape shape_of(const safetensors *f, const safetensor *t, char *names)
{
    char key[KEY], *rest = NULL;
    weft_dim dims[WEFT_MAX_DIMS];
    int n = 0;
    snprintf(key, sizeof key, "dims.%s", t->name);
    const char *said = safetensors_metadata(f, key);
    snprintf(names, DIMS, "%s", said ? said : "");
    for (char *word = strtok_r(names, " ", &rest); word && n <= t->n_dims;
         word = strtok_r(NULL, " ", &rest), n++)
        if (n < t->n_dims) dims[n] = (weft_dim){word, t->sizes[n]};
    for (int d = 0; d < t->n_dims && n != t->n_dims; d++) {
        snprintf(names + 8 * d, 8, "dim%d", d);
        dims[d] = (weft_dim){names + 8 * d, t->sizes[d]};
    }
    return weft_shape_make(dims, t->n_dims);
}

/* The tensor whose slot `t` is: "w" of "w/m"; -1 when it is none. */
static int owner_of(const safetensors *f, const safetensor *t)
{
    const char *slash = strrchr(t->name, '/');
    for (int i = 0; i < f->n_tensors && slash; i++) {
        const safetensor *o = &f->tensors[i];
        if (strlen(o->name) == (size_t)(slash - t->name) &&
            strncmp(o->name, t->name, (size_t)(slash - t->name)) == 0 && o->dtype == t->dtype &&
            o->n_dims == t->n_dims && memcmp(o->sizes, t->sizes, sizeof t->sizes) == 0)
            return i;
    }
    return -1;
}

static weft_status build(importer *m, weft_error *error)
{
    char names[DIMS];
    m->graph = weft_graph_create(1);
    m->values = calloc((size_t)m->file.n_tensors + 1, sizeof *m->values);
    if (!m->graph || !m->values) return weft_fail_memory(error, 0);
    for (int i = 0; i < m->file.n_tensors; i++) {
        const safetensor *t = &m->file.tensors[i];
        if (owner_of(&m->file, t) < 0)
            m->values[i] = weft_variable(m->graph, t->name, t->dtype, shape_of(&m->file, t, names),
                                         weft_constant_of(0));
    }
    for (int i = 0; i < m->file.n_tensors; i++) {
        const safetensor *t = &m->file.tensors[i];
        const int owner = owner_of(&m->file, t);
        if (owner >= 0 && m->values[owner].id != 0)
            m->values[i] =
                weft_slot(m->values[owner], strrchr(t->name, '/') + 1, weft_constant_of(0));
    }
    return weft_compile(m->mesh, m->layout, (weft_values){m->values, m->file.n_tensors}, NULL,
                        &m->program, error);
}

static weft_status fill(importer *m, weft_error *error)
{
    for (int i = 0; i < m->file.n_tensors; i++) {
        const safetensor *t = &m->file.tensors[i];
        const int64_t bytes = t->end - t->begin;
        void *buffer = malloc((size_t)bytes + 1);
        if (!buffer) return weft_fail_memory(error, (size_t)bytes);
        weft_status status = safetensors_read(&m->file, t, buffer, error);
        if (status == WEFT_OK) status = weft_write(m->program, m->values[i], buffer, bytes, error);
        free(buffer);
        WEFT_TRY(status);
    }
    return WEFT_OK;
}

static unsigned long long number_of(const safetensors *f, const char *key, int64_t least)
{
    const char *text = safetensors_metadata(f, key);
    const unsigned long long number = text ? strtoull(text, NULL, 10) : 0;
    return number < (unsigned long long)least || number > INT64_MAX ? (unsigned long long)least
                                                                    : number;
}

static weft_status import_all(importer *m, const char *path, const char *directory,
                              weft_error *error)
{
    weft_world world;
    WEFT_TRY(safetensors_open(path, &m->file, error));
    if (m->file.n_tensors == 0)
        return weft_fail(error, WEFT_USAGE, "%s has no tensors: nothing to import", path);
    WEFT_TRY(weft_world_open(&world, error));
    WEFT_TRY(weft_mesh_create(&world, "data:1", &m->mesh, error));
    WEFT_TRY(weft_layout_create("", &m->layout, error));
    WEFT_TRY(build(m, error));
    WEFT_TRY(fill(m, error));
    const weft_checkpoint_state state = {(int64_t)number_of(&m->file, "step", 1),
                                         (int64_t)number_of(&m->file, "sample", 0),
                                         number_of(&m->file, "seed", 1)};
    const weft_checkpoint_options options = {.keep = 1 << 20}; /* nothing there is removed */
    weft_set_runs(m->program, state.step);
    WEFT_TRY(weft_checkpoints_open(directory, &options, &m->checkpoints, error));
    WEFT_TRY(weft_checkpoints_save(m->checkpoints, m->program, &state, error));
    return weft_checkpoints_wait(m->checkpoints, error);
}

weft_status ckpt_import(const char *path, const char *directory, weft_error *error)
{
    importer m = {0};
    const weft_status status = import_all(&m, path, directory, error);
    weft_checkpoints_close(&m.checkpoints);
    weft_program_destroy(&m.program);
    weft_graph_destroy(&m.graph);
    weft_layout_destroy(&m.layout);
    weft_mesh_destroy(&m.mesh);
    free(m.values);
    safetensors_close(&m.file);
    return status;
}
