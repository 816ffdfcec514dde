/* disk: checks of the folder that a run writes into: what a checkpoint and its lock need. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "../../lock.h"
#include "doctor.h"
#include "weft/checkpoint.h"

#define MIB 1048576.0
#define GIB 1073741824.0
enum { MAX_PATH = 4200, BLOCK = 1 << 20, BLOCKS = 64 };

void doctor_probe_path(const doctor *d, const char *name, char *path, size_t bytes)
{
    snprintf(path, bytes, "%s/.weft-doctor-%ld-%s", d->folder, (long)getpid(), name);
}

/* A small file of ours, synced; false with errno. */
static bool make_file(const char *path)
{
    const int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file < 0) return false;
    const bool is_written = write(file, "weft\n", 5) == 5 && fsync(file) == 0;
    return close(file) == 0 && is_written;
}

static bool sync_folder(const char *path)
{
    const int file = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file < 0) return false;
    const bool is_synced = fsync(file) == 0 || errno == EINVAL; /* some have nothing to sync */
    close(file);
    return is_synced;
}

verdict doctor_run_folder(const doctor *d, finding *f)
{
    char path[MAX_PATH];
    if (!*d->folder)
        return doctor_say(f, DOCTOR_FAIL,
                          "%.120s is not a folder, and what is above it neither; name another with "
                          "--run DIR",
                          d->given);
    doctor_probe_path(d, "file", path, sizeof path);
    const bool is_good = make_file(path) && unlink(path) == 0 && sync_folder(d->folder);
    const int failure = errno;
    unlink(path);
    if (!is_good)
        return doctor_say(f, DOCTOR_FAIL,
                          "cannot make, sync and delete a file in %.150s: %s; name another folder "
                          "with --run DIR",
                          d->folder, strerror(failure));
    return doctor_say(f, DOCTOR_OK, "%.200s can be written%s", d->folder,
                      strcmp(d->folder, d->given) == 0 ? "" : "; the run's folder is made in it");
}

/* ---- the file system ------------------------------------------------------------------------ */

static void mount_options(const char *path, char *options, size_t bytes)
{
    struct stat facts;
    *options = '\0';
    if (stat(path, &facts) == 0)
        doctor_mount_options("/proc/self/mountinfo", major(facts.st_dev), minor(facts.st_dev),
                             options, bytes);
}

static const struct {
    unsigned long magic;
    const char *name;
    verdict verdict;
    const char *advice;
    const char *lacks, *has; /* a mount option that must be there, or must not */
} kinds[] = {
    {0xEF53, "ext4", DOCTOR_OK, "", NULL, NULL},
    {0x58465342, "xfs", DOCTOR_OK, "", NULL, NULL},
    {0x9123683E, "btrfs", DOCTOR_OK, "", NULL, NULL},
    {0x2FC12FC1, "zfs", DOCTOR_OK, "", NULL, NULL},
    {0x47504653, "gpfs", DOCTOR_OK, "", NULL, NULL},
    {0x19830326, "beegfs", DOCTOR_OK, "", NULL, NULL},
    {0x00C36400, "ceph", DOCTOR_OK, "", NULL, NULL},
    {0x6969, "nfs", DOCTOR_WARN, "with nolock, two jobs on two hosts are not kept apart", NULL,
     "nolock"},
    {0x6969, "nfs", DOCTOR_WARN, "with local_lock, two jobs on two hosts are not kept apart", NULL,
     "local_lock=all"},
    {0x6969, "nfs", DOCTOR_WARN, "with local_lock, two jobs on two hosts are not kept apart", NULL,
     "local_lock=flock"},
    {0x6969, "nfs", DOCTOR_WARN, "every save waits for the server; --save-every not too small",
     NULL, NULL},
    {0x0BD00BD0, "lustre", DOCTOR_WARN, "with localflock, two hosts are not kept apart: -o flock",
     NULL, "localflock"},
    {0x0BD00BD0, "lustre", DOCTOR_WARN, "has no locks: mount it with -o flock", "flock", NULL},
    {0x0BD00BD0, "lustre", DOCTOR_OK, "", NULL, NULL},
    {0x01021994, "tmpfs", DOCTOR_WARN, "is memory: gone when the machine restarts", NULL, NULL},
    {0x858458F6, "ramfs", DOCTOR_WARN, "is memory: gone when the machine restarts", NULL, NULL},
    {0x794C7630, "overlay", DOCTOR_WARN, "is a container's own: gone with it", NULL, NULL},
    {0x65735546, "fuse", DOCTOR_WARN, "may keep its promises less well than others", NULL, NULL},
    {0x01021997, "9p", DOCTOR_WARN, "may keep its promises less well than others", NULL, NULL},
    {0xFF534D42, "cifs", DOCTOR_WARN, "may keep its promises less well than others", NULL, NULL},
    {0xFE534D42, "smb2", DOCTOR_WARN, "may keep its promises less well than others", NULL, NULL},
};

verdict doctor_file_system(const doctor *d, finding *f)
{
    struct statfs facts;
    char options[1024];
    if (!*d->folder || statfs(d->folder, &facts) != 0) return DOCTOR_NONE;
    mount_options(d->folder, options, sizeof options);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (kinds[i].magic != (unsigned long)facts.f_type) continue;
        if (kinds[i].lacks && strstr(options, kinds[i].lacks)) continue;
        if (kinds[i].has && !strstr(options, kinds[i].has)) continue;
        snprintf(f->fact, sizeof f->fact, "%s", kinds[i].name);
        return doctor_say(f, kinds[i].verdict, "%s%s%s", kinds[i].name,
                          *kinds[i].advice ? "; " : "", kinds[i].advice);
    }
    return doctor_say(f, DOCTOR_OK, "of kind %#lx, which Weft does not know",
                      (unsigned long)facts.f_type);
}

/* ---- what a checkpoint needs ---------------------------------------------------------------- */

/* That nothing can be written is a check of its own: the others have no line then. */
static bool can_write(const doctor *d)
{
    char path[MAX_PATH];
    if (!*d->folder) return false;
    doctor_probe_path(d, "any", path, sizeof path);
    const bool is_made = make_file(path);
    unlink(path);
    return is_made;
}

/* Two files, and what `act` makes of them; both are removed. */
static bool with_two(const doctor *d, bool (*act)(const char *, const char *), int *failure)
{
    char a[MAX_PATH], b[MAX_PATH];
    doctor_probe_path(d, "a", a, sizeof a);
    doctor_probe_path(d, "b", b, sizeof b);
    const bool is_good = make_file(a) && make_file(b) && act(a, b);
    *failure = errno;
    unlink(a);
    unlink(b);
    return is_good;
}

static bool put_over(const char *a, const char *b)
{
    return rename(a, b) == 0 && access(a, F_OK) != 0;
}

verdict doctor_rename_over(const doctor *d, finding *f)
{
    int failure;
    if (!can_write(d)) return DOCTOR_NONE;
    if (with_two(d, put_over, &failure))
        return doctor_say(f, DOCTOR_OK, "a file takes the place of another");
    return doctor_say(f, DOCTOR_FAIL,
                      "a file cannot take the place of another (%s): a checkpoint could not appear "
                      "whole; name another folder with --run DIR",
                      strerror(failure));
}

static bool swap(const char *a, const char *b)
{
    return renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE) == 0;
}

verdict doctor_exchange(const doctor *d, finding *f)
{
    int failure;
    if (!can_write(d)) return DOCTOR_NONE;
    if (with_two(d, swap, &failure)) return doctor_say(f, DOCTOR_OK, "two names can be swapped");
    return doctor_say(
        f, DOCTOR_WARN,
        "two names cannot be swapped (%s): while a step that is there is saved again, "
        "a crash may leave neither under its name",
        strerror(failure));
}

/* A lock that lets a second in is none. */
static bool keeps_out(const char *path, int *failure)
{
    const int one = open(path, O_RDWR | O_CLOEXEC), other = open(path, O_RDWR | O_CLOEXEC);
    bool is_good = one >= 0 && other >= 0 && flock(one, LOCK_EX | LOCK_NB) == 0;
    *failure = is_good ? 0 : errno;
    is_good = is_good && flock(other, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (one >= 0) close(one);
    if (other >= 0) close(other);
    return is_good;
}

verdict doctor_locks(const doctor *d, finding *f)
{
    char path[MAX_PATH];
    int failure = 0;
    if (!*d->folder) return DOCTOR_NONE;
    doctor_probe_path(d, "lock", path, sizeof path);
    const bool is_made = make_file(path), is_good = is_made && keeps_out(path, &failure);
    unlink(path);
    if (!is_made) return DOCTOR_NONE;
    if (is_good) return doctor_say(f, DOCTOR_OK, "a second job in one folder is kept out");
    return doctor_say(f, DOCTOR_WARN,
                      "there are none here (%s): take care that no second job gets the same --run",
                      failure ? strerror(failure) : "they let a second one in");
}

verdict doctor_run_lock(const doctor *d, finding *f)
{
    weft_error held = {.rank = -1};
    if (!*d->folder || strcmp(d->folder, d->given) != 0) return DOCTOR_NONE;
    if (app_lock_look(d->given, &held) == WEFT_OK)
        return doctor_say(f, DOCTOR_OK, "no job is training in %.200s", d->given);
    return doctor_say(f, DOCTOR_FAIL, "%.350s", held.message);
}

/* ---- room and speed ------------------------------------------------------------------------- */

verdict doctor_space(const doctor *d, finding *f)
{
    struct statvfs facts;
    if (!*d->folder || statvfs(d->folder, &facts) != 0) return DOCTOR_NONE;
    const double unit = (double)facts.f_frsize, is = unit * (double)facts.f_bavail;
    const double all = unit * (double)facts.f_blocks;
    if (is < 128 * MIB)
        return doctor_say(f, DOCTOR_FAIL,
                          "%.0f MiB are free in %.150s; make room, or name another folder with "
                          "--run DIR",
                          is / MIB, d->folder);
    if (is < 2 * GIB || is < 0.02 * all)
        return doctor_say(f, DOCTOR_WARN,
                          "only %.1f of %.1f GiB are free, and --keep checkpoints and one more "
                          "must fit",
                          is / GIB, all / GIB);
    return doctor_say(f, DOCTOR_OK, "%.1f of %.1f GiB are free", is / GIB, all / GIB);
}

verdict doctor_inodes(const doctor *d, finding *f)
{
    struct statvfs facts;
    if (!*d->folder || statvfs(d->folder, &facts) != 0) return DOCTOR_NONE;
    if (facts.f_files == 0) return DOCTOR_NONE; /* not counted, as on btrfs */
    const double is = (double)facts.f_favail;
    const verdict v = is < 100 ? DOCTOR_FAIL : is < 10000 ? DOCTOR_WARN : DOCTOR_OK;
    return doctor_say(f, v,
                      v == DOCTOR_OK ? "%.0f files more"
                                     : "room for %.0f files more; delete "
                                       "files, or name another --run DIR",
                      is);
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A full disk takes a part first, and gives its reason at the next try. */
static bool write_whole(int file, const void *data, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        const ssize_t n = write(file, (const char *)data + done, bytes - done);
        if (n < 0) return false;
        done += (size_t)n;
    }
    return true;
}

/* 64 MiB of what does not compress; with sync, as a checkpoint is written. Seconds, or 0. */
static double write_blocks(int file, uint64_t *block)
{
    uint64_t number = 88172645463325252u;
    const double begun = seconds();
    for (int i = 0; i < BLOCKS; i++) {
        for (size_t k = 0; k < BLOCK / sizeof *block; k += 8) { /* enough to defeat compression */
            number ^= number << 13, number ^= number >> 7, number ^= number << 17;
            block[k] = number;
        }
        if (!write_whole(file, block, BLOCK)) return 0;
    }
    return fsync(file) == 0 ? seconds() - begun : 0;
}

/* Past the memory that keeps what was written just now, where the file system lets us. */
static double read_blocks(int file, uint64_t *block)
{
    posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    const double begun = seconds();
    for (int i = 0; i < BLOCKS; i++)
        if (pread(file, block, BLOCK, (off_t)i * BLOCK) != BLOCK) return 0;
    return seconds() - begun;
}

verdict doctor_speed(const doctor *d, finding *f)
{
    char path[MAX_PATH];
    if (!*d->folder) return DOCTOR_NONE;
    doctor_probe_path(d, "speed", path, sizeof path);
    const int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    uint64_t *block = calloc(1, BLOCK);
    const double written = file >= 0 && block ? write_blocks(file, block) : 0;
    const int failure = errno;
    const double read = written > 0 ? read_blocks(file, block) : 0;
    free(block);
    if (file < 0) return DOCTOR_NONE;
    close(file);
    unlink(path);
    if (written <= 0 || read <= 0)
        return doctor_say(f, DOCTOR_FAIL, "%d MiB cannot be written and read in %.150s: %s", BLOCKS,
                          d->folder, strerror(failure));
    const double in = BLOCKS / written, out = BLOCKS / read;
    if (in < 30)
        return doctor_say(f, DOCTOR_WARN,
                          "writes %.0f MiB/s, reads %.0f MiB/s: a checkpoint of 1 GiB takes %.0f s",
                          in, out, 1024 / in);
    return doctor_say(f, DOCTOR_OK, "writes %.0f MiB/s, reads %.0f MiB/s (%d MiB)", in, out,
                      BLOCKS);
}

/* ---- with others ---------------------------------------------------------------------------- */

verdict doctor_shared_run(const doctor *d, finding *f)
{
    if (d->n_hosts < 2 || d->no_world || !*d->folder) return DOCTOR_NONE;
    if (d->is_shared) return doctor_say(f, DOCTOR_OK, "the same folder as on the first host");
    return doctor_say(f, DOCTOR_FAIL,
                      "%.150s is not the folder that the first host has under that name; name one "
                      "on a file system that all hosts share",
                      d->folder);
}

/* The server's clock stands in the times of files. */
verdict doctor_file_clock(const doctor *d, finding *f)
{
    char path[MAX_PATH];
    struct stat facts;
    struct timespec now;
    if (!*d->folder) return DOCTOR_NONE;
    doctor_probe_path(d, "clock", path, sizeof path);
    const bool is_made = make_file(path) && stat(path, &facts) == 0;
    clock_gettime(CLOCK_REALTIME, &now);
    unlink(path);
    if (!is_made) return DOCTOR_NONE;
    const double apart = (double)(facts.st_mtim.tv_sec - now.tv_sec) +
                         1e-9 * (double)(facts.st_mtim.tv_nsec - now.tv_nsec);
    if (fabs(apart) > 2)
        return doctor_say(f, DOCTOR_WARN,
                          "files get times that are %+.1f s from this machine's clock; let both "
                          "follow one time server",
                          apart);
    return doctor_say(f, DOCTOR_OK, "files get this machine's time");
}

/* A training would find out at its first save. */
verdict doctor_hdf5(const doctor *d, finding *f)
{
    weft_error error = {.rank = -1};
    (void)d;
    if (weft_checkpoints_can_save(&error) == WEFT_OK)
        return doctor_say(f, DOCTOR_OK, "can be loaded, so checkpoints can be saved");
    return doctor_say(f, DOCTOR_FAIL, "%.340s", error.message);
}
