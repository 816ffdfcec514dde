/* fault_calls: functions of the names of libc's file calls. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "fault_state.h"

/* ---- open and close -------------------------------------------------------------------------- */

#define EXPORT     FAULTS_API
#define TWIN(name) __attribute__((visibility("default"), alias(#name)))

static int open_at(int directory, const char *path, int flags, mode_t mode)
{
    fault_place p;
    struct stat facts;
    fault_place_of_path(directory, path, &p);
    const bool is_new =
        (flags & O_CREAT) && p.is_inside && fstatat(directory, path, &facts, 0) != 0;
    const fault_call call = is_new || (flags & O_TRUNC) ? FAULT_MAKE : FAULT_READ;
    const fault_verdict v = fault_begin(call, p.is_inside);
    const int file =
        v == REFUSE ? fault_refuse() : FAULT_REAL(openat)(directory, path, flags, mode);
    if (v > PASS && v != REFUSE && file >= 0 && call == FAULT_MAKE)
        fault_record_call(is_new ? FAULT_MAKE : FAULT_TRUNCATE, &p, NULL, 0, 0, NULL);
    fault_end(v);
    return file;
}

/* The mode is there only where a file may be made. */
#define OPEN_MODE(flags)                                                                           \
    const bool makes = ((flags)&O_CREAT) || ((flags)&O_TMPFILE) == O_TMPFILE;                      \
    va_list arguments;                                                                             \
    va_start(arguments, flags);                                                                    \
    const mode_t mode = makes ? va_arg(arguments, mode_t) : 0;                                     \
    va_end(arguments)

EXPORT int open(const char *path, int flags, ...)
{
    OPEN_MODE(flags);
    return open_at(AT_FDCWD, path, flags, mode);
}
TWIN(open) int open64(const char *path, int flags, ...);

EXPORT int openat(int directory, const char *path, int flags, ...)
{
    OPEN_MODE(flags);
    return open_at(directory, path, flags, mode);
}
TWIN(openat) int openat64(int directory, const char *path, int flags, ...);

EXPORT int creat(const char *path, mode_t mode)
{
    return open_at(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}
TWIN(creat) int creat64(const char *path, mode_t mode);

EXPORT int close(int file)
{
    fault_place p;
    fault_place_of_file(file, &p);
    const fault_verdict v = fault_begin(FAULT_CLOSE, p.is_inside);
    int status = FAULT_REAL(close)(file); /* a close that fails has closed */
    if (v == REFUSE) status = fault_refuse();
    fault_end(v);
    return status;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

enum { HERE = -1 }; /* at the file's own position */

static size_t part(fault_verdict v, size_t bytes)
{
    return (v == HALF || v == HALF_AND_DIE) && bytes > 1 ? bytes / 2 : bytes;
}

static ssize_t write_at(int file, const void *from, size_t bytes, off_t at)
{
    fault_place p;
    fault_place_of_file(file, &p);
    const fault_verdict v = fault_begin(FAULT_WRITE, p.is_inside);
    const off_t begun = at != HERE || v == PASS ? at : lseek(file, 0, SEEK_CUR);
    const size_t n = part(v, bytes);
    const ssize_t done = v == REFUSE  ? fault_refuse()
                         : at == HERE ? FAULT_REAL(write)(file, from, n)
                                      : FAULT_REAL(pwrite)(file, from, n, at);
    if (v > PASS && done > 0) fault_record_call(FAULT_WRITE, &p, NULL, begun, done, from);
    fault_end(v);
    return done;
}

EXPORT ssize_t write(int file, const void *from, size_t bytes)
{
    return write_at(file, from, bytes, HERE);
}

EXPORT ssize_t pwrite(int file, const void *from, size_t bytes, off_t at)
{
    return write_at(file, from, bytes, at);
}
TWIN(pwrite) ssize_t pwrite64(int file, const void *from, size_t bytes, off64_t at);

/* The first piece that is not empty: writers of pieces go on after a short write. */
static ssize_t write_pieces(int file, const struct iovec *pieces, int n, off_t at)
{
    for (int i = 0; i < n; i++)
        if (pieces[i].iov_len > 0) return write_at(file, pieces[i].iov_base, pieces[i].iov_len, at);
    return 0;
}

EXPORT ssize_t writev(int file, const struct iovec *pieces, int n)
{
    fault_place p;
    fault_place_of_file(file, &p);
    return p.is_inside ? write_pieces(file, pieces, n, HERE) : FAULT_REAL(writev)(file, pieces, n);
}

EXPORT ssize_t pwritev(int file, const struct iovec *pieces, int n, off_t at)
{
    fault_place p;
    fault_place_of_file(file, &p);
    return p.is_inside ? write_pieces(file, pieces, n, at)
                       : FAULT_REAL(pwritev)(file, pieces, n, at);
}
TWIN(pwritev) ssize_t pwritev64(int file, const struct iovec *pieces, int n, off64_t at);

static int set_length(int file, off_t length, int mode, off_t at, bool is_allocation)
{
    fault_place p;
    struct stat facts = {.st_size = 0};
    fault_place_of_file(file, &p);
    const fault_verdict v = fault_begin(FAULT_TRUNCATE, p.is_inside);
    const int status = v == REFUSE     ? fault_refuse()
                       : is_allocation ? FAULT_REAL(fallocate)(file, mode, at, length)
                                       : FAULT_REAL(ftruncate)(file, length);
    if (v > PASS && status == 0 && fstat(file, &facts) == 0)
        fault_record_call(FAULT_TRUNCATE, &p, NULL, facts.st_size, 0, NULL);
    fault_end(v);
    return status;
}

EXPORT int ftruncate(int file, off_t length)
{
    return set_length(file, length, 0, 0, false);
}
TWIN(ftruncate) int ftruncate64(int file, off64_t length);

EXPORT int fallocate(int file, int mode, off_t at, off_t length)
{
    return set_length(file, length, mode, at, true);
}
TWIN(fallocate) int fallocate64(int file, int mode, off64_t at, off64_t length);

EXPORT int posix_fallocate(int file, off_t at, off_t length)
{
    return set_length(file, length, 0, at, true) == 0 ? 0 : errno;
}
TWIN(posix_fallocate) int posix_fallocate64(int file, off64_t at, off64_t length);

static int sync_file(int file)
{
    fault_place p;
    fault_place_of_file(file, &p);
    const fault_verdict v = fault_begin(FAULT_SYNC, p.is_inside);
    const int status = v == REFUSE                               ? fault_refuse()
                       : v != PASS && fault_now.plan.is_unsynced ? 0
                                                                 : FAULT_REAL(fsync)(file);
    if (v > PASS && status == 0) fault_record_call(FAULT_SYNC, &p, NULL, 0, 0, NULL);
    fault_end(v);
    return status;
}

EXPORT int fsync(int file)
{
    return sync_file(file);
}

EXPORT int fdatasync(int file)
{
    return sync_file(file);
}

static ssize_t read_at(int file, void *to, size_t bytes, off_t at)
{
    fault_place p;
    fault_place_of_file(file, &p);
    const fault_verdict v = fault_begin(FAULT_READ, p.is_inside);
    const ssize_t n = v == REFUSE  ? fault_refuse()
                      : at == HERE ? FAULT_REAL(read)(file, to, bytes)
                                   : FAULT_REAL(pread)(file, to, bytes, at);
    if (v > PASS && n > 0) atomic_fetch_add(&fault_now.bytes_read, n);
    fault_end(v);
    return n;
}

EXPORT ssize_t read(int file, void *to, size_t bytes)
{
    return read_at(file, to, bytes, HERE);
}

EXPORT ssize_t pread(int file, void *to, size_t bytes, off_t at)
{
    return read_at(file, to, bytes, at);
}
TWIN(pread) ssize_t pread64(int file, void *to, size_t bytes, off64_t at);

/* ---- names ----------------------------------------------------------------------------------- */

static int rename_at(int from_at, const char *from, int to_at, const char *to, unsigned flags)
{
    fault_place p, q;
    fault_place_of_path(from_at, from, &p);
    fault_place_of_path(to_at, to, &q);
    const bool is_exchange = flags & RENAME_EXCHANGE;
    const fault_call call = is_exchange ? FAULT_EXCHANGE : FAULT_RENAME;
    fault_verdict v = fault_begin(call, p.is_inside || q.is_inside);
    int status = v == REFUSE ? fault_refuse() : 0;
    if (v != PASS && v != REFUSE && is_exchange && fault_now.plan.has_no_exchange) {
        errno = EINVAL;
        status = -1;
    }
    if (status == 0)
        status = flags ? FAULT_REAL(renameat2)(from_at, from, to_at, to, flags)
                       : FAULT_REAL(renameat)(from_at, from, to_at, to);
    if (v > PASS && status == 0) fault_record_call(call, &p, &q, 0, 0, NULL);
    fault_end(v);
    return status;
}

EXPORT int rename(const char *from, const char *to)
{
    return rename_at(AT_FDCWD, from, AT_FDCWD, to, 0);
}

EXPORT int renameat(int from_at, const char *from, int to_at, const char *to)
{
    return rename_at(from_at, from, to_at, to, 0);
}

EXPORT int renameat2(int from_at, const char *from, int to_at, const char *to, unsigned flags)
{
    return rename_at(from_at, from, to_at, to, flags);
}

EXPORT int mkdirat(int directory, const char *path, mode_t mode)
{
    fault_place p;
    fault_place_of_path(directory, path, &p);
    const fault_verdict v = fault_begin(FAULT_MKDIR, p.is_inside);
    const int status = v == REFUSE ? fault_refuse() : FAULT_REAL(mkdirat)(directory, path, mode);
    if (v > PASS && status == 0) fault_record_call(FAULT_MKDIR, &p, NULL, 0, 0, NULL);
    fault_end(v);
    return status;
}

EXPORT int mkdir(const char *path, mode_t mode)
{
    return mkdirat(AT_FDCWD, path, mode);
}

EXPORT int unlinkat(int directory, const char *path, int flags)
{
    fault_place p;
    fault_place_of_path(directory, path, &p);
    const fault_verdict v = fault_begin(FAULT_UNLINK, p.is_inside);
    const int status = v == REFUSE ? fault_refuse() : FAULT_REAL(unlinkat)(directory, path, flags);
    if (v > PASS && status == 0) fault_record_call(FAULT_UNLINK, &p, NULL, 0, 0, NULL);
    fault_end(v);
    return status;
}

EXPORT int unlink(const char *path)
{
    return unlinkat(AT_FDCWD, path, 0);
}

EXPORT int rmdir(const char *path)
{
    return unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}

/* libc's own calls unlink and rmdir by names that nobody else can have. */
EXPORT int remove(const char *path)
{
    struct stat facts;
    if (lstat(path, &facts) != 0) return -1;
    return S_ISDIR(facts.st_mode) ? rmdir(path) : unlink(path);
}
