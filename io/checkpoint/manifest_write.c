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
    failed += json_object_set_new(json, "program", json_string(manifest->program));
    failed += json_object_set_new(json, "library", json_string(manifest->library));
    failed += json_object_set_new(json, "block_bytes", json_integer(WEFT_BLOCK_BYTES));
    failed += json_object_set_new(json, "files", files_json(manifest));
    failed += json_object_set_new(json, "tensors", entries_json(manifest));
    return finished(json, failed);
}

weft_status weft_manifest_text(const weft_manifest *manifest, char **text, weft_error *error)
{
    *text = NULL;
    json_t *json = manifest_json(manifest);
    if (json != NULL && weft_manifest_seal(json))
        *text = json_dumps(json, JSON_INDENT(1) | JSON_SORT_KEYS);
    json_decref(json);
    if (*text != NULL) return WEFT_OK;
    return weft_fail(error, WEFT_MEMORY,
                     "could not put the manifest of %d tensors into words: out of memory",
                     manifest->n_entries);
}
