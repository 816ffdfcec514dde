/* cache: see cache.h. A file: a header, the key, the image. */
#include "cache.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_ROOM = 4096, MOST_BYTES = 64 << 20 };

typedef struct header {
    char magic[8];
    uint64_t key_bytes, image_bytes, hash; /* of key and image */
} header;
static const char magic[8] = "weftknl1";

uint64_t cuda_hash(uint64_t hash, const void *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ ((const unsigned char *)data)[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* ---- where ----------------------------------------------------------------------------------- */

static bool is_said(const char *text)
{
    return text != NULL && text[0] == '/';
}

/* Folders above it are made too, for this user alone. */
static bool make_folder(char *path)
{
    for (char *at = path + 1; *at != '\0'; at++) {
        if (*at != '/') continue;
        *at = '\0';
        (void)mkdir(path, 0700);
        *at = '/';
    }
    return mkdir(path, 0700) == 0 || access(path, R_OK | X_OK) == 0;
}

static bool find_path(const char *key, char path[PATH_ROOM])
{
    static const struct {
        const char *variable, *below;
    } places[] = {{"XDG_CACHE_HOME", "/weft"}, {"HOME", "/.cache/weft"}};
    const uint64_t hash = cuda_hash(CUDA_HASH_BEGIN, key, strlen(key));
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const char *said = getenv(places[i].variable);
        if (!is_said(said)) continue;
        const int n = snprintf(path, PATH_ROOM, "%s%s", said, places[i].below);
        if (n < 0 || n > PATH_ROOM - 100 || !make_folder(path)) return false;
        snprintf(path + n, 100, "/%016llx.kernel", (unsigned long long)hash);
        return true;
    }
    return false;
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool read_all(int file, void *to, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        const ssize_t n = read(file, (char *)to + done, bytes - done);
        if (n <= 0) return false;
        done += (size_t)n;
    }
    return true;
}

/* What somebody else could have written is not run. */
static bool is_ours(int file, const header *h)
{
    struct stat facts;
    return fstat(file, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_uid == geteuid() &&
           (facts.st_mode & (S_IWGRP | S_IWOTH)) == 0 &&
           (uint64_t)facts.st_size == sizeof *h + h->key_bytes + h->image_bytes;
}

static bool read_file(int file, const char *key, void **image, size_t *bytes)
{
    header h;
    const size_t key_bytes = strlen(key);
    if (!read_all(file, &h, sizeof h) || memcmp(h.magic, magic, sizeof magic) != 0 ||
        h.key_bytes != key_bytes || h.image_bytes > MOST_BYTES || !is_ours(file, &h))
        return false;
    char *all = malloc(key_bytes + (size_t)h.image_bytes + 1);
    bool is_good = all != NULL && read_all(file, all, key_bytes + (size_t)h.image_bytes) &&
                   memcmp(all, key, key_bytes) == 0 &&
                   cuda_hash(CUDA_HASH_BEGIN, all, key_bytes + (size_t)h.image_bytes) == h.hash;
    *image = is_good ? malloc((size_t)h.image_bytes + 1) : NULL;
    if (*image != NULL) memcpy(*image, all + key_bytes, (size_t)h.image_bytes);
    *bytes = (size_t)h.image_bytes;
    free(all);
    return *image != NULL;
}

bool cuda_cache_read(const char *key, void **image, size_t *bytes)
{
    char path[PATH_ROOM];
    if (!find_path(key, path)) return false;
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0) return false;
    const bool is_there = read_file(file, key, image, bytes);
    close(file);
    return is_there;
}

/* ---- writing --------------------------------------------------------------------------------- */

static bool write_all(int file, const void *from, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        const ssize_t n = write(file, (const char *)from + done, bytes - done);
        if (n <= 0) return false;
        done += (size_t)n;
    }
    return true;
}

void cuda_cache_write(const char *key, const void *image, size_t bytes)
{
    static atomic_int n_written;
    char path[PATH_ROOM], beside[PATH_ROOM + 40];
    if (!find_path(key, path)) return;
    header h = {.key_bytes = strlen(key), .image_bytes = bytes};
    memcpy(h.magic, magic, sizeof magic);
    h.hash = cuda_hash(cuda_hash(CUDA_HASH_BEGIN, key, strlen(key)), image, bytes);
    snprintf(beside, sizeof beside, "%s.%ld.%d", path, (long)getpid(), n_written++);
    const int file = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0) return;
    const bool is_whole = write_all(file, &h, sizeof h) &&
                          write_all(file, key, (size_t)h.key_bytes) &&
                          write_all(file, image, bytes);
    if (close(file) != 0 || !is_whole || rename(beside, path) != 0) (void)unlink(beside);
}
