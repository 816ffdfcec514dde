/* manifest_write: a manifest as JSON text, sealed with a hash of itself. */
#include "manifest.h"

#include <stdlib.h>
#include <string.h>

bool weft_manifest_seal(json_t *root)
{
    char digits[WEFT_HASH_DIGITS + 1];
    json_object_del(root, "hash");
    char *text = json_dumps(root, JSON_COMPACT | JSON_SORT_KEYS);
    if (text == NULL) return false;
    const weft_hash hash = weft_hash_of(text, strlen(text));
    free(text);
    weft_hash_print(&hash, digits);
    return json_object_set_new(root, "hash", json_string(digits)) == 0;
}

/* Without the spaces between tokens, as the hash takes it. */
static void squeeze(const char *text, size_t bytes, char *compact)
{
    bool is_quoted = false;
    for (size_t i = 0; i < bytes; i++) {
        if (!is_quoted && text[i] && strchr(" \t\r\n", text[i])) continue;
        *compact++ = text[i];
        if (text[i] == '"') is_quoted = !is_quoted;
        if (text[i] == '\\' && i + 1 < bytes) *compact++ = text[++i];
    }
    *compact = 0;
}

/* No quoted text can look like the member, since quotes are escaped there. compact: room for as many
 * bytes and one. */
static bool is_sealed(const char *text, size_t bytes, char *compact)
{
    static const char member[] = ",\"hash\":\"";
    weft_hash said;
    weft_hashing hashing;
    squeeze(text, bytes, compact);
    char *seal = strstr(compact, member), *digits = seal ? seal + sizeof member - 1 : NULL;
    if (!seal || strlen(digits) <= WEFT_HASH_DIGITS || digits[WEFT_HASH_DIGITS] != '"')
        return false;
    const char *rest = digits + WEFT_HASH_DIGITS + 1;
    digits[WEFT_HASH_DIGITS] = 0;
    if (!weft_hash_parse(digits, &said)) return false;
    weft_hash_begin(&hashing);
    weft_hash_add(&hashing, compact, (size_t)(seal - compact));
    weft_hash_add(&hashing, rest, strlen(rest));
    const weft_hash found = weft_hash_end(&hashing);
    return weft_hash_equal(&said, &found);
}

weft_status weft_manifest_check_seal(const char *text, size_t bytes, bool *is_good,
                                     weft_error *error)
{
    char *compact = malloc(bytes + 1);
    if (compact == NULL) return weft_fail_memory(error, bytes);
    *is_good = is_sealed(text, bytes, compact);
    free(compact);
    return WEFT_OK;
}

static json_t *hash_json(const weft_hash *hash)
{
    char digits[WEFT_HASH_DIGITS + 1];
    weft_hash_print(hash, digits);
    return json_string(digits);
}

/* Jansson's setters take NULL for a value that could not be made and return -1: one sum tells. */
static json_t *finished(json_t *json, int n_failed)
{
    if (n_failed == 0) return json;
    json_decref(json);
    return NULL;
}

static json_t *dims_json(const weft_shape *shape)
{
    json_t *dims = json_array();
    int failed = 0;
    for (int d = 0; d < shape->n_dims; d++)
        failed += json_array_append_new(
            dims, json_pack("[sI]", shape->dims[d].name, (json_int_t)shape->dims[d].size));
    return finished(dims, failed);
}

static json_t *blocks_json(const weft_entry *entry)
{
    json_t *blocks = json_array();
    int failed = 0;
    for (int64_t b = 0; b < entry->n_blocks; b++)
        failed += json_array_append_new(blocks, hash_json(&entry->blocks[b]));
    return finished(blocks, failed);
}

static json_t *entry_json(const weft_entry *entry)
{
    const weft_stored_tensor *tensor = &entry->tensor;
    json_t *json = json_object();
    int failed = json_object_set_new(json, "name", json_string(tensor->name));
    failed +=
        json_object_set_new(json, "kind", json_string(tensor->is_slot ? "slot" : "parameter"));
    failed += json_object_set_new(json, "dtype", json_string(tensor->dtype));
    failed += json_object_set_new(json, "dims", dims_json(&tensor->shape));
    failed += json_object_set_new(json, "dataset", json_string(entry->dataset));
    failed += json_object_set_new(json, "file", json_string(tensor->file));
    failed += json_object_set_new(json, "offset", json_integer(tensor->offset));
    failed += json_object_set_new(json, "bytes", json_integer(tensor->bytes));
    failed += json_object_set_new(json, "hashes", blocks_json(entry));
    return finished(json, failed);
}

static json_t *files_json(const weft_manifest *manifest)
{
    json_t *files = json_array();
    int failed = 0;
    for (int i = 0; i < manifest->n_files; i++) {
        const weft_data_file *file = &manifest->files[i];
        failed += json_array_append_new(files, json_pack("{sssIso}", "name", file->name, "bytes",
                                                         (json_int_t)file->bytes, "structure",
                                                         hash_json(&file->structure)));
    }
    return finished(files, failed);
}

static json_t *entries_json(const weft_manifest *manifest)
{
    json_t *entries = json_array();
    int failed = 0;
    for (int i = 0; i < manifest->n_entries; i++)
        failed += json_array_append_new(entries, entry_json(&manifest->entries[i]));
    return finished(entries, failed);
}

static json_t *manifest_json(const weft_manifest *manifest)
{
    const weft_checkpoint_state *state = &manifest->state;
    char seed[24];
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)state->seed); /* JSON has no uint64 */
    json_t *json = json_object();
    int failed = json_object_set_new(json, "format", json_integer(WEFT_MANIFEST_FORMAT));
    failed += json_object_set_new(json, "weft", json_string(WEFT_VERSION));
    failed += json_object_set_new(json, "step", json_integer(state->step));
    failed += json_object_set_new(json, "sample", json_integer(state->sample));
    failed += json_object_set_new(json, "seed", json_string(seed));
    failed += json_object_set_new(json, "mesh", json_string(manifest->mesh));
    failed += json_object_set_new(json, "layout", json_string(manifest->layout));
    if (manifest->data[0]) failed += json_object_set_new(json, "data", json_string(manifest->data));
    if (state->has_loss)
        failed += json_object_set_new(
            json, "held_out", json_pack("{sfss}", "loss", state->loss, "of", manifest->held_out));
    failed += json_object_set_new(json, "program", json_string(manifest->program));
    failed += json_object_set_new(json, "library", json_string(manifest->library));
    failed += json_object_set_new(json, "block_bytes", json_integer(WEFT_BLOCK_BYTES));
    failed += json_object_set_new(json, "files", files_json(manifest));
    failed += json_object_set_new(json, "tensors", entries_json(manifest));
    return finished(json, failed);
}

/* Out of memory, Jansson may print a part of what it should, and say nothing: the text is looked at
 * again before it is believed. */
weft_status weft_manifest_text(const weft_manifest *manifest, char **text, weft_error *error)
{
    bool is_good = false;
    *text = NULL;
    json_t *json = manifest_json(manifest);
    if (json != NULL && weft_manifest_seal(json))
        *text = json_dumps(json, JSON_INDENT(1) | JSON_SORT_KEYS);
    json_decref(json);
    if (*text && weft_manifest_check_seal(*text, strlen(*text), &is_good, error) == WEFT_OK &&
        is_good)
        return WEFT_OK;
    free(*text);
    *text = NULL;
    return weft_fail(error, WEFT_MEMORY,
                     "could not put the manifest of %d tensors into words: out of memory",
                     manifest->n_entries);
}
