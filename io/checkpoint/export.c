/* export: a checkpoint as one HDF5 file, laid out as the data files of a checkpoint are.
 *
 * HDF5 makes the structure, with a place for every dataset, and closes the file; the elements are written at those
 * places by ourselves. So a full disk is met by plain writes, which say so, and not inside the library, which does not
 * come out of it well.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "skeleton.h"
#include "stored.h"

/* The manifest again, with places in the new file; its entries and their paths are in `arena`. */
static weft_status plan(const weft_stored *stored, weft_arena *arena, weft_manifest *m,
                        weft_error *error)
{
    *m = *stored->manifest;
    const size_t bytes = (size_t)m->n_entries * sizeof *m->entries;
    m->entries = arena ? weft_arena_take(arena, bytes + 1) : NULL;
    if (m->entries == NULL) return weft_fail_memory(error, bytes);
    memcpy(m->entries, stored->manifest->entries, bytes);
    for (int i = 0; i < m->n_entries; i++) {
        weft_entry *entry = &m->entries[i];
        entry->dataset = weft_dataset_path(arena, entry->tensor.name, entry->tensor.is_slot);
        if (entry->dataset == NULL) return weft_fail_memory(error, strlen(entry->tensor.name));
    }
    return WEFT_OK;
}

static weft_status write_elements(const weft_stored *stored, const weft_manifest *m, int file,
                                  const char *path, weft_error *error)
{
    for (int i = 0; i < m->n_entries; i++) {
        const weft_stored_tensor *tensor = &m->entries[i].tensor;
        char *buffer = malloc((size_t)tensor->bytes + 1);
        if (buffer == NULL) return weft_fail_memory(error, (size_t)tensor->bytes);
        weft_status status = weft_stored_read(stored, i, buffer, error);
        if (status == WEFT_OK)
            status = weft_bytes_write(file, path, buffer, tensor->bytes, tensor->offset, error);
        free(buffer);
        WEFT_TRY(status);
    }
    return weft_file_sync(file, path, error);
}

static weft_status fill(const weft_stored *stored, const weft_manifest *m, const char *path,
                        weft_error *error)
{
    const int file = open(path, O_WRONLY | O_CLOEXEC);
    if (file < 0) return weft_fail_io(error, "open", path, 0);
    weft_status status = write_elements(stored, m, file, path, error);
    if (close(file) != 0 && status == WEFT_OK) status = weft_fail_io(error, "close", path, 0);
    return status;
}

weft_status weft_stored_export(const weft_stored *stored, const char *path, weft_error *error)
{
    weft_manifest m;
    WEFT_GIVEN(stored, error);
    WEFT_GIVEN(path, error);
    if (unlink(path) != 0 && errno != ENOENT) return weft_fail_io(error, "replace", path, 0);
    weft_arena *arena = weft_arena_create();
    weft_status status = plan(stored, arena, &m, error);
    if (status == WEFT_OK) status = weft_skeleton_lay(path, &m, true, error);
    if (status == WEFT_OK) status = fill(stored, &m, path, error);
    weft_arena_destroy(&arena);
    return status;
}
