/* file: opening and reading the files of datasets, with a sentence for everything that can go
 * wrong. */
#include "dataset.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

weft_status weft_file_open(const char *path, int *file, int64_t *bytes, weft_error *error)
{
    struct stat facts;
    *file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a named pipe must not block us here */
    if (*file < 0)
        return weft_fail(error, WEFT_IO,
                         "cannot open data file %s: %s; name one that is there and may be read",
                         path, strerror(errno));
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
