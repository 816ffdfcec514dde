/* kept: index files on the disk, and the threads that share the work of making one. */
#include "kept.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "checkpoint/files.h"
#include "sync.h"

static const char magic[16] = "weft index 1";

typedef struct head {
    char magic[sizeof magic];
    weft_hash key, hash; /* of what is decided by, and of the bytes behind */
    uint64_t bytes;
} head;

static weft_status name_of(const char *folder, const char *kind, const weft_hash *key, char *path,
                           weft_error *error)
{
    char digits[WEFT_HASH_DIGITS + 1];
    weft_hash_print(key, digits);
    return weft_path(path, error, "%s/%s.%s", folder, digits, kind);
}

/* All of a file, where it is what it says. */
static bool read_whole(int file, const char *path, int64_t size, const weft_hash *key, void **bytes,
                       size_t *n)
{
    head h;
    weft_error ignored = {.rank = -1};
    if (size < (int64_t)sizeof h ||
        weft_bytes_read(file, path, &h, sizeof h, 0, &ignored) != WEFT_OK)
        return false;
    if (memcmp(h.magic, magic, sizeof magic) != 0 || !weft_hash_equal(&h.key, key) ||
        h.bytes != (uint64_t)size - sizeof h)
        return false;
    *n = (size_t)h.bytes;
    *bytes = malloc(*n > 0 ? *n : 1);
    if (*bytes == NULL) return false;
    if (weft_bytes_read(file, path, *bytes, (int64_t)*n, sizeof h, &ignored) != WEFT_OK)
        return false;
    const weft_hash hash = weft_hash_of(*bytes, *n);
    return weft_hash_equal(&hash, &h.hash);
}

weft_status weft_kept_load(const char *folder, const char *kind, const weft_hash *key, void **bytes,
                           size_t *n, weft_error *error)
{
    char path[WEFT_PATH_BYTES];
    weft_error ignored = {.rank = -1};
    int64_t size;
    int file;
    *bytes = NULL, *n = 0;
    WEFT_TRY(name_of(folder, kind, key, path, error));
    if (weft_stored_file_open(path, &file, &size, &ignored) != WEFT_OK) return WEFT_OK;
    if (!read_whole(file, path, size, key, bytes, n)) free(*bytes), *bytes = NULL;
    close(file);
    return WEFT_OK;
}

/* Under a name that no other process writes, and then under its own. */
static weft_status put(const char *folder, const char *path, const void *bytes, size_t n,
                       weft_error *error)
{
    char name[40], made[WEFT_PATH_BYTES];
    uint64_t drawn = 0;
    if (getrandom(&drawn, sizeof drawn, 0) != sizeof drawn) drawn = (uint64_t)getpid();
    snprintf(name, sizeof name, "new.%016llx", (unsigned long long)drawn);
    WEFT_TRY(weft_path(made, error, "%s/%s", folder, name));
    weft_status status = weft_file_put(folder, name, bytes, n, error);
    if (status == WEFT_OK && rename(made, path) == 0) return weft_directory_sync(folder, error);
    if (status == WEFT_OK) status = weft_fail_io(error, "rename to", path, 0);
    unlink(made);
    return status;
}

weft_status weft_kept_store(const char *folder, const char *kind, const weft_hash *key,
                            const void *bytes, size_t n, weft_error *error)
{
    char path[WEFT_PATH_BYTES];
    head h = {.key = *key, .hash = weft_hash_of(bytes, n), .bytes = n};
    memcpy(h.magic, magic, sizeof magic);
    WEFT_TRY(name_of(folder, kind, key, path, error));
    WEFT_TRY(weft_directory_make(folder, error));
    char *all = malloc(sizeof h + n);
    if (all == NULL) return weft_fail_memory(error, sizeof h + n);
    memcpy(all, &h, sizeof h);
    memcpy(all + sizeof h, bytes, n);
    const weft_status status = put(folder, path, all, sizeof h + n, error);
    free(all);
    return status;
}

/* ---- threads --------------------------------------------------------------------------------------- */

typedef struct work {
    weft_part_function function;
    void *argument;
    int64_t n;
    _Atomic int64_t next;
    _Atomic int64_t failed; /* the first part that failed; n: none has */
    pthread_mutex_t lock;   /* over error */
    weft_error *error;
} work;

/* Parts before one that failed are still done: they may fail too, and the first is told. */
static void *do_parts(void *argument)
{
    work *w = argument;
    for (int64_t part; (part = weft_sync_add(&w->next, 1)) < w->n;) {
        weft_error error = {.rank = -1};
        if (part > weft_sync_load(&w->failed)) break;
        if (w->function(w->argument, part, &error) == WEFT_OK) continue;
        weft_lock_take(&w->lock);
        if (part < weft_sync_load(&w->failed)) {
            weft_sync_store(&w->failed, part);
            *w->error = error;
        }
        weft_lock_give(&w->lock);
    }
    return NULL;
}

weft_status weft_parts_do(int64_t n_parts, int n_threads, weft_part_function function,
                          void *argument, weft_error *error)
{
    enum { MOST = 64 };
    pthread_t threads[MOST];
    int n = 0;
    work w = {.function = function, .argument = argument, .n = n_parts, .error = error};
    w.failed = n_parts;
    pthread_mutex_init(&w.lock, NULL);
    while (n + 1 < n_threads && n + 1 < n_parts && n < MOST &&
           weft_thread_start(&threads[n], do_parts, &w) == 0)
        n++;
    do_parts(&w); /* this thread too: with it alone, if no other can be had */
    while (n > 0)
        weft_thread_join(threads[--n]);
    pthread_mutex_destroy(&w.lock);
    return weft_sync_load(&w.failed) < n_parts ? error->status : WEFT_OK;
}
