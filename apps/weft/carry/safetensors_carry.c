/* safetensors_carry: tensors as a safetensors file; safetensors_source.c has the way back.
 *
 * Dims, step, sample, seed and data are texts in its metadata, so that the way back changes nothing. A file with
 * another program's names has its metadata too.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../json.h"
#include "carry.h"
#include "safetensors.h"

enum { ALIGNMENT = 8, KEY = 1200 };

/* ---- write ----------------------------------------------------------------------------------- */

static void add_number(json_t *metadata, const char *key, unsigned long long number)
{
    char text[32];
    snprintf(text, sizeof text, "%llu", number);
    json_object_set_new(metadata, key, json_string(text));
}

/* metadata: NULL: without dims. */
static void add_tensor(json_t *header, json_t *metadata, const carried *t, int64_t *at)
{
    char key[KEY];
    json_t *sizes = json_array();
    const int64_t bytes = carry_bytes_of(t);
    for (int d = 0; d < t->n_dims; d++)
        json_array_append_new(sizes, json_integer(t->sizes[d]));
    snprintf(key, sizeof key, "dims.%s", t->name);
    if (metadata) json_object_set_new(metadata, key, json_string(t->dims ? t->dims : ""));
    json_object_set_new(header, t->name,
                        json_pack("{s:s, s:o, s:[I, I]}", "dtype", safetensors_dtypes[t->dtype],
                                  "shape", sizes, "data_offsets", (json_int_t)*at,
                                  (json_int_t)(*at + bytes)));
    *at += bytes;
}

static void add_state(json_t *metadata, const source *from)
{
    json_object_set_new(metadata, "format", json_string("weft"));
    add_number(metadata, "step", (unsigned long long)from->step);
    add_number(metadata, "sample", (unsigned long long)from->sample);
    add_number(metadata, "seed", from->seed);
    if (from->data && *from->data) json_object_set_new(metadata, "data", json_string(from->data));
}

/* The header's text, padded so that the tensors begin at a multiple of 8; the caller frees it. */
static char *header_text(const source *from)
{
    json_t *header = json_object(), *metadata = json_object();
    int64_t at = 0;
    json_object_set_new(header, "__metadata__", metadata);
    if (from->kind)
        json_object_set_new(metadata, "format", json_string(from->kind));
    else
        add_state(metadata, from);
    for (int i = 0; i < from->n_tensors; i++)
        add_tensor(header, from->kind ? NULL : metadata, &from->tensors[i], &at);
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

static weft_status write_tensors(source *from, const char *path, FILE *file, weft_error *error)
{
    for (int i = 0; i < from->n_tensors; i++) {
        const size_t bytes = (size_t)carry_bytes_of(&from->tensors[i]);
        void *buffer = malloc(bytes + 1);
        if (!buffer) return weft_fail_memory(error, bytes);
        weft_status status = from->read(from, i, buffer, error);
        if (status == WEFT_OK && fwrite(buffer, 1, bytes, file) != bytes)
            status = fail_write(path, error);
        free(buffer);
        WEFT_TRY(status);
    }
    return WEFT_OK;
}

static weft_status write_all(source *from, const char *path, FILE *file, weft_error *error)
{
    unsigned char prefix[8];
    char *text = header_text(from);
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
    return is_written ? write_tensors(from, path, file, error) : fail_write(path, error);
}

static weft_status write_file(source *from, const char *path, weft_error *error)
{
    FILE *file = fopen(path, "wbe");
    if (!file) return fail_write(path, error);
    weft_status status = write_all(from, path, file, error);
    const bool is_synced = fflush(file) == 0 && fsync(fileno(file)) == 0;
    if (status == WEFT_OK && !is_synced) status = fail_write(path, error);
    if (fclose(file) != 0 && status == WEFT_OK) status = fail_write(path, error);
    return status;
}

/* As a checkpoint has them. */
static weft_status write_stored(const weft_stored *stored, const char *path, weft_error *error)
{
    source from;
    WEFT_TRY(carry_stored_source(stored, &from, error));
    const weft_status status = write_file(&from, path, error);
    from.close(&from);
    return status;
}

const carry_format carry_safetensors = {.name = "safetensors",
                                        .endings = {".safetensors", ".json", NULL},
                                        .write = write_stored,
                                        .write_source = write_file,
                                        .open = safetensors_source_open};
