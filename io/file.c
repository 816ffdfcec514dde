/* file: opening and reading the files of datasets, with a sentence for everything that can go
 * wrong. */
#include "dataset.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The first part of a path that is not there: where it ends, and where its name begins. */
static void find_missing(const char *path, int *begin, int *end)
{
    char part[4096];
    *begin = 0;
    for (*end = (int)strcspn(path, "/"); path[*end] != '\0';) {
        snprintf(part, sizeof part, "%.*s", *end > 0 ? *end : 1, path);
        if (access(part, F_OK) != 0) return;
        *begin = *end + 1;
        *end = *begin + (int)strcspn(path + *begin, "/");
    }
}

/* Of the names beside the one that is not there the nearest: ", as book.txt"; nothing where none is near. */
static void find_nearest(const char *path, char *text, size_t bytes)
{
    enum { MOST = 1000 };
    char folder[4096], own[256], *names[MOST];
    int n = 0, begin, end;
    find_missing(path, &begin, &end);
    snprintf(folder, sizeof folder, "%.*s", begin > 0 ? begin : 1, begin > 0 ? path : ".");
    snprintf(own, sizeof own, "%.*s", end - begin, path + begin);
    DIR *listing = opendir(folder);
    struct dirent *entry;
    while (listing != NULL && n < MOST && (entry = readdir(listing)) != NULL)
        if (entry->d_name[0] != '.' && (names[n] = strdup(entry->d_name)) != NULL) n++;
    if (listing != NULL) closedir(listing);
    const char *near = weft_nearest(own, (const char *const *)names, n);
    if (near != NULL) snprintf(text, bytes, ", as %.120s", near);
    while (n > 0)
        free(names[--n]);
}

weft_status weft_file_open(const char *path, int *file, int64_t *bytes, weft_error *error)
{
    struct stat facts;
    *file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a named pipe must not block us here */
    if (*file < 0) {
        char near[160] = "";
        const int why = errno;
        if (why == ENOENT) find_nearest(path, near, sizeof near);
        return weft_fail(
            error, WEFT_IO,
            "cannot open data file %.240s: %s; name one that is there and may be read%s", path,
            strerror(why), near);
    }
    if (fstat(*file, &facts) == 0 && S_ISREG(facts.st_mode)) {
        *bytes = facts.st_size;
        return WEFT_OK;
    }
    close(*file);
    *file = -1;
    return weft_fail(error, WEFT_IO, "data file %s is not a regular file; name a file, not a %s",
                     path, S_ISDIR(facts.st_mode) ? "directory" : "device or pipe");
}

weft_status weft_file_read(int file, const char *path, void *to, int64_t bytes, int64_t at,
                           weft_error *error)
{
    char *next = to;
    while (bytes > 0) {
        const ssize_t n = pread(file, next, (size_t)bytes, at);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return weft_fail(error, WEFT_IO, "cannot read %s: %s", path, strerror(errno));
        if (n == 0)
            return weft_fail(error, WEFT_IO,
                             "%s ends at byte %lld now, %lld bytes before what it held when it was "
                             "opened; do not change data while it is read",
                             path, (long long)at, (long long)bytes);
        next += n;
        bytes -= n;
        at += n;
    }
    return WEFT_OK;
}
