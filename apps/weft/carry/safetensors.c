/* safetensors: reading the format as if the file were hostile: nothing in its header is believed
 * before it is checked against the file's own length. */
#include "safetensors.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../json.h"
#include "weft/io.h"

enum { MAX_HEADER = 100000000 /* as the format's own reader has it */, PREFIX = 8 };
static const int64_t max_size = INT64_C(1) << 40;

static weft_status broken(const safetensors *file, weft_error *error, const char *name,
                          const char *rule)
{
    WEFT_TRY(app_json_status(error));
    return weft_fail(error, WEFT_USAGE, "%s is no safetensors file: %s%s%s", file->path,
                     name ? name : "", name ? ": " : "", rule);
}

/* ---- the header ----------------------------------------------------------------------------- */

static weft_status file_bytes(FILE *file, const char *path, int64_t *bytes, weft_error *error)
{
    if (fseeko(file, 0, SEEK_END) != 0 || (*bytes = ftello(file)) < 0 ||
        fseeko(file, 0, SEEK_SET) != 0)
        return weft_fail(error, WEFT_IO, "cannot read %s: %s", path, strerror(errno));
    return WEFT_OK;
}

static weft_status read_header(safetensors *f, int64_t bytes, weft_error *error)
{
    unsigned char prefix[PREFIX];
    uint64_t length = 0;
    json_error_t where;
    if (fread(prefix, 1, PREFIX, f->file) != PREFIX)
        return broken(f, error, NULL, "it has fewer than the 8 bytes of the header's length");
    for (int i = PREFIX - 1; i >= 0; i--)
        length = length << 8 | prefix[i];
    if (length > MAX_HEADER || (int64_t)length > bytes - PREFIX)
        return broken(f, error, NULL, "the header is longer than the file, or than 100 MB");
    char *text = malloc(length + 1);
    if (!text) return weft_fail_memory(error, length + 1);
    const bool is_read = fread(text, 1, length, f->file) == length;
    f->header =
        is_read && text[0] == '{' ? json_loadb(text, length, JSON_REJECT_DUPLICATES, &where) : NULL;
    free(text);
    f->data = PREFIX + (int64_t)length;
    if (f->header && json_is_object(f->header)) return WEFT_OK;
    return broken(f, error, NULL, "the header is not a JSON object with unique names");
}

static bool whole(const json_t *number, int64_t most, int64_t *value)
{
    *value = json_integer_value(number);
    return json_is_integer(number) && *value >= 0 && *value <= most;
}

/* Its shape; whether it is one. Of more dims than a tensor of ours may have, the first are kept. */
static bool read_shape(const json_t *shape, safetensor *t, int64_t *count)
{
    *count = 1;
    t->n_dims = (int)json_array_size(shape);
    for (int d = 0; d < t->n_dims; d++) {
        int64_t size;
        if (!whole(json_array_get(shape, (size_t)d), max_size, &size) ||
            __builtin_mul_overflow(*count, size, count))
            return false;
        if (d < WEFT_MAX_DIMS) t->sizes[d] = size;
    }
    return json_is_array(shape);
}

/* One entry of the header; `bytes` are those behind it. What type it is of says nothing about the file: only of one that is known
 * it is known how many bytes it takes. */
static weft_status read_tensor(const char *name, const json_t *entry, int64_t bytes, safetensor *t)
{
    const json_t *offsets = json_object_get(entry, "data_offsets");
    int64_t count;
    *t = (safetensor){.name = name, .dtype = json_string_value(json_object_get(entry, "dtype"))};
    t->type = t->dtype ? number_type_find(t->dtype) : NULL;
    if (!t->dtype || !read_shape(json_object_get(entry, "shape"), t, &count) ||
        json_array_size(offsets) != 2 || !whole(json_array_get(offsets, 0), bytes, &t->begin) ||
        !whole(json_array_get(offsets, 1), bytes, &t->end) || t->begin > t->end)
        return WEFT_USAGE;
    if (!t->type) return WEFT_OK;
    const bool is_past = __builtin_mul_overflow(count, (int64_t)t->type->bytes, &count);
    return !is_past && t->end - t->begin == count ? WEFT_OK : WEFT_USAGE;
}

static int by_place(const void *a, const void *b)
{
    const safetensor *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

static weft_status read_tensors(safetensors *f, int64_t bytes, weft_error *error)
{
    const char *name;
    json_t *entry;
    int64_t at = 0;
    const size_t room = json_object_size(f->header) + 1;
    f->tensors = calloc(room, sizeof *f->tensors);
    if (!f->tensors) return weft_fail_memory(error, room * sizeof *f->tensors);
    json_object_foreach(f->header, name, entry)
    {
        if (strcmp(name, "__metadata__") == 0) continue;
        if (read_tensor(name, entry, bytes, &f->tensors[f->n_tensors++]) != WEFT_OK)
            return broken(f, error, name,
                          "it wants a dtype such as F32, BF16 or I64, a shape of whole sizes, and "
                          "data_offsets in the file that are as far apart as these take");
    }
    qsort(f->tensors, (size_t)f->n_tensors, sizeof *f->tensors, by_place);
    for (int i = 0; i < f->n_tensors; i++) {
        if (f->tensors[i].begin != at)
            return broken(f, error, f->tensors[i].name, "its bytes overlap others, or leave a gap");
        at = f->tensors[i].end;
    }
    return at == bytes ? WEFT_OK : broken(f, error, NULL, "bytes behind the last tensor");
}

/* ---- life ----------------------------------------------------------------------------------- */

weft_status safetensors_open(const char *path, safetensors *f, weft_error *error)
{
    int64_t bytes = 0;
    *f = (safetensors){.path = path};
    WEFT_TRY(weft_file_check(path, WEFT_FILE_SAFETENSORS, error));
    f->file = fopen(path, "rbe");
    if (!f->file)
        return weft_fail(error, errno == ENOMEM ? WEFT_MEMORY : WEFT_IO, "cannot open %s: %s", path,
                         strerror(errno));
    weft_status status = file_bytes(f->file, path, &bytes, error);
    if (status == WEFT_OK) status = read_header(f, bytes, error);
    if (status == WEFT_OK) status = read_tensors(f, bytes - f->data, error);
    if (status != WEFT_OK) safetensors_close(f);
    return status;
}

void safetensors_close(safetensors *f)
{
    if (f->file) fclose(f->file);
    json_decref(f->header);
    free(f->tensors);
    *f = (safetensors){0};
}

const char *safetensors_metadata(const safetensors *f, const char *key)
{
    return json_string_value(json_object_get(json_object_get(f->header, "__metadata__"), key));
}

weft_status safetensors_read(const safetensors *f, const safetensor *t, void *buffer,
                             weft_error *error)
{
    const size_t bytes = (size_t)(t->end - t->begin);
    if (fseeko(f->file, f->data + t->begin, SEEK_SET) == 0 &&
        fread(buffer, 1, bytes, f->file) == bytes)
        return WEFT_OK;
    return weft_fail(error, WEFT_IO, "cannot read %s of %s: %s", t->name, f->path, strerror(errno));
}
