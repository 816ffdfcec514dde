/* stored: one checkpoint on disk, opened: its manifest, and its data files block by block. */
#include "stored.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../dataset.h"
#include "work.h"

/* ---- directories of steps -------------------------------------------------------------------- */

/* "step_00001000", with eight digits or, past those, without a leading zero; -1 for all else. */
static int64_t step_of(const char *name)
{
    static const char prefix[] = "step_";
    if (strncmp(name, prefix, sizeof prefix - 1) != 0) return -1;
    const char *digits = name + sizeof prefix - 1;
    const size_t n = strspn(digits, "0123456789");
    if (digits[n] || n < 8 || n > 18 || (n > 8 && digits[0] == '0')) return -1;
    return strtoll(digits, NULL, 10);
}

static int compare_steps(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* How many; the first `room` of them, in any order; -1: errno says why it cannot be told. Nothing
 * there is none; but a directory that may be full of them is not empty. */
static int read_steps(const char *directory, int64_t *steps, int room)
{
    DIR *listing = directory != NULL ? opendir(directory) : NULL;
    if (steps == NULL) room = 0;
    int n = 0;
    if (listing == NULL) return errno == ENOENT || errno == ENOTDIR ? 0 : -1;
    errno = 0;
    for (struct dirent *entry; (entry = readdir(listing)) != NULL; errno = 0) {
        struct stat facts;
        const int64_t step = step_of(entry->d_name);
        if (step < 0 || fstatat(dirfd(listing), entry->d_name, &facts, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISDIR(facts.st_mode))
            continue;
        if (n < room) steps[n] = step;
        n++;
    }
    const int reason = errno;
    closedir(listing);
    errno = reason;
    return reason == 0 ? n : -1;
}

int weft_stored_steps(const char *directory, int64_t *steps, int room)
{
    const int n = read_steps(directory, steps, room);
    if (room > 0 && n > 0)
        qsort(steps, (size_t)(n < room ? n : room), sizeof *steps, compare_steps);
    return n;
}

weft_status weft_steps_list(const char *directory, int64_t **steps, int *n, weft_error *error)
{
    *steps = NULL;
    const int room = *n = weft_stored_steps(directory, NULL, 0);
    if (room < 0) return weft_fail_io(error, "list", directory, 0);
    *steps = malloc(((size_t)room + 1) * sizeof **steps);
    if (*steps == NULL) return weft_fail_memory(error, (size_t)room * sizeof **steps);
    *n = weft_stored_steps(directory, *steps, room);
    if (*n > room) *n = room; /* another one has appeared */
    if (*n >= 0) return WEFT_OK;
    free(*steps);
    *steps = NULL;
    return weft_fail_io(error, "list", directory, 0);
}

weft_status weft_step_path(char *path, const char *directory, int64_t step, weft_error *error)
{
    return weft_path(path, error, "%s/step_%08lld", directory, (long long)step);
}

bool weft_step_is_damaged(const char *directory, int64_t step)
{
    char path[WEFT_PATH_BYTES];
    return weft_path(path, NULL, "%s/step_%08lld/" WEFT_DAMAGED_NAME, directory, (long long)step) ==
               WEFT_OK &&
           weft_path_exists(path);
}

weft_status weft_newest_step(const char *directory, int64_t below, int64_t *newest, int *n_damaged,
                             weft_error *error)
{
    int64_t *steps;
    int n;
    *newest = -1;
    *n_damaged = 0;
    WEFT_TRY(weft_steps_list(directory, &steps, &n, error));
    for (int i = 0; i < n; i++) {
        const bool is_damaged = weft_step_is_damaged(directory, steps[i]);
        *n_damaged += is_damaged;
        if (!is_damaged && steps[i] < below) *newest = steps[i];
    }
    free(steps);
    return WEFT_OK;
}

/* ---- open and close -------------------------------------------------------------------------- */

static weft_status read_manifest(weft_stored *stored, weft_error *error)
{
    enum { MOST = 256 << 20 };
    char path[WEFT_PATH_BYTES];
    int file;
    int64_t bytes;
    WEFT_TRY(weft_path(path, error, "%s/" WEFT_MANIFEST_NAME, stored->path));
    WEFT_TRY(weft_stored_file_open(path, &file, &bytes, error));
    weft_status status = WEFT_OK;
    char *text = NULL;
    if (bytes > MOST)
        status = weft_fail(error, WEFT_CORRUPT, "%.300s has %lld bytes; a manifest has at most %d",
                           path, (long long)bytes, MOST);
    else if ((text = malloc((size_t)bytes + 1)) == NULL)
        status = weft_fail_memory(error, (size_t)bytes);
    if (status == WEFT_OK) status = weft_bytes_read(file, path, text, bytes, 0, error);
    if (status == WEFT_OK && bytes > 0) /* an empty one is damaged */
        status = weft_bytes_check(text, (size_t)bytes, path, WEFT_FILE_JSON, error);
    if (status == WEFT_OK)
        status = weft_manifest_parse(text, (size_t)bytes, path, &stored->manifest, error);
    free(text);
    close(file);
    return status;
}

static weft_status open_file(weft_stored *stored, int i, weft_error *error)
{
    const weft_data_file *file = &stored->manifest->files[i];
    char path[WEFT_PATH_BYTES];
    int64_t bytes;
    WEFT_TRY(weft_path(path, error, "%s/%s", stored->path, file->name));
    WEFT_TRY(weft_stored_file_open(path, &stored->files[i], &bytes, error));
    if (bytes == file->bytes) return WEFT_OK;
    if (bytes > 0) /* Git LFS leaves a pointer there */
        WEFT_TRY(weft_kind_check(stored->files[i], path, bytes, WEFT_FILE_HDF5, error));
    return weft_fail(error, WEFT_CORRUPT, "%.300s has %lld bytes, but was written with %lld", path,
                     (long long)bytes, (long long)file->bytes);
}

static weft_status open_files(weft_stored *stored, weft_error *error)
{
    const int n = stored->manifest->n_files;
    stored->files = malloc(((size_t)n + 1) * sizeof *stored->files);
    if (stored->files == NULL) return weft_fail_memory(error, (size_t)n * sizeof *stored->files);
    for (int i = 0; i < n; i++)
        stored->files[i] = -1;
    for (int i = 0; i < n; i++)
        WEFT_TRY(open_file(stored, i, error));
    return WEFT_OK;
}

weft_status weft_stored_open_step(const char *path, weft_stored **stored, weft_error *error)
{
    *stored = calloc(1, sizeof **stored);
    if (*stored == NULL) return weft_fail_memory(error, sizeof **stored);
    weft_status status = weft_path((*stored)->path, error, "%s", path);
    if (status == WEFT_OK) status = read_manifest(*stored, error);
    if (status == WEFT_OK) status = open_files(*stored, error);
    if (status != WEFT_OK) weft_stored_close(stored);
    return status;
}

void weft_stored_close(weft_stored **stored)
{
    weft_stored *s = stored != NULL ? *stored : NULL;
    if (s == NULL) return;
    for (int i = 0; s->files && i < s->manifest->n_files; i++)
        if (s->files[i] >= 0) close(s->files[i]);
    free(s->files);
    weft_manifest_destroy(&s->manifest);
    free(s);
    *stored = NULL;
}

/* A file in the place of a directory. */
static weft_status check_no_file(const char *path, weft_error *error)
{
    struct stat facts;
    if (stat(path, &facts) != 0 || S_ISDIR(facts.st_mode)) return WEFT_OK;
    if (S_ISREG(facts.st_mode)) WEFT_TRY(weft_file_check(path, WEFT_FILE_CHECKPOINT, error));
    return weft_fail(
        error, WEFT_USAGE,
        "%.300s is no checkpoint: it is no directory; name a run's directory, or one of "
        "its steps",
        path);
}

/* A directory of steps, or one that holds it as "ckpt". */
static weft_status newest_below(char *directory, const char *path, int64_t *step, int *n_damaged,
                                weft_error *error)
{
    static const char *const below[] = {"", "/ckpt"};
    *step = -1;
    for (int i = 0; i < 2 && *step < 0; i++) {
        int n = 0;
        WEFT_TRY(weft_path(directory, error, "%s%s", path, below[i]));
        WEFT_TRY(weft_newest_step(directory, INT64_MAX, step, &n, error));
        *n_damaged += n;
    }
    return WEFT_OK;
}

weft_status weft_stored_open(const char *path, weft_stored **stored, weft_error *error)
{
    char found[WEFT_PATH_BYTES], directory[WEFT_PATH_BYTES];
    int64_t step;
    int n_damaged = 0;
    WEFT_GIVEN(stored, error);
    *stored = NULL;
    WEFT_GIVEN(path, error);
    WEFT_TRY(weft_path(found, error, "%s/" WEFT_MANIFEST_NAME, path));
    if (weft_path_exists(found)) return weft_stored_open_step(path, stored, error);
    WEFT_TRY(check_no_file(path, error));
    WEFT_TRY(newest_below(directory, path, &step, &n_damaged, error));
    if (step < 0 && n_damaged)
        return weft_fail(error, WEFT_CORRUPT,
                         "all %d checkpoints in %.300s are marked as damaged; each has the reason "
                         "in its file %s",
                         n_damaged, path, WEFT_DAMAGED_NAME);
    if (step < 0)
        return weft_fail(error, WEFT_USAGE,
                         "there is no checkpoint in %.300s: no %s, and no directories such as "
                         "step_00001000; name a run's directory, or one of its steps",
                         path, WEFT_MANIFEST_NAME);
    WEFT_TRY(weft_step_path(found, directory, step, error));
    return weft_stored_open_step(found, stored, error);
}

/* ---- look ------------------------------------------------------------------------------------ */

const char *weft_stored_path(const weft_stored *stored)
{
    return stored != NULL ? stored->path : "";
}

void weft_stored_state(const weft_stored *stored, weft_checkpoint_state *state)
{
    if (state == NULL) return;
    *state = stored != NULL ? stored->manifest->state : (weft_checkpoint_state){0};
}

const char *weft_stored_data(const weft_stored *stored)
{
    return stored != NULL ? stored->manifest->data : "";
}

const char *weft_stored_held_out(const weft_stored *stored)
{
    return stored != NULL ? stored->manifest->held_out : "";
}

const char *weft_stored_mesh(const weft_stored *stored)
{
    return stored != NULL ? stored->manifest->mesh : "";
}

const char *weft_stored_program(const weft_stored *stored)
{
    return stored != NULL ? stored->manifest->program : "";
}

const char *weft_stored_library(const weft_stored *stored)
{
    return stored != NULL ? stored->manifest->library : "";
}

const char *weft_stored_layout(const weft_stored *stored)
{
    return stored != NULL ? stored->manifest->layout : "";
}

int weft_stored_n_tensors(const weft_stored *stored)
{
    return stored != NULL ? stored->manifest->n_entries : 0;
}

const weft_stored_tensor *weft_stored_tensor_at(const weft_stored *stored, int index)
{
    if (index < 0 || index >= weft_stored_n_tensors(stored)) return NULL;
    return &stored->manifest->entries[index].tensor;
}

/* ---- read and verify ------------------------------------------------------------------------- */

static weft_status check_block(const weft_entry *entry, int64_t block, const char *path,
                               const weft_hash *hash, weft_error *error)
{
    const int64_t bytes = weft_block_bytes(entry, block),
                  at = entry->tensor.offset + block * WEFT_BLOCK_BYTES;
    if (weft_hash_equal(hash, &entry->blocks[block])) return WEFT_OK;
    return weft_fail(error, WEFT_CORRUPT,
                     "%.200s is damaged: tensor %.80s, block %lld of %lld, bytes %lld to %lld of "
                     "the file are not what was written; use another checkpoint",
                     path, entry->tensor.name, (long long)block, (long long)entry->n_blocks,
                     (long long)at, (long long)(at + bytes));
}

weft_status weft_stored_stretches(const weft_stored *stored, const weft_entry *entry, int64_t block,
                                  char *buffer, weft_stretch body, const void *argument,
                                  weft_error *error)
{
    char path[WEFT_PATH_BYTES];
    weft_hashing hashing;
    const int64_t begin = block * WEFT_BLOCK_BYTES, end = begin + weft_block_bytes(entry, block);
    WEFT_TRY(weft_path(path, error, "%s/%s", stored->path, entry->tensor.file));
    weft_hash_begin(&hashing);
    for (int64_t at = begin, n; at < end; at += n) {
        n = end - at < WEFT_STRETCH_BYTES ? end - at : WEFT_STRETCH_BYTES;
        char *to = body ? buffer : buffer + (at - begin);
        WEFT_TRY(weft_bytes_read(stored->files[entry->file], path, to, n, entry->tensor.offset + at,
                                 error));
        weft_hash_add(&hashing, to, (size_t)n);
        if (body) body(argument, to, at, at + n);
    }
    const weft_hash hash = weft_hash_end(&hashing);
    return check_block(entry, block, path, &hash, error);
}

weft_status weft_stored_block(const weft_stored *stored, const weft_entry *entry, int64_t block,
                              void *buffer, weft_error *error)
{
    return weft_stored_stretches(stored, entry, block, buffer, NULL, NULL, error);
}

static void ignore(const void *argument, const char *bytes, int64_t begin, int64_t end)
{
    (void)argument, (void)bytes, (void)begin, (void)end;
}

typedef struct reading {
    const weft_stored *stored;
    const weft_entry *entry;
    char *buffer;
} reading;

static weft_status read_block(void *argument, int64_t block, void *scratch, weft_error *error)
{
    const reading *r = argument;
    (void)scratch;
    return weft_stored_block(r->stored, r->entry, block, r->buffer + block * WEFT_BLOCK_BYTES,
                             error);
}

weft_status weft_stored_read(const weft_stored *stored, int index, void *buffer, weft_error *error)
{
    WEFT_GIVEN(stored, error);
    WEFT_GIVEN(buffer, error);
    const weft_manifest *manifest = stored->manifest;
    if (index < 0 || index >= manifest->n_entries)
        return weft_fail(error, WEFT_USAGE, "tensor %d of %s, which has %d", index, stored->path,
                         manifest->n_entries);
    reading r = {stored, &manifest->entries[index], buffer};
    return weft_work(weft_work_threads(NULL), r.entry->n_blocks, 0, read_block, &r, error);
}

/* Add bytes [begin, end) of a file to a hash. */
static weft_status hash_gap(weft_hashing *hashing, int file, const char *path, int64_t begin,
                            int64_t end, weft_error *error)
{
    char buffer[16384];
    for (int64_t at = begin, n; at < end; at += n) {
        n = end - at < (int64_t)sizeof buffer ? end - at : (int64_t)sizeof buffer;
        WEFT_TRY(weft_bytes_read(file, path, buffer, n, at, error));
        weft_hash_add(hashing, buffer, (size_t)n);
    }
    return WEFT_OK;
}

weft_status weft_structure_hash(const weft_manifest *manifest, int file, int descriptor,
                                const char *path, weft_hash *hash, weft_error *error)
{
    weft_hashing hashing;
    int64_t at = 0;
    weft_hash_begin(&hashing);
    for (int i = 0; i < manifest->n_entries; i++) {
        const weft_entry *entry = &manifest->entries[manifest->by_place[i]];
        if (entry->file != file) continue;
        WEFT_TRY(hash_gap(&hashing, descriptor, path, at, entry->tensor.offset, error));
        at = entry->tensor.offset + entry->tensor.bytes;
    }
    WEFT_TRY(hash_gap(&hashing, descriptor, path, at, manifest->files[file].bytes, error));
    *hash = weft_hash_end(&hashing);
    return WEFT_OK;
}

weft_status weft_stored_check_structure(const weft_stored *stored, weft_error *error)
{
    for (int i = 0; i < stored->manifest->n_files; i++) {
        char path[WEFT_PATH_BYTES];
        weft_hash hash;
        const weft_data_file *file = &stored->manifest->files[i];
        WEFT_TRY(weft_path(path, error, "%s/%s", stored->path, file->name));
        WEFT_TRY(weft_structure_hash(stored->manifest, i, stored->files[i], path, &hash, error));
        if (!weft_hash_equal(&hash, &file->structure))
            return weft_fail(error, WEFT_CORRUPT,
                             "%.300s is damaged: the bytes between its tensors, which HDF5 reads, "
                             "are not what was written; use another checkpoint",
                             path);
    }
    return WEFT_OK;
}

/* Blocks as they lie in the files, so that the disk is read in order. */
static weft_status verify_block(void *argument, int64_t number, void *scratch, weft_error *error)
{
    const weft_stored *stored = argument;
    const weft_manifest *m = stored->manifest;
    int64_t block = number;
    int i = 0;
    for (; block >= m->entries[m->by_place[i]].n_blocks; i++)
        block -= m->entries[m->by_place[i]].n_blocks;
    return weft_stored_stretches(stored, &m->entries[m->by_place[i]], block, scratch, ignore, NULL,
                                 error);
}

weft_status weft_stored_verify(const weft_stored *stored, weft_error *error)
{
    int64_t n_blocks = 0;
    WEFT_GIVEN(stored, error);
    for (int i = 0; i < stored->manifest->n_entries; i++)
        n_blocks += stored->manifest->entries[i].n_blocks;
    WEFT_TRY(weft_stored_check_structure(stored, error));
    return weft_work(weft_work_threads(NULL), n_blocks, WEFT_STRETCH_BYTES, verify_block,
                     (void *)(uintptr_t)stored, error);
}
