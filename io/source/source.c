/* source: a file that records are read from: opened, decompressed where it is compressed, and never another than it was.
 *
 * zlib reads gzip and is always there. weft-read-files, a process apart, reads other compressions. The decompressed bytes lie in a file without a name: any
 * of them can be read without those before, and the file goes with the process.
 */
#include "source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "../apart/apart.h"
#include "../dataset.h"
#include "sync.h"

static const struct compression {
    const char *name, *ending, *magic;
    size_t n;
} compressions[] = {
    {"gzip", ".gz", "\x1f\x8b", 2},         {"zstd", ".zst", "\x28\xb5\x2f\xfd", 4},
    {"xz", ".xz", "\xfd\x37zXZ\0", 6},      {"bzip2", ".bz2", "BZh", 3},
    {"lz4", ".lz4", "\x04\x22\x4d\x18", 4},
};
enum { N_COMPRESSIONS = sizeof compressions / sizeof *compressions, CHUNK = 1 << 16 };

weft_status weft_source_fail(const weft_source *source, weft_error *error, const char *format, ...)
{
    char text[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    for (char *c = text; *c != '\0'; c++) /* what the file has may be anything */
        if ((unsigned char)*c < ' ' || *c == 0x7F) *c = *c == '\n' ? ' ' : '?';
    return weft_fail(error, WEFT_USAGE, "%.200s: %s", source->path, text);
}

/* ---- decompressing ----------------------------------------------------------------------------- */

/* A file without a name. */
static weft_status open_nameless(const char *path, int *file, weft_error *error)
{
    const char *said = getenv("TMPDIR"), *folder = said != NULL && *said ? said : "/tmp";
    char name[4000];
    *file = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (*file >= 0) return WEFT_OK;
    snprintf(name, sizeof name, "%s/weft-XXXXXX", folder);
    *file = mkostemp(name, O_CLOEXEC); /* a file system that knows no nameless files */
    if (*file >= 0 && unlink(name) == 0) return WEFT_OK;
    return weft_fail(error, WEFT_IO,
                     "%.160s is compressed, and there can be no file in %.100s to decompress it "
                     "into: %s; set TMPDIR to a folder with room",
                     path, folder, strerror(errno));
}

static weft_status write_all(const char *path, int to, const char *from, size_t n,
                             weft_error *error)
{
    while (n > 0) {
        const ssize_t written = write(to, from, n);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0)
            return weft_fail(error, WEFT_IO,
                             "%.160s cannot be decompressed in TMPDIR (%.80s): %s; set TMPDIR to a "
                             "folder with room",
                             path, getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", strerror(errno));
        from += written;
        n -= (size_t)written;
    }
    return WEFT_OK;
}

static weft_status gunzip(const char *path, gzFile from, int to, weft_error *error)
{
    char chunk[CHUNK];
    int64_t done = 0;
    int n, code = Z_OK;
    while ((n = gzread(from, chunk, sizeof chunk)) > 0) {
        WEFT_TRY(write_all(path, to, chunk, (size_t)n, error));
        done += n;
    }
    const char *why = gzerror(from, &code);
    if (n == 0 && (code == Z_OK || code == Z_STREAM_END)) return WEFT_OK;
    if (code == Z_MEM_ERROR) return weft_fail_memory(error, CHUNK);
    return weft_fail(error, WEFT_USAGE,
                     "%.240s breaks off after %lld decompressed bytes (%.80s); get it again", path,
                     (long long)done, code == Z_ERRNO ? strerror(errno) : why);
}

static weft_status expand_gzip(const char *path, int from, int to, weft_error *error)
{
    const int copy = fcntl(from, F_DUPFD_CLOEXEC, 0);
    gzFile stream = copy >= 0 ? gzdopen(copy, "rb") : NULL;
    if (stream == NULL) {
        if (copy >= 0) close(copy);
        return weft_fail_memory(error, CHUNK);
    }
    const weft_status status = gunzip(path, stream, to, error);
    gzclose(stream);
    return status;
}

typedef struct target {
    const char *path;
    int file;
} target;

static weft_status write_there(const void *argument, const char *bytes, size_t n, weft_error *error)
{
    const target *t = argument;
    return write_all(t->path, t->file, bytes, n, error);
}

static weft_status expand_other(const struct compression *how, const char *path, int from, int to,
                                weft_error *error)
{
    const target there = {path, to};
    char need[40];
    snprintf(need, sizeof need, "compressed by %s", how->name);
    return weft_apart_expand(path, need, from, write_there, &there, error);
}

static const struct compression *compression_of(const unsigned char *head, size_t n)
{
    for (size_t i = 0; i < N_COMPRESSIONS; i++)
        if (n >= compressions[i].n && memcmp(head, compressions[i].magic, compressions[i].n) == 0)
            return &compressions[i];
    return NULL;
}

static weft_status decompress(weft_source *source, const struct compression *how, weft_error *error)
{
    const char *path = source->path;
    int to;
    WEFT_TRY(open_nameless(path, &to, error));
    weft_status status = lseek(source->file, 0, SEEK_SET) != 0
                             ? weft_fail(error, WEFT_IO, "cannot read %.300s", path)
                         : how == &compressions[0]
                             ? expand_gzip(path, source->file, to, error)
                             : expand_other(how, path, source->file, to, error);
    close(source->file);
    source->file = to;
    source->is_own = true;
    if (status == WEFT_OK) source->bytes = lseek(to, 0, SEEK_END);
    return status;
}

weft_status weft_source_nameless(weft_source *source, weft_error *error)
{
    source->is_own = true;
    return open_nameless(source->path, &source->file, error);
}

weft_status weft_source_write(const weft_source *source, const char *from, size_t n,
                              weft_error *error)
{
    return write_all(source->path, source->file, from, n, error);
}

/* ---- opening ------------------------------------------------------------------------------------ */

/* The last ending of a name, in small letters; without that of a compression: "a.csv.gz" gives ".csv", "a.tgz" ".tgz". */
static void ending_of(const char *path, const struct compression *how, char ending[16])
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t n = strlen(name);
    if (how != NULL && n > strlen(how->ending) &&
        strcasecmp(name + n - strlen(how->ending), how->ending) == 0)
        n -= strlen(how->ending);
    size_t at = n;
    while (at > 0 && name[at - 1] != '.')
        at--;
    ending[0] = '\0';
    if (at == 0 || n - at + 2 > 16) return;
    for (size_t i = at - 1; i <= n; i++)
        ending[i - (at - 1)] = i == n                             ? '\0'
                               : name[i] >= 'A' && name[i] <= 'Z' ? (char)(name[i] + 32)
                                                                  : name[i];
}

static weft_status look(weft_source *source, const struct compression **how, weft_error *error)
{
    unsigned char head[8];
    struct stat facts;
    const int64_t n = source->bytes < 8 ? source->bytes : 8;
    WEFT_TRY(weft_file_read(source->file, source->path, head, n, 0, error));
    if (fstat(source->file, &facts) == 0) source->changed = facts.st_mtim;
    *how = compression_of(head, (size_t)n);
    return WEFT_OK;
}

static weft_status open_look(weft_source *source, const char *path, char ending[16],
                             const struct compression **how, weft_error *error)
{
    static _Atomic uint64_t numbers;
    *how = NULL;
    *source = (weft_source){.path = path, .file = -1};
    source->number = weft_sync_add(&numbers, 1) + 1;
    WEFT_TRY(weft_file_open(path, &source->file, &source->bytes, error));
    const weft_status status = look(source, how, error);
    ending_of(path, *how, ending);
    if (status != WEFT_OK) weft_source_close(source);
    return status;
}

weft_status weft_source_look(weft_source *source, const char *path, char ending[16],
                             bool *is_compressed, weft_error *error)
{
    const struct compression *how;
    const weft_status status = open_look(source, path, ending, &how, error);
    *is_compressed = how != NULL;
    return status;
}

weft_status weft_source_open(weft_source *source, const char *path, bool is_kept, char ending[16],
                             weft_error *error)
{
    const struct compression *how;
    WEFT_TRY(open_look(source, path, ending, &how, error));
    const weft_status status = how != NULL ? decompress(source, how, error) : WEFT_OK;
    if (status != WEFT_OK || (!is_kept && !source->is_own)) weft_source_close(source);
    return status;
}

void weft_source_close(weft_source *source)
{
    if (source->file >= 0) close(source->file);
    source->file = -1;
}

/* ---- reading ------------------------------------------------------------------------------------- */

static weft_status check_unchanged(const weft_source *source, int file, weft_error *error)
{
    struct stat now;
    if (source->is_own || fstat(file, &now) != 0) return WEFT_OK;
    if (now.st_size == source->bytes && now.st_mtim.tv_sec == source->changed.tv_sec &&
        now.st_mtim.tv_nsec == source->changed.tv_nsec)
        return WEFT_OK;
    return weft_fail(error, WEFT_IO,
                     "%.240s was changed while it is read: it had %lld bytes when it was opened "
                     "and has %lld; do not change data while it is read",
                     source->path, (long long)source->bytes, (long long)now.st_size);
}

weft_status weft_source_check(const weft_source *source, weft_error *error)
{
    return source->file >= 0 ? check_unchanged(source, source->file, error) : WEFT_OK;
}

static weft_status read_open(const weft_source *source, int file, void *to, int64_t n, int64_t at,
                             weft_error *error)
{
    WEFT_TRY(check_unchanged(source, file, error));
    return weft_file_read(file, source->path, to, n, at, error);
}

weft_status weft_source_read(const weft_source *source, void *to, int64_t n, int64_t at,
                             weft_error *error)
{
    int64_t bytes;
    int file;
    if (at < 0 || n < 0 || at > source->bytes || n > source->bytes - at)
        return weft_source_fail(source, error,
                                "it is cut off: bytes %lld to %lld are needed, and it has %lld; "
                                "get it again",
                                (long long)at, (long long)at + n, (long long)source->bytes);
    if (source->file >= 0) return read_open(source, source->file, to, n, at, error);
    WEFT_TRY(weft_file_open(source->path, &file, &bytes, error));
    const weft_status status = read_open(source, file, to, n, at, error);
    close(file);
    return status;
}

weft_status weft_source_read_unchecked(const weft_source *source, void *to, int64_t n, int64_t at,
                                       weft_error *error)
{
    if (source->file < 0) return weft_source_read(source, to, n, at, error);
    return weft_file_read(source->file, source->path, to, n, at, error);
}

weft_status weft_source_take(const weft_source *source, char **to, int64_t n, int64_t at,
                             weft_error *error)
{
    *to = NULL;
    if (n > WEFT_SOURCE_LONGEST)
        return weft_source_fail(source, error,
                                "%lld bytes from byte %lld on belong together, and at most 2^30 "
                                "can; it is damaged, or not for training",
                                (long long)n, (long long)at);
    if (n < 0 || at < 0 || at > source->bytes || n > source->bytes - at)
        return weft_source_read(source, NULL, n, at, error); /* which says so */
    *to = malloc((size_t)n + 1);
    if (*to == NULL) return weft_fail_memory(error, (size_t)n + 1);
    const weft_status status = weft_source_read(source, *to, n, at, error);
    if (status == WEFT_OK)
        (*to)[n] = '\0';
    else
        free(*to), *to = NULL;
    return status;
}
