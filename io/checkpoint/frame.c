/* frame: what a data file holds between its tensors, kept so that the next save can lay it without
 * HDF5. */
#include "frame.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files.h"

static weft_hash key_of(const weft_manifest *m)
{
    weft_hashing hashing;
    weft_hash_begin(&hashing);
    for (int i = 0; i < m->n_entries; i++) {
        const weft_entry *entry = &m->entries[i];
        const weft_shape *shape = &entry->tensor.shape;
        weft_hash_add(&hashing, entry->dataset, strlen(entry->dataset) + 1);
        weft_hash_add(&hashing, &entry->dtype, sizeof entry->dtype);
        weft_hash_add(&hashing, &shape->n_dims, sizeof shape->n_dims);
        for (int d = 0; d < shape->n_dims; d++) {
            weft_hash_add(&hashing, shape->dims[d].name, strlen(shape->dims[d].name) + 1);
            weft_hash_add(&hashing, &shape->dims[d].size, sizeof shape->dims[d].size);
        }
    }
    return weft_hash_end(&hashing);
}

bool weft_frame_fits(const weft_frame *frame, const weft_manifest *manifest)
{
    const weft_hash key = key_of(manifest);
    return frame->is_kept && weft_hash_equal(&key, &frame->key);
}

/* One stretch of the file that lies in no tensor. Number n is what comes after the last tensor. */
typedef struct gap {
    int64_t begin, end;
} gap;

static gap gap_of(const weft_manifest *m, int number)
{
    gap g = {0, m->files[0].bytes};
    if (number > 0) {
        const weft_stored_tensor *before = &m->entries[m->by_place[number - 1]].tensor;
        g.begin = before->offset + before->bytes;
    }
    if (number < m->n_entries) g.end = m->entries[m->by_place[number]].tensor.offset;
    return g;
}

static int64_t gaps_bytes(const weft_manifest *m)
{
    int64_t bytes = 0;
    for (int i = 0; i <= m->n_entries; i++)
        bytes += gap_of(m, i).end - gap_of(m, i).begin;
    return bytes;
}

static weft_status read_gaps(weft_frame *frame, const weft_manifest *m, int file, const char *path,
                             weft_error *error)
{
    const int64_t bytes = gaps_bytes(m);
    char *next = frame->gaps = malloc((size_t)bytes + 1);
    if (next == NULL) return weft_fail_memory(error, (size_t)bytes);
    for (int i = 0; i <= m->n_entries; i++) {
        const gap g = gap_of(m, i);
        WEFT_TRY(weft_bytes_read(file, path, next, g.end - g.begin, g.begin, error));
        next += g.end - g.begin;
    }
    return WEFT_OK;
}

weft_status weft_frame_keep(weft_frame *frame, const weft_manifest *m, int file, const char *path,
                            weft_error *error)
{
    weft_frame_drop(frame);
    frame->offsets = malloc(((size_t)m->n_entries + 1) * sizeof *frame->offsets);
    if (frame->offsets == NULL)
        return weft_fail_memory(error, (size_t)m->n_entries * sizeof *frame->offsets);
    for (int i = 0; i < m->n_entries; i++)
        frame->offsets[i] = m->entries[i].tensor.offset;
    frame->bytes = m->files[0].bytes;
    frame->key = key_of(m);
    if (file >= 0) WEFT_TRY(read_gaps(frame, m, file, path, error));
    frame->is_kept = true;
    return WEFT_OK;
}

void weft_frame_place(const weft_frame *frame, weft_manifest *m)
{
    for (int i = 0; i < m->n_entries; i++)
        m->entries[i].tensor.offset = frame->offsets[i];
    m->files[0].bytes = frame->bytes;
    weft_manifest_sort(m);
}

static weft_status write_gaps(const weft_frame *frame, const weft_manifest *m, int file,
                              const char *path, weft_error *error)
{
    const char *next = frame->gaps;
    for (int i = 0; i <= m->n_entries; i++) {
        const gap g = gap_of(m, i);
        WEFT_TRY(weft_bytes_write(file, path, next, g.end - g.begin, g.begin, error));
        next += g.end - g.begin;
    }
    if (ftruncate(file, frame->bytes) == 0) return WEFT_OK;
    return weft_fail_io(error, "set the length of", path, 0);
}

weft_status weft_frame_lay(const weft_frame *frame, const weft_manifest *m, const char *path,
                           weft_error *error)
{
    const int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file < 0) return weft_fail_io(error, "make", path, 0);
    weft_status status = write_gaps(frame, m, file, path, error);
    if (close(file) != 0 && status == WEFT_OK) status = weft_fail_io(error, "close", path, 0);
    return status;
}

void weft_frame_drop(weft_frame *frame)
{
    free(frame->offsets);
    free(frame->gaps);
    *frame = (weft_frame){0};
}
