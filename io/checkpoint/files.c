/* files: directories and files that must be on the disk, not only on their way to it. */
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

weft_status weft_path(char *path, weft_error *error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(path, WEFT_PATH_BYTES, format, arguments);
    va_end(arguments);
    if (length >= 0 && length < WEFT_PATH_BYTES) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "the path %.200s... has %d bytes, more than the %d a path may have; use a "
                     "shorter one",
                     path, length, WEFT_PATH_BYTES - 1);
}

/* "; 140 bytes are wanted, 0 are free ...", when room is what is missing: of bytes or of files. */
static void tell_room(const char *path, int64_t wanted, char *text, size_t bytes)
{
    char part[WEFT_PATH_BYTES], wish[64] = "";
    struct statvfs space;
    *text = 0;
    snprintf(part, sizeof part, "%s", path);
    while (statvfs(part, &space) != 0) { /* of what is there of the path */
        char *slash = strrchr(part, '/');
        if (slash == NULL || slash == part) return;
        *slash = 0;
    }
    if (wanted > 0) snprintf(wish, sizeof wish, "%lld bytes are wanted, ", (long long)wanted);
    snprintf(text, bytes,
             "; %s%lld bytes and %lld files are free: make room there, or name another place", wish,
             (long long)space.f_bavail * (long long)space.f_frsize, (long long)space.f_favail);
}

weft_status weft_fail_io(weft_error *error, const char *verb, const char *path, int64_t wanted)
{
    const int reason = errno;
    char room[160] = "";
    if (reason == ENOSPC || reason == EDQUOT) tell_room(path, wanted, room, sizeof room);
    return weft_fail(error, reason == ENOMEM ? WEFT_MEMORY : WEFT_IO, "cannot %s %.240s: %s%s",
                     verb, path, strerror(reason), room);
}

static weft_status make_one(const char *path, weft_error *error)
{
    struct stat facts;
    if (mkdir(path, 0777) == 0) return WEFT_OK;
    if (errno != EEXIST) return weft_fail_io(error, "make the directory", path, 0);
    if (stat(path, &facts) == 0 && S_ISDIR(facts.st_mode)) return WEFT_OK;
    return weft_fail(error, WEFT_IO,
                     "%.300s is in the way: it is no directory; move it, or name another place",
                     path);
}

weft_status weft_directory_make(const char *path, weft_error *error)
{
    char part[WEFT_PATH_BYTES];
    WEFT_TRY(weft_path(part, error, "%s", path));
    for (char *slash = strchr(part + 1, '/'); slash && part[0]; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        if (!weft_path_exists(part)) WEFT_TRY(make_one(part, error));
        *slash = '/';
    }
    return make_one(part, error);
}

/* Directories above that may not be read cannot have been made by us; those of another file system
 * are not ours to wait for. */
weft_status weft_directory_anchor(const char *path, weft_error *error)
{
    char part[WEFT_PATH_BYTES];
    struct stat own, above;
    if (realpath(path, part) == NULL || stat(part, &own) != 0)
        return weft_fail_io(error, "find the directory", path, 0);
    for (char *slash; (slash = strrchr(part, '/')) != NULL && slash[1];) {
        slash[slash == part] = 0;
        if (stat(part, &above) != 0 || above.st_dev != own.st_dev || access(part, R_OK) != 0)
            return WEFT_OK;
        WEFT_TRY(weft_directory_sync(part, error));
    }
    return WEFT_OK;
}

weft_status weft_directory_sync(const char *path, weft_error *error)
{
    const int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0) return weft_fail_io(error, "open the directory", path, 0);
    /* Some network file systems cannot sync a directory and say EINVAL: their names are
     * synchronous. */
    const bool is_synced = fsync(directory) == 0 || errno == EINVAL;
    const weft_status status =
        is_synced ? WEFT_OK : weft_fail_io(error, "sync the directory", path, 0);
    close(directory);
    return status;
}

static int remove_one(const char *path, const struct stat *facts, int kind, struct FTW *place)
{
    (void)facts, (void)kind, (void)place;
    return remove(path);
}

weft_status weft_directory_remove(const char *path, weft_error *error)
{
    enum { DESCRIPTORS = 8 };
    if (nftw(path, remove_one, DESCRIPTORS, FTW_DEPTH | FTW_PHYS) == 0 || errno == ENOENT)
        return WEFT_OK;
    return weft_fail_io(error, "remove", path, 0);
}

bool weft_path_exists(const char *path)
{
    struct stat facts;
    return lstat(path, &facts) == 0;
}

weft_status weft_bytes_write(int file, const char *path, const void *from, int64_t bytes,
                             int64_t at, weft_error *error)
{
    enum { MOST = 1 << 30 };
    const char *next = from;
    while (bytes > 0) {
        const ssize_t n = pwrite(file, next, bytes < MOST ? (size_t)bytes : MOST, at);
        if (n < 0 && errno == EINTR) continue;
        if (n == 0) errno = ENOSPC;
        if (n <= 0) return weft_fail_io(error, "write", path, bytes);
        next += n;
        bytes -= n;
        at += n;
    }
    return WEFT_OK;
}

/* What a checkpoint is given up for: bytes or names that are gone. All else (no memory, no
 * permission, a server that is away) may pass, and says nothing about the bytes. */
static weft_status status_of_read(int reason)
{
    static const int gone[] = {ENOENT, ELOOP, ENOTDIR, EISDIR, ENXIO, EIO, EUCLEAN, ENODATA};
    for (size_t i = 0; i < sizeof gone / sizeof *gone; i++)
        if (reason == gone[i]) return WEFT_CORRUPT;
    return reason == ENOMEM ? WEFT_MEMORY : WEFT_IO;
}

weft_status weft_bytes_read(int file, const char *path, void *to, int64_t bytes, int64_t at,
                            weft_error *error)
{
    char *next = to;
    while (bytes > 0) {
        const ssize_t n = pread(file, next, (size_t)bytes, at);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0)
            return weft_fail(error, status_of_read(errno), "cannot read %.300s at byte %lld: %s",
                             path, (long long)at, strerror(errno));
        if (n == 0)
            return weft_fail(error, WEFT_CORRUPT, "%.300s ends at byte %lld, %lld too early", path,
                             (long long)at, (long long)bytes);
        next += n;
        bytes -= n;
        at += n;
    }
    return WEFT_OK;
}

weft_status weft_file_sync(int file, const char *path, weft_error *error)
{
    return fsync(file) == 0 ? WEFT_OK : weft_fail_io(error, "sync", path, 0);
}

weft_status weft_stored_file_open(const char *path, int *file, int64_t *bytes, weft_error *error)
{
    struct stat facts;
    *file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (*file < 0)
        return weft_fail(error, status_of_read(errno), "cannot open %.300s: %s", path,
                         errno == ELOOP ? "it is a link, and a checkpoint has none"
                                        : strerror(errno));
    if (fstat(*file, &facts) == 0 && S_ISREG(facts.st_mode)) {
        *bytes = facts.st_size;
        return WEFT_OK;
    }
    close(*file);
    *file = -1;
    return weft_fail(error, WEFT_CORRUPT, "%.300s is not a regular file", path);
}

static weft_status write_new(const char *path, const char *text, size_t bytes, weft_error *error)
{
    const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0) return weft_fail_io(error, "make", path, 0);
    weft_status status = weft_bytes_write(file, path, text, (int64_t)bytes, 0, error);
    if (status == WEFT_OK) status = weft_file_sync(file, path, error);
    if (close(file) != 0 && status == WEFT_OK) status = weft_fail_io(error, "close", path, 0);
    return status;
}

weft_status weft_file_put(const char *directory, const char *name, const char *text, size_t bytes,
                          weft_error *error)
{
    char path[WEFT_PATH_BYTES], temporary[WEFT_PATH_BYTES];
    WEFT_TRY(weft_path(path, error, "%s/%s", directory, name));
    WEFT_TRY(weft_path(temporary, error, "%s/%s.tmp", directory, name));
    weft_status status = write_new(temporary, text, bytes, error);
    if (status == WEFT_OK && rename(temporary, path) != 0)
        status = weft_fail_io(error, "rename to", path, 0);
    if (status == WEFT_OK) return weft_directory_sync(directory, error);
    unlink(temporary);
    return status;
}
