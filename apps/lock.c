/* lock: a lock of the kernel on DIR/lock.
 *
 * Not the file is the lock but flock() on it: a process that was killed, and a host that has gone (its NFS or Lustre
 * client is dropped by the server), hold none. The text in the file is for the sentence only. Where the file system
 * has no locks (Lustre mounted without -o flock), the run goes on and the log says so: guessing by the age of a file
 * would keep out the next job after every crash.
 */
#include "lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MAX_PATH = 4096, MAX_OWNER = 240 };

/* ---- who has it ----------------------------------------------------------------------------- */

/* "process 4711 on host n3 (Slurm job 88), since 2026-03-01 17:03:12" */
static void write_owner(int file)
{
    char text[MAX_OWNER + 1], host[100] = "?", since[32];
    const char *job = getenv("SLURM_JOB_ID");
    const time_t now = time(NULL);
    struct tm parts;
    gethostname(host, sizeof host - 1);
    localtime_r(&now, &parts);
    strftime(since, sizeof since, "%Y-%m-%d %H:%M:%S", &parts);
    const int n =
        snprintf(text, sizeof text, "process %ld on host %s%s%.20s%s, since %s\n", (long)getpid(),
                 host, job ? " (Slurm job " : "", job ? job : "", job ? ")" : "", since);
    /* For a person: that it could not be written is no reason to stop. Synced, for other hosts. */
    if (pwrite(file, text, (size_t)n, 0) != n || ftruncate(file, n) != 0 || fdatasync(file) != 0)
        return;
}

/* The owner writes just after it has locked: wait a moment for it. */
static void read_owner(int file, char text[MAX_OWNER + 1])
{
    for (int i = 0; i < 50; i++) {
        const ssize_t n = pread(file, text, MAX_OWNER, 0);
        text[n > 0 ? n : 0] = '\0';
        size_t used = 0;
        while (text[used] >= ' ' && text[used] <= '~')
            used++;
        const bool is_whole = text[used] == '\n';
        text[used] = '\0';
        if (is_whole) return;
        usleep(10000);
    }
    snprintf(text, MAX_OWNER + 1, "a process that has not said which");
}

/* ---- the lock ------------------------------------------------------------------------------- */

static weft_status open_file(const char *path, int *file, weft_error *error)
{
    *file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    if (*file >= 0) return WEFT_OK;
    return weft_fail(error, WEFT_IO,
                     "cannot write %s: %s; name another run directory with --run DIR", path,
                     strerror(errno));
}

/* Whether `file` is still what stands under that name, and not in a folder moved aside since. */
static bool is_current(int file, const char *path)
{
    struct stat mine, there;
    return fstat(file, &mine) == 0 && stat(path, &there) == 0 && mine.st_dev == there.st_dev &&
           mine.st_ino == there.st_ino;
}

static weft_status fail_held(int file, const char *folder, weft_error *error)
{
    char owner[MAX_OWNER + 1];
    read_owner(file, owner);
    return weft_fail(error, WEFT_USAGE,
                     "another job is training in %.150s: %s; wait until it has ended, or name "
                     "another run directory with --run DIR",
                     folder, owner);
}

static void note_no_locks(app_lock *lock, int number)
{
    snprintf(lock->note, sizeof lock->note,
             "this file system has no locks (%s): take care that no second job is started with "
             "the same --run",
             strerror(number));
}

weft_status app_lock_take(app_lock *lock, const char *folder, weft_error *error)
{
    char path[MAX_PATH + 8];
    int file, failure;
    snprintf(path, sizeof path, "%.4000s/lock", folder);
    for (;;) {
        WEFT_TRY(open_file(path, &file, error));
        failure = flock(file, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
        if (failure != 0 || is_current(file, path)) break;
        close(file);
    }
    if (failure == EWOULDBLOCK) {
        fail_held(file, folder, error);
        close(file);
        return WEFT_USAGE;
    }
    app_lock_leave(lock);
    *lock = (app_lock){.is_held = true, .file = file};
    if (failure != 0) note_no_locks(lock, failure);
    write_owner(file);
    return WEFT_OK;
}

weft_status app_lock_look(const char *folder, weft_error *error)
{
    char path[MAX_PATH + 8];
    snprintf(path, sizeof path, "%.4000s/lock", folder);
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0) return WEFT_OK; /* nobody has trained there */
    const bool is_held = flock(file, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    const weft_status status = is_held ? fail_held(file, folder, error) : WEFT_OK;
    close(file);
    return status;
}

void app_lock_leave(app_lock *lock)
{
    if (lock->is_held) close(lock->file);
    lock->is_held = false;
}
