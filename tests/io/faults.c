/* faults: functions of the names of libc's file calls, which count, fail, kill and record. */
#include "faults.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { PATH_BYTES = 4400 };

static struct {
    fault_plan plan;
    char folder[PATH_BYTES];
    atomic_bool is_on;
    atomic_bool has_struck;
    atomic_llong seen, bytes_read;
    pthread_mutex_t mutex; /* a call and its record are one */
} state = {.mutex = PTHREAD_MUTEX_INITIALIZER};

#define REAL(name) ((__typeof__(&name))real(#name))

static void *real(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

/* ---- where a call goes ----------------------------------------------------------------------- */

typedef struct place {
    char path[PATH_BYTES]; /* absolute */
    bool is_inside;
} place;

static void settle(place *p)
{
    const size_t n = strlen(state.folder);
    p->is_inside = strncmp(p->path, state.folder, n) == 0 && (p->path[n] == '/' || !p->path[n]);
}

static void place_of_file(int file, place *p)
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    const ssize_t n = readlink(link, p->path, sizeof p->path - 1);
    p->path[n > 0 ? n : 0] = '\0';
    settle(p);
}

static void place_of_path(int directory, const char *path, place *p)
{
    char base[PATH_BYTES] = "";
    if (path[0] != '/' && directory == AT_FDCWD) {
        if (getcwd(base, sizeof base) == NULL) base[0] = '\0';
    } else if (path[0] != '/') {
        place_of_file(directory, p);
        snprintf(base, sizeof base, "%s", p->path);
    }
    snprintf(p->path, sizeof p->path, "%s%s%s", base, path[0] == '/' ? "" : "/", path);
    settle(p);
}

/* ---- the record ------------------------------------------------------------------------------ */

static void put(const void *bytes, size_t n)
{
    if (bytes && n > 0 && REAL(write)(state.plan.log, bytes, n) != (ssize_t)n) abort();
}

static const char *below(const place *p)
{
    const char *path = p->path + strlen(state.folder);
    return *path == '/' ? path + 1 : path;
}

static void record(fault_call call, const place *p, const place *other, int64_t at, int64_t bytes,
                   const void *data)
{
    if (state.plan.log <= 0) return;
    const char *path = p ? below(p) : "", *second = other ? below(other) : "";
    const fault_record r = {.call = (int32_t)call,
                            .path_bytes = (int32_t)strlen(path),
                            .other_bytes = (int32_t)strlen(second),
                            .at = at,
                            .bytes = bytes,
                            .data_bytes = data ? bytes : 0,
                            .number = atomic_load(&state.seen)};
    put(&r, sizeof r);
    put(path, (size_t)r.path_bytes);
    put(second, (size_t)r.other_bytes);
    put(data, (size_t)r.data_bytes);
}

/* ---- what happens to a call ------------------------------------------------------------------ */

typedef enum verdict {
    PASS, /* not ours */
    GO,
    REFUSE,
    HALF,
    HALF_AND_DIE,
    GO_AND_DIE
} verdict;

static const verdict verdicts[] = {[FAULT_NOTHING] = GO,
                                   [FAULT_CRASH_AFTER] = GO_AND_DIE,
                                   [FAULT_CRASH_HALF] = HALF_AND_DIE,
                                   [FAULT_FAIL] = REFUSE,
                                   [FAULT_SHORT] = HALF};

static void die(void)
{
    kill(getpid(), SIGKILL);
    for (;;)
        pause();
}

static verdict judge(fault_call call)
{
    const fault_plan *plan = &state.plan;
    if (!(plan->calls & 1u << call)) return GO;
    const int64_t n = atomic_fetch_add(&state.seen, 1) + 1;
    const bool is_now = plan->at > 0 && (n == plan->at || (n > plan->at && plan->is_for_good));
    if (!is_now || plan->action == FAULT_NOTHING) return GO;
    atomic_store(&state.has_struck, true);
    if (plan->action == FAULT_CRASH_BEFORE) die();
    return verdicts[plan->action];
}

/* Every wrapper: begin, the call unless REFUSE, end. */
static verdict begin(fault_call call, bool is_inside)
{
    if (!is_inside || !atomic_load(&state.is_on)) return PASS;
    pthread_mutex_lock(&state.mutex);
    return judge(call);
}

static void end(verdict v)
{
    const int kept = errno;
    if (v == PASS) return;
    if (v == HALF_AND_DIE || v == GO_AND_DIE) die();
    pthread_mutex_unlock(&state.mutex);
    errno = kept;
}

static int refuse(void)
{
    errno = state.plan.error;
    return -1;
}

static size_t part(verdict v, size_t bytes)
{
    return (v == HALF || v == HALF_AND_DIE) && bytes > 1 ? bytes / 2 : bytes;
}

/* ---- open and close -------------------------------------------------------------------------- */

#define EXPORT     FAULTS_API
#define TWIN(name) __attribute__((visibility("default"), alias(#name)))

static int open_at(int directory, const char *path, int flags, mode_t mode)
{
    place p;
    struct stat facts;
    place_of_path(directory, path, &p);
    const bool is_new =
        (flags & O_CREAT) && p.is_inside && fstatat(directory, path, &facts, 0) != 0;
    const fault_call call = is_new || (flags & O_TRUNC) ? FAULT_MAKE : FAULT_READ;
    const verdict v = begin(call, p.is_inside);
    const int file = v == REFUSE ? refuse() : REAL(openat)(directory, path, flags, mode);
    if (v > PASS && v != REFUSE && file >= 0 && call == FAULT_MAKE)
        record(is_new ? FAULT_MAKE : FAULT_TRUNCATE, &p, NULL, 0, 0, NULL);
    end(v);
    return file;
}

/* The mode is there only with O_CREAT and O_TMPFILE; reading what is not there is harmless here. */
#define OPEN_MODE(flags)                                                                           \
    va_list arguments;                                                                             \
    va_start(arguments, flags);                                                                    \
    const mode_t mode = (flags) & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0;           \
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
    place p = {.is_inside = false};
    if (atomic_load(&state.is_on)) place_of_file(file, &p);
    const verdict v = begin(FAULT_CLOSE, p.is_inside);
    int status = REAL(close)(file); /* a close that fails has closed */
    if (v == REFUSE) status = refuse();
    end(v);
    return status;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

enum { HERE = -1 }; /* at the file's own position */

static ssize_t write_at(int file, const void *from, size_t bytes, off_t at)
{
    place p = {.is_inside = false};
    if (atomic_load(&state.is_on)) place_of_file(file, &p);
    const verdict v = begin(FAULT_WRITE, p.is_inside);
    const off_t begun = at != HERE || v == PASS ? at : lseek(file, 0, SEEK_CUR);
    const size_t n = part(v, bytes);
    const ssize_t done = v == REFUSE  ? refuse()
                         : at == HERE ? REAL(write)(file, from, n)
                                      : REAL(pwrite)(file, from, n, at);
    if (v > PASS && done > 0) record(FAULT_WRITE, &p, NULL, begun, done, from);
    end(v);
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
    place p = {.is_inside = false};
    if (atomic_load(&state.is_on)) place_of_file(file, &p);
    return p.is_inside ? write_pieces(file, pieces, n, HERE) : REAL(writev)(file, pieces, n);
}

EXPORT ssize_t pwritev(int file, const struct iovec *pieces, int n, off_t at)
{
    place p = {.is_inside = false};
    if (atomic_load(&state.is_on)) place_of_file(file, &p);
    return p.is_inside ? write_pieces(file, pieces, n, at) : REAL(pwritev)(file, pieces, n, at);
}
TWIN(pwritev) ssize_t pwritev64(int file, const struct iovec *pieces, int n, off64_t at);

static int set_length(int file, off_t length, int mode, off_t at, bool is_allocation)
{
    place p = {.is_inside = false};
    struct stat facts = {.st_size = 0};
    if (atomic_load(&state.is_on)) place_of_file(file, &p);
    const verdict v = begin(FAULT_TRUNCATE, p.is_inside);
    const int status = v == REFUSE     ? refuse()
                       : is_allocation ? REAL(fallocate)(file, mode, at, length)
                                       : REAL(ftruncate)(file, length);
    if (v > PASS && status == 0 && fstat(file, &facts) == 0)
        record(FAULT_TRUNCATE, &p, NULL, facts.st_size, 0, NULL);
    end(v);
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
    place p = {.is_inside = false};
    if (atomic_load(&state.is_on)) place_of_file(file, &p);
    const verdict v = begin(FAULT_SYNC, p.is_inside);
    const int status = v == REFUSE                           ? refuse()
                       : v != PASS && state.plan.is_unsynced ? 0
                                                             : REAL(fsync)(file);
    if (v > PASS && status == 0) record(FAULT_SYNC, &p, NULL, 0, 0, NULL);
    end(v);
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
    place p = {.is_inside = false};
    if (atomic_load(&state.is_on)) place_of_file(file, &p);
    const verdict v = begin(FAULT_READ, p.is_inside);
    const ssize_t n = v == REFUSE  ? refuse()
                      : at == HERE ? REAL(read)(file, to, bytes)
                                   : REAL(pread)(file, to, bytes, at);
    if (v > PASS && n > 0) atomic_fetch_add(&state.bytes_read, n);
    end(v);
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
    place p, q;
    place_of_path(from_at, from, &p);
    place_of_path(to_at, to, &q);
    const bool is_exchange = flags & RENAME_EXCHANGE;
    const fault_call call = is_exchange ? FAULT_EXCHANGE : FAULT_RENAME;
    verdict v = begin(call, p.is_inside || q.is_inside);
    int status = v == REFUSE ? refuse() : 0;
    if (v != PASS && v != REFUSE && is_exchange && state.plan.has_no_exchange) {
        errno = EINVAL;
        status = -1;
    }
    if (status == 0)
        status = flags ? REAL(renameat2)(from_at, from, to_at, to, flags)
                       : REAL(renameat)(from_at, from, to_at, to);
    if (v > PASS && status == 0) record(call, &p, &q, 0, 0, NULL);
    end(v);
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
    place p;
    place_of_path(directory, path, &p);
    const verdict v = begin(FAULT_MKDIR, p.is_inside);
    const int status = v == REFUSE ? refuse() : REAL(mkdirat)(directory, path, mode);
    if (v > PASS && status == 0) record(FAULT_MKDIR, &p, NULL, 0, 0, NULL);
    end(v);
    return status;
}

EXPORT int mkdir(const char *path, mode_t mode)
{
    return mkdirat(AT_FDCWD, path, mode);
}

EXPORT int unlinkat(int directory, const char *path, int flags)
{
    place p;
    place_of_path(directory, path, &p);
    const verdict v = begin(FAULT_UNLINK, p.is_inside);
    const int status = v == REFUSE ? refuse() : REAL(unlinkat)(directory, path, flags);
    if (v > PASS && status == 0) record(FAULT_UNLINK, &p, NULL, 0, 0, NULL);
    end(v);
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

/* ---- for the tests --------------------------------------------------------------------------- */

void faults_start(const fault_plan *plan)
{
    faults_stop();
    state.plan = *plan;
    if (realpath(plan->folder, state.folder) == NULL)
        snprintf(state.folder, sizeof state.folder, "%s", plan->folder);
    state.plan.folder = state.folder;
    atomic_store(&state.seen, 0);
    atomic_store(&state.bytes_read, 0);
    atomic_store(&state.has_struck, false);
    atomic_store(&state.is_on, true);
}

void faults_stop(void)
{
    atomic_store(&state.is_on, false);
}

int64_t faults_seen(void)
{
    return atomic_load(&state.seen);
}

bool faults_struck(void)
{
    return atomic_load(&state.has_struck);
}

int64_t faults_bytes_read(void)
{
    return atomic_load(&state.bytes_read);
}

void faults_mark(int64_t what, int64_t number)
{
    pthread_mutex_lock(&state.mutex);
    record(FAULT_MARK, NULL, NULL, what, number, NULL);
    pthread_mutex_unlock(&state.mutex);
}

__attribute__((constructor)) static void start_from_environment(void)
{
    const char *text = getenv(FAULTS_VARIABLE), *rank = getenv("OMPI_COMM_WORLD_RANK"),
               *wanted = getenv(FAULTS_RANK_VARIABLE);
    static char folder[PATH_BYTES];
    int action, has_no_exchange;
    long long at;
    fault_plan plan = {.folder = folder};
    if (text == NULL || (wanted && rank && strcmp(wanted, rank) != 0)) return;
    if (sscanf(text, "%u %lld %d %d %d %4000s", &plan.calls, &at, &action, &plan.error,
               &has_no_exchange, folder) != 6)
        return;
    plan.at = at;
    plan.action = (fault_action)action;
    plan.has_no_exchange = has_no_exchange;
    faults_start(&plan);
}
