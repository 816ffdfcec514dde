/* groups: what control groups and the system allow a process.
 *
 * /proc/self/cgroup names the group of this process, in the newer kind ("0::/a/b") and in each controller of the
 * older one ("4:cpu,cpuacct:/a/b"). Each group above it may limit too, so all of them are asked, and the smallest
 * counts. In a container the path may be the host's, and only the mount's own folder be there: what cannot be read
 * is no limit.
 */
#include "host.h"
#include "weft/number.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 4096 };

static const struct {
    const char *controller;    /* of the older kind */
    const char *newer, *older; /* the file with the limit */
    const char *period;        /* of the older kind: what its number is divided by; NULL: nothing */
} files[WEFT_LIMITED] = {
    [WEFT_LIMITED_CPU] = {"cpu", "cpu.max", "cpu.cfs_quota_us", "cpu.cfs_period_us"},
    [WEFT_LIMITED_THREADS] = {"pids", "pids.max", "pids.max", NULL},
    [WEFT_LIMITED_MEMORY] = {"memory", "memory.max", "memory.limit_in_bytes", NULL},
};

bool weft_read_text(const char *path, char *text, size_t bytes)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    size_t used = 0;
    for (ssize_t n = 1; file >= 0 && n > 0 && used<bytes - 1; used += n> 0 ? (size_t)n : 0)
        n = read(file, text + used, bytes - 1 - used); /* /proc gives a page at a time */
    if (file >= 0) close(file);
    text[used] = '\0';
    return used > 0;
}

/* "150000 100000" is 1.5, "max 100000" and -1 are no limit: 0. */
static double read_number(const char *path)
{
    char text[128];
    double number, by = 0;
    if (!weft_read_text(path, text, sizeof text)) return 0;
    const int length = weft_number_read(text, &number);
    if (length > 0) (void)weft_number_read(text + length, &by);
    return !(number > 0) ? 0 : by > 0 ? number / by : number;
}

/* ---- the group of this process --------------------------------------------------------------- */

static bool is_of(const char *controllers, const char *wanted)
{
    const size_t n = strlen(wanted);
    for (const char *at = controllers; *wanted != '\0' && at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, wanted, n) == 0 && (at[n] == ',' || at[n] == '\0')) return true;
    }
    return *wanted == '\0' && *controllers == '\0'; /* the newer kind */
}

/* A file line by line, without stdio; one that does not fit is left out as a whole. */
typedef struct lines {
    int file;
    size_t from, used; /* of text: what is not looked at yet */
    bool is_long;      /* what comes up to the next end is the rest of one that did not fit */
    char text[2 * PATH_BYTES];
} lines;

static bool fill(lines *l)
{
    memmove(l->text, l->text + l->from, l->used - l->from);
    l->used -= l->from;
    l->from = 0;
    if (l->used == sizeof l->text - 1) l->used = 0, l->is_long = true;
    const ssize_t n = read(l->file, l->text + l->used, sizeof l->text - 1 - l->used);
    if (n > 0) l->used += (size_t)n;
    return n > 0;
}

/* The next one, ended; NULL: there is none. */
static char *next_line(lines *l)
{
    for (;;) {
        char *line = l->text + l->from, *end = memchr(line, '\n', l->used - l->from);
        if (end == NULL && fill(l)) continue;
        if (end == NULL && l->from == l->used) return NULL;
        if (end == NULL) line = l->text, end = l->text + l->used; /* the last, without an end */
        *end = '\0';
        l->from = (size_t)(end - l->text) + (end < l->text + l->used);
        const bool is_rest = l->is_long;
        l->is_long = false;
        if (!is_rest) return line;
    }
}

/* Where a line "4:cpu,cpuacct:/a/b" says the group is, if it is of the controller; else NULL. */
static const char *place_in(char *line, const char *controller)
{
    char *names = strchr(line, ':'), *place = names != NULL ? strchr(names + 1, ':') : NULL;
    if (place == NULL) return NULL;
    *place++ = '\0';
    return is_of(names + 1, controller) && strlen(place) < PATH_BYTES ? place : NULL;
}

/* Its path under `controller`, "" for the newer kind. A path of / is "". */
static bool find_path(const char *root, const char *controller, char path[PATH_BYTES])
{
    char name[PATH_BYTES];
    const char *place = NULL;
    snprintf(name, sizeof name, "%s/proc/self/cgroup", root);
    lines l = {.file = open(name, O_RDONLY | O_CLOEXEC)};
    for (char *line; l.file >= 0 && place == NULL && (line = next_line(&l)) != NULL;)
        place = place_in(line, controller);
    if (place != NULL) strcpy(path, strcmp(place, "/") == 0 ? "" : place);
    if (l.file >= 0) close(l.file);
    return place != NULL;
}

static uint64_t number_of(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0 ? (uint64_t)facts.st_dev << 40 ^ (uint64_t)facts.st_ino : 0;
}

typedef struct smallest {
    double limit; /* 0: none so far */
    uint64_t group;
} smallest;

/* The limits of the group at `path` under a mount, and of all above it. */
static void look_up(const char *mount, char path[PATH_BYTES], const char *name, const char *period,
                    smallest *found)
{
    for (char *slash = path; slash != NULL;) {
        char file[3 * PATH_BYTES];
        snprintf(file, sizeof file, "%s%s/%s", mount, path, name);
        double limit = read_number(file);
        const uint64_t group = limit > 0 ? number_of(file) : 0;
        snprintf(file, sizeof file, "%s%s/%s", mount, path, period != NULL ? period : name);
        const double by = period != NULL && limit > 0 ? read_number(file) : 1;
        if (by > 0) limit /= by;
        if (limit > 0 && limit < 1e18 &&
            (found->limit == 0 || limit < found->limit)) /* 2^63: none */
            *found = (smallest){limit, group};
        slash = strrchr(path, '/');
        if (slash != NULL) *slash = '\0';
    }
}

double weft_group_limit(const char *root, weft_limited what, uint64_t *group)
{
    static const char *const mounts[] = {"", "/unified"};
    char path[PATH_BYTES], mount[2 * PATH_BYTES];
    smallest found = {0, 0};
    for (size_t i = 0; i < sizeof mounts / sizeof *mounts; i++) {
        if (!find_path(root, "", path)) *path = '\0';
        snprintf(mount, sizeof mount, "%s/sys/fs/cgroup%s", root, mounts[i]);
        look_up(mount, path, files[what].newer, NULL, &found);
    }
    if (!find_path(root, files[what].controller, path)) *path = '\0';
    snprintf(mount, sizeof mount, "%s/sys/fs/cgroup/%s", root, files[what].controller);
    look_up(mount, path, files[what].older, files[what].period, &found);
    if (group != NULL) *group = found.group;
    return found.limit;
}

/* ---- threads --------------------------------------------------------------------------------- */

static int64_t user_limit(void)
{
    struct rlimit now;
    if (getuid() == 0 || getrlimit(RLIMIT_NPROC, &now) != 0) return 0; /* does not hold for root */
    return now.rlim_cur == RLIM_INFINITY ? 0 : (int64_t)now.rlim_cur;
}

int64_t weft_threads_allowed(const char *root, const char **what)
{
    char path[2][PATH_BYTES];
    snprintf(path[0], sizeof path[0], "%s/proc/sys/kernel/threads-max", root);
    snprintf(path[1], sizeof path[1], "%s/proc/sys/kernel/pid_max", root);
    const struct {
        double most;
        const char *name;
    } limits[] = {
        {(double)user_limit(), "ulimit -u"},
        {weft_group_limit(root, WEFT_LIMITED_THREADS, NULL), "pids.max of the control group"},
        {read_number(path[0]), "kernel.threads-max"},
        {read_number(path[1]), "kernel.pid_max"},
    };
    double most = 0;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        if (!(limits[i].most > 0) || (most > 0 && limits[i].most >= most)) continue;
        most = limits[i].most;
        *what = limits[i].name;
    }
    return (int64_t)most;
}
