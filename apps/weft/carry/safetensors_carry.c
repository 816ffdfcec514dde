/* safetensors_carry: a checkpoint as a safetensors file, and such a file as a source.
 *
 * Dims, step, sample, seed and data are texts in its metadata, so that the way back changes nothing.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../json.h"
#include "carry.h"
#include "safetensors.h"

enum { ALIGNMENT = 8, KEY = 1200, DIMS = 1024 };

/* ---- write ----------------------------------------------------------------------------------- */

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
    if (*weft_stored_data(stored))
        json_object_set_new(metadata, "data", json_string(weft_stored_data(stored)));
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
    return weft_fail(error, errno == ENOMEM ? WEFT_MEMORY : WEFT_IO, "cannot write %.300s: %s",
                     path, strerror(errno));
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
    const weft_status status = text ? app_json_status(error) : weft_fail_memory(error, 0);
    if (status != WEFT_OK) {
        free(text);
        return status;
    }
    const size_t length = strlen(text);
    for (int i = 0; i < 8; i++)
        prefix[i] = (unsigned char)((uint64_t)length >> 8 * i);
    const bool is_written =
        fwrite(prefix, 1, 8, file) == 8 && fwrite(text, 1, length, file) == length;
    free(text);
    return is_written ? write_tensors(stored, path, file, error) : fail_write(path, error);
}

static weft_status write_file(const weft_stored *stored, const char *path, weft_error *error)
{
    FILE *file = fopen(path, "wbe");
    if (!file) return fail_write(path, error);
    weft_status status = write_all(stored, path, file, error);
    const bool is_synced = fflush(file) == 0 && fsync(fileno(file)) == 0;
    if (status == WEFT_OK && !is_synced) status = fail_write(path, error);
    if (fclose(file) != 0 && status == WEFT_OK) status = fail_write(path, error);
    return status;
}

/* ---- source ---------------------------------------------------------------------------------- */

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
    const safetensors *f = from->file;
    const safetensor *t = &f->tensors[i];
    if (!t->type->convert) return safetensors_read(f, t, buffer, error);
    void *raw = malloc((size_t)(t->end - t->begin) + 1);
    if (!raw) return weft_fail_memory(error, (size_t)(t->end - t->begin));
    const weft_status status = convert(f, t, raw, buffer, error);
    free(raw);
    return status;
}

static void close_file(source *from)
{
    for (int i = 0; i < from->n_tensors; i++)
        free((char *)from->tensors[i].problem);
    if (from->file) safetensors_close(from->file);
    free(from->file);
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

static weft_status open_file(const char *path, source *from, weft_error *error)
{
    safetensors *f = calloc(1, sizeof *f);
    *from = (source){path, .separators = " ", .file = f, .read = read_tensor, .close = close_file};
    weft_status status = f ? safetensors_open(path, f, error) : weft_fail_memory(error, sizeof *f);
    if (status == WEFT_OK) {
        from->tensors = calloc((size_t)f->n_tensors + 1, sizeof *from->tensors);
        if (!from->tensors) status = weft_fail_memory(error, (size_t)f->n_tensors);
    }
    for (int i = 0; status == WEFT_OK && i < f->n_tensors; i++) {
        status = set_tensor(f, &f->tensors[i], &from->tensors[i], error);
        from->n_tensors += status == WEFT_OK;
    }
    if (status != WEFT_OK) {
        close_file(from);
        return status;
    }
    from->step = (int64_t)number_of(f, "step");
    from->sample = (int64_t)number_of(f, "sample");
    from->seed = safetensors_metadata(f, "seed") ? number_of(f, "seed") : 1;
    const char *format = safetensors_metadata(f, "format");
    if (format && strcmp(format, "weft") == 0) from->data = safetensors_metadata(f, "data");
    return WEFT_OK;
}

const carry_format carry_safetensors = {
    "safetensors", {".safetensors", NULL}, write_file, open_file};
