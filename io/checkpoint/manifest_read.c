/* manifest_read: JSON text into a manifest, every field checked as if it were hostile.
 *
 * Order: the text is JSON without repeated keys; its own hash is right; then types, ranges and
 * names; then that no two tensors share a byte of a file.
 *
 * Out of memory, Jansson takes good text for bad, or loses a part of it. So the hash is looked at twice: over the
 * bytes, which needs nothing of Jansson, and over what Jansson has made of them. A text with the right bytes is never
 * called damaged because it could not be read.
 */
#include "manifest.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

typedef struct reader {
    const char *path;
    weft_manifest *manifest;
    weft_error *error;
    bool is_as_written; /* by its bytes */
} reader;

static weft_status WEFT_FORMAT(2, 3) fail(const reader *r, const char *format, ...)
{
    char what[300];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    return weft_fail(r->error, WEFT_CORRUPT, "%.120s: %s", r->path, what);
}

/* ---- fields ---------------------------------------------------------------------------------- */

static weft_status get_integer(const reader *r, const json_t *from, const char *key, int64_t most,
                               int64_t *number)
{
    const json_t *field = json_object_get(from, key);
    if (!json_is_integer(field)) return fail(r, "\"%s\" must be a whole number", key);
    *number = json_integer_value(field);
    if (*number >= 0 && *number <= most) return WEFT_OK;
    return fail(r, "\"%s\" is %lld, but must be from 0 to %lld", key, (long long)*number,
                (long long)most);
}

/* Printable, and not so long that no sentence can hold it. */
static weft_status check_text(const reader *r, const char *key, const char *text, size_t least)
{
    enum { MOST = 4000 };
    const size_t bytes = strlen(text);
    if (bytes < least || bytes > MOST)
        return fail(r, "\"%s\" has %zu bytes, but must have %zu to %d", key, bytes, least, MOST);
    for (const char *c = text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7F)
            return fail(r, "\"%s\" holds the control character %d", key, *c);
    return WEFT_OK;
}

static weft_status get_text(const reader *r, const json_t *from, const char *key, size_t least,
                            const char **text)
{
    const json_t *field = json_object_get(from, key);
    if (!json_is_string(field)) return fail(r, "\"%s\" must be a text", key);
    WEFT_TRY(check_text(r, key, json_string_value(field), least));
    *text = weft_arena_intern(r->manifest->arena, json_string_value(field));
    return *text ? WEFT_OK : weft_fail_memory(r->error, strlen(json_string_value(field)));
}

static weft_status get_array(const reader *r, const json_t *from, const char *key, size_t most,
                             const json_t **array)
{
    *array = json_object_get(from, key);
    if (!json_is_array(*array)) return fail(r, "\"%s\" must be a list", key);
    if (json_array_size(*array) <= most) return WEFT_OK;
    return fail(r, "\"%s\" lists %zu things, more than %zu", key, json_array_size(*array), most);
}

static weft_status get_hash(const reader *r, const json_t *field, const char *key, weft_hash *hash)
{
    if (json_is_string(field) && weft_hash_parse(json_string_value(field), hash)) return WEFT_OK;
    return fail(r, "\"%s\" must be %d lower-case hexadecimal digits", key, WEFT_HASH_DIGITS);
}

static weft_status take(const reader *r, size_t count, size_t bytes, void **memory)
{
    *memory = weft_arena_take(r->manifest->arena, count * bytes + 1);
    return *memory ? WEFT_OK : weft_fail_memory(r->error, count * bytes);
}

/* ---- files ----------------------------------------------------------------------------------- */

static weft_status read_file_entry(const reader *r, const json_t *json, weft_data_file *file)
{
    if (!json_is_object(json)) return fail(r, "\"files\" must list objects");
    WEFT_TRY(get_text(r, json, "name", 1, &file->name));
    if (strchr(file->name, '/') || file->name[0] == '.')
        return fail(r,
                    "the data file \"%.100s\" is not a plain name: it may hold no / and not "
                    "begin with a dot",
                    file->name);
    WEFT_TRY(get_integer(r, json, "bytes", INT64_MAX, &file->bytes));
    return get_hash(r, json_object_get(json, "structure"), "structure", &file->structure);
}

static int find_file(const weft_manifest *manifest, const char *name, int n)
{
    for (int i = 0; i < n; i++)
        if (strcmp(manifest->files[i].name, name) == 0) return i;
    return -1;
}

static weft_status read_files(const reader *r, const json_t *root)
{
    weft_manifest *m = r->manifest;
    const json_t *list;
    WEFT_TRY(get_array(r, root, "files", WEFT_MOST_FILES, &list));
    const int n = (int)json_array_size(list);
    WEFT_TRY(take(r, (size_t)n, sizeof *m->files, (void **)&m->files));
    for (int i = 0; i < n; i++) {
        WEFT_TRY(read_file_entry(r, json_array_get(list, (size_t)i), &m->files[i]));
        if (find_file(m, m->files[i].name, i) >= 0)
            return fail(r, "the data file \"%.100s\" is listed twice", m->files[i].name);
        m->n_files = i + 1;
    }
    return WEFT_OK;
}

/* ---- tensors --------------------------------------------------------------------------------- */

static weft_status read_dim(const reader *r, const json_t *pair, weft_shape *shape)
{
    const json_t *name = json_array_get(pair, 0), *size = json_array_get(pair, 1);
    if (json_array_size(pair) != 2 || !json_is_string(name) || !json_is_integer(size))
        return fail(r, "\"dims\" must list pairs of a name and a size");
    WEFT_TRY(check_text(r, "dims", json_string_value(name), 1));
    if (json_integer_value(size) < 0)
        return fail(r, "dim %.60s has the size %lld", json_string_value(name),
                    (long long)json_integer_value(size));
    if (weft_shape_find(shape, json_string_value(name)) >= 0)
        return fail(r, "dim %.60s is there twice in one tensor", json_string_value(name));
    weft_dim *dim = &shape->dims[shape->n_dims++];
    dim->name = weft_arena_intern(r->manifest->arena, json_string_value(name));
    dim->size = json_integer_value(size);
    return dim->name ? WEFT_OK : weft_fail_memory(r->error, 64);
}

static weft_status read_dims(const reader *r, const json_t *json, weft_shape *shape)
{
    const json_t *list;
    WEFT_TRY(get_array(r, json, "dims", WEFT_MAX_DIMS, &list));
    for (size_t d = 0; d < json_array_size(list); d++)
        WEFT_TRY(read_dim(r, json_array_get(list, d), shape));
    return WEFT_OK;
}

static weft_status read_dtype(const reader *r, const json_t *json, weft_entry *entry)
{
    WEFT_TRY(get_text(r, json, "dtype", 1, &entry->tensor.dtype));
    for (int t = 0; t < WEFT_DTYPES; t++) {
        if (strcmp(weft_dtype_name((weft_dtype)t), entry->tensor.dtype) != 0) continue;
        entry->dtype = (weft_dtype)t;
        return WEFT_OK;
    }
    return fail(r, "tensor %.80s has the unknown dtype \"%.40s\"", entry->tensor.name,
                entry->tensor.dtype);
}

static weft_status read_kind(const reader *r, const json_t *json, weft_entry *entry)
{
    const char *kind;
    WEFT_TRY(get_text(r, json, "kind", 1, &kind));
    entry->tensor.is_slot = strcmp(kind, "slot") == 0;
    if (entry->tensor.is_slot || strcmp(kind, "parameter") == 0) return WEFT_OK;
    return fail(r, "tensor %.80s is a \"%.40s\"; it can be a parameter or a slot",
                entry->tensor.name, kind);
}

/* Where its bytes are: as many as its shape says, within its file. */
static weft_status check_place(const reader *r, const weft_entry *entry)
{
    const weft_stored_tensor *tensor = &entry->tensor;
    int64_t bytes = (int64_t)weft_dtype_bytes(entry->dtype);
    bool is_too_large = false;
    for (int d = 0; d < tensor->shape.n_dims; d++)
        is_too_large |= __builtin_mul_overflow(bytes, tensor->shape.dims[d].size, &bytes);
    if (is_too_large || bytes != tensor->bytes) {
        char text[120];
        weft_shape_print(&tensor->shape, text, sizeof text);
        return fail(r, "tensor %.60s is %s of %s, which is not %lld bytes", tensor->name, text,
                    tensor->dtype, (long long)tensor->bytes);
    }
    const int64_t room = r->manifest->files[entry->file].bytes;
    if (tensor->offset <= room && tensor->bytes <= room - tensor->offset) return WEFT_OK;
    return fail(r, "tensor %.80s lies at byte %lld with %lld bytes, past the %lld of %.60s",
                tensor->name, (long long)tensor->offset, (long long)tensor->bytes, (long long)room,
                tensor->file);
}

static weft_status read_blocks(const reader *r, const json_t *json, weft_entry *entry)
{
    const json_t *list;
    WEFT_TRY(get_array(r, json, "hashes", SIZE_MAX, &list));
    entry->n_blocks = weft_n_blocks(entry->tensor.bytes);
    if ((int64_t)json_array_size(list) != entry->n_blocks)
        return fail(r, "tensor %.80s has %zu hashes, but %lld blocks", entry->tensor.name,
                    json_array_size(list), (long long)entry->n_blocks);
    WEFT_TRY(take(r, json_array_size(list), sizeof *entry->blocks, (void **)&entry->blocks));
    for (int64_t b = 0; b < entry->n_blocks; b++)
        WEFT_TRY(get_hash(r, json_array_get(list, (size_t)b), "hashes", &entry->blocks[b]));
    return WEFT_OK;
}

static weft_status read_entry(const reader *r, const json_t *json, weft_entry *entry)
{
    weft_stored_tensor *tensor = &entry->tensor;
    if (!json_is_object(json)) return fail(r, "\"tensors\" must list objects");
    WEFT_TRY(get_text(r, json, "name", 1, &tensor->name));
    WEFT_TRY(read_kind(r, json, entry));
    WEFT_TRY(read_dtype(r, json, entry));
    WEFT_TRY(read_dims(r, json, &tensor->shape));
    WEFT_TRY(get_text(r, json, "dataset", 1, &entry->dataset));
    WEFT_TRY(get_text(r, json, "file", 1, &tensor->file));
    WEFT_TRY(get_integer(r, json, "offset", INT64_MAX, &tensor->offset));
    WEFT_TRY(get_integer(r, json, "bytes", INT64_MAX, &tensor->bytes));
    entry->file = find_file(r->manifest, tensor->file, r->manifest->n_files);
    if (entry->file < 0)
        return fail(r, "tensor %.80s is in \"%.80s\", which is not among \"files\"", tensor->name,
                    tensor->file);
    WEFT_TRY(check_place(r, entry));
    return read_blocks(r, json, entry);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int compare_names(const void *a, const void *b, void *argument)
{
    const weft_entry *entries = argument;
    return strcmp(entries[*(const int *)a].tensor.name, entries[*(const int *)b].tensor.name);
}

static int compare_places(const void *a, const void *b, void *argument)
{
    const weft_entry *entries = argument, *x = &entries[*(const int *)a],
                     *y = &entries[*(const int *)b];
    if (x->file != y->file) return x->file < y->file ? -1 : 1;
    if (x->tensor.offset != y->tensor.offset) return x->tensor.offset < y->tensor.offset ? -1 : 1;
    return (x->tensor.bytes > y->tensor.bytes) - (x->tensor.bytes < y->tensor.bytes);
}

void weft_manifest_sort(weft_manifest *m)
{
    if (m->n_entries == 0) return;
    for (int i = 0; i < m->n_entries; i++)
        m->by_name[i] = m->by_place[i] = i;
    qsort_r(m->by_name, (size_t)m->n_entries, sizeof *m->by_name, compare_names, m->entries);
    qsort_r(m->by_place, (size_t)m->n_entries, sizeof *m->by_place, compare_places, m->entries);
}

static weft_status check_neighbours(const reader *r)
{
    const weft_manifest *m = r->manifest;
    for (int i = 1; i < m->n_entries; i++) {
        const char *name = m->entries[m->by_name[i]].tensor.name;
        if (strcmp(m->entries[m->by_name[i - 1]].tensor.name, name) == 0)
            return fail(r, "two tensors are named %.100s", name);
        const weft_entry *a = &m->entries[m->by_place[i - 1]], *b = &m->entries[m->by_place[i]];
        if (a->file == b->file && a->tensor.bytes > b->tensor.offset - a->tensor.offset)
            return fail(r, "tensors %.80s and %.80s share bytes of %.60s", a->tensor.name,
                        b->tensor.name, b->tensor.file);
    }
    return WEFT_OK;
}

static weft_status read_entries(const reader *r, const json_t *root)
{
    weft_manifest *m = r->manifest;
    const json_t *list;
    WEFT_TRY(get_array(r, root, "tensors", WEFT_MOST_TENSORS, &list));
    const size_t n = json_array_size(list);
    WEFT_TRY(take(r, n, sizeof *m->entries, (void **)&m->entries));
    WEFT_TRY(take(r, n, sizeof *m->by_name, (void **)&m->by_name));
    WEFT_TRY(take(r, n, sizeof *m->by_place, (void **)&m->by_place));
    for (size_t i = 0; i < n; i++)
        WEFT_TRY(read_entry(r, json_array_get(list, i), &m->entries[i]));
    m->n_entries = (int)n;
    weft_manifest_sort(m);
    return check_neighbours(r);
}

static weft_status read_seed(const reader *r, const json_t *root, uint64_t *seed)
{
    const char *text;
    char *end;
    WEFT_TRY(get_text(r, root, "seed", 1, &text));
    errno = 0;
    *seed = strtoull(text, &end, 10);
    if (errno == 0 && *end == 0 && text[0] >= '0' && text[0] <= '9') return WEFT_OK;
    return fail(r, "\"seed\" must be a number from 0 to 2^64 - 1, as a text");
}

/* Of most checkpoints none was measured. */
static weft_status read_held_out(const reader *r, const json_t *root)
{
    weft_manifest *m = r->manifest;
    const json_t *held = json_object_get(root, "held_out"), *loss = json_object_get(held, "loss");
    m->held_out = "";
    if (held == NULL) return WEFT_OK;
    if (!json_is_number(loss)) return fail(r, "\"loss\" of \"held_out\" must be a number");
    m->state.loss = json_number_value(loss);
    m->state.has_loss = true;
    return get_text(r, held, "of", 0, &m->held_out);
}

static weft_status fail_unread(const reader *r)
{
    return weft_fail(r->error, WEFT_MEMORY,
                     "could not read %.200s: out of memory; its bytes are what was written",
                     r->path);
}

/* The seal was set last: take it off, seal again, compare. */
static weft_status check_hash(const reader *r, json_t *root)
{
    weft_hash said, found;
    WEFT_TRY(get_hash(r, json_object_get(root, "hash"), "hash", &said));
    if (!weft_manifest_seal(root)) return weft_fail_memory(r->error, 0);
    WEFT_TRY(get_hash(r, json_object_get(root, "hash"), "hash", &found));
    if (weft_hash_equal(&said, &found)) return WEFT_OK;
    if (r->is_as_written) return fail_unread(r);
    return fail(r, "its text is not what was written: the hash of itself does not fit");
}

static weft_status read_root(const reader *r, json_t *root)
{
    weft_manifest *m = r->manifest;
    int64_t format = 0, block_bytes = 0;
    if (!json_is_object(root)) return fail(r, "it must be one JSON object");
    WEFT_TRY(check_hash(r, root));
    WEFT_TRY(get_integer(r, root, "format", INT_MAX, &format));
    if (format != WEFT_MANIFEST_FORMAT)
        return weft_fail(r->error, WEFT_USAGE,
                         "%.200s has format %lld, and this Weft (%s) reads format %d; use a later "
                         "Weft",
                         r->path, (long long)format, WEFT_VERSION, WEFT_MANIFEST_FORMAT);
    WEFT_TRY(get_integer(r, root, "block_bytes", INT_MAX, &block_bytes));
    if (block_bytes != WEFT_BLOCK_BYTES)
        return fail(r, "\"block_bytes\" is %lld, but is always %d", (long long)block_bytes,
                    WEFT_BLOCK_BYTES);
    WEFT_TRY(get_integer(r, root, "step", INT64_MAX, &m->state.step));
    WEFT_TRY(get_integer(r, root, "sample", INT64_MAX, &m->state.sample));
    WEFT_TRY(read_seed(r, root, &m->state.seed));
    WEFT_TRY(get_text(r, root, "mesh", 0, &m->mesh));
    WEFT_TRY(get_text(r, root, "layout", 0, &m->layout));
    m->data = m->program = m->library = ""; /* not said by the first checkpoints */
    if (json_object_get(root, "data")) WEFT_TRY(get_text(r, root, "data", 0, &m->data));
    if (json_object_get(root, "program")) WEFT_TRY(get_text(r, root, "program", 0, &m->program));
    if (json_object_get(root, "library")) WEFT_TRY(get_text(r, root, "library", 0, &m->library));
    WEFT_TRY(read_held_out(r, root));
    WEFT_TRY(read_files(r, root));
    return read_entries(r, root);
}

static weft_status parse(reader *r, const char *text, size_t bytes)
{
    json_error_t where;
    WEFT_TRY(weft_manifest_check_seal(text, bytes, &r->is_as_written, r->error));
    json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &where);
    if (root == NULL && r->is_as_written) return fail_unread(r);
    if (root == NULL)
        return fail(r, "line %d, column %d: %.160s", where.line, where.column, where.text);
    const weft_status status = read_root(r, root);
    json_decref(root);
    return status;
}

weft_status weft_manifest_parse(const char *text, size_t bytes, const char *path,
                                weft_manifest **manifest, weft_error *error)
{
    weft_manifest *made = *manifest = calloc(1, sizeof *made);
    if (made == NULL) return weft_fail_memory(error, sizeof *made);
    reader r = {path, made, error, false};
    weft_status status = WEFT_OK;
    made->arena = weft_arena_create();
    if (made->arena == NULL) status = weft_fail_memory(error, sizeof *made);
    if (status == WEFT_OK) status = parse(&r, text, bytes);
    if (status != WEFT_OK) weft_manifest_destroy(manifest);
    return status;
}

void weft_manifest_destroy(weft_manifest **manifest)
{
    if (*manifest == NULL) return;
    if ((*manifest)->arena) weft_arena_destroy(&(*manifest)->arena);
    free(*manifest);
    *manifest = NULL;
}

static int compare_name(const void *name, const void *index, void *argument)
{
    const weft_entry *entries = argument;
    return strcmp(name, entries[*(const int *)index].tensor.name);
}

const weft_entry *weft_manifest_find(const weft_manifest *m, const char *name)
{
    int low = 0, high = m->n_entries;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        const int order = compare_name(name, &m->by_name[middle], m->entries);
        if (order == 0) return &m->entries[m->by_name[middle]];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}
