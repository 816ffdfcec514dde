/* look: the ranks of this process, as its watching thread sees them.
 *
 * A rank is at work in four cases. Its process uses the processor (a twentieth of one core, over a second). One of
 * its threads could run (there may be many more threads than cores). One is held up in a call that reads or writes (a
 * slow disk, a stopped terminal). Or it is marked busy. A process that only polls for messages uses the processor
 * too, but then the rank is in a call, and that is known.
 */
#include "look.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const double WINDOW_S = 1, WORKING_SHARE = 0.05, HURRY_S = 2;

typedef struct look {
    uint64_t waiting, n_begun; /* as last seen */
    uint64_t device_wait, device_done;
    uint64_t lane_waits;                                     /* of all lanes */
    double waiting_since, worked, device_moved, lanes_moved; /* when */
} look;

static struct {
    look looks[WEFT_MOST_RECORDERS];
    int n;
    double window_begun, processor; /* seconds used up to then */
    bool has_used_processor;        /* in the last whole window */
    bool is_occupied;               /* at its end */
} here;

static _Atomic int device_patience_ms = 60000; /* 0: for ever */
static _Atomic bool is_hurried;

static double processor_seconds(void)
{
    struct timespec t;
    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) != 0) return 0;
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool read_task(const char *thread, const char *what, char *text, size_t bytes)
{
    char path[300];
    snprintf(path, sizeof path, "/proc/self/task/%s/%s", thread, what);
    FILE *file = fopen(path, "re");
    if (!file) return false;
    text[fread(text, 1, bytes - 1, file)] = '\0';
    fclose(file);
    return *text;
}

/* Running or in an uninterruptible wait (field 3 of stat, after the name in brackets), or in a call on a file (the first
 * number of syscall, where the kernel shows it). */
static bool is_thread_occupied(const char *thread)
{
    static const int calls[] = {SYS_read,   SYS_write,   SYS_pread64,  SYS_pwrite64,  SYS_readv,
                                SYS_writev, SYS_pwritev, SYS_fsync,    SYS_fdatasync, SYS_openat,
                                SYS_close,  SYS_statfs,  SYS_ftruncate};
    char text[512], *end;
    if (read_task(thread, "stat", text, sizeof text)) {
        const char *after = strrchr(text, ')');
        if (after && after[1] == ' ' && (after[2] == 'R' || after[2] == 'D')) return true;
    }
    if (!read_task(thread, "syscall", text, sizeof text)) return false;
    const long number = strtol(text, &end, 10);
    for (size_t i = 0; end != text && i < sizeof calls / sizeof *calls; i++)
        if (number == calls[i]) return true;
    return false;
}

/* Any thread but this one: a rank may wait for one that reads ahead for it, or writes its checkpoint. */
static bool is_occupied(void)
{
    const int self = (int)syscall(SYS_gettid);
    bool is_there = false;
    DIR *threads = opendir("/proc/self/task");
    if (!threads) return false;
    for (struct dirent *entry; !is_there && (entry = readdir(threads)) != NULL;)
        if (entry->d_name[0] != '.' && atoi(entry->d_name) != self)
            is_there = is_thread_occupied(entry->d_name);
    closedir(threads);
    return is_there;
}

void weft_look_around(double now)
{
    for (const int n = weft_n_recorders(); here.n < n; here.n++)
        here.looks[here.n] =
            (look){.waiting_since = now, .worked = now, .device_moved = now, .lanes_moved = now};
    if (now - here.window_begun < WINDOW_S) return;
    const double used = processor_seconds();
    here.has_used_processor =
        used - here.processor > WORKING_SHARE * (now - here.window_begun) || here.window_begun == 0;
    here.is_occupied = !here.has_used_processor && is_occupied();
    here.window_begun = now;
    here.processor = used;
}

/* Whatever a device does for a rank that waits for it, the rank is not idle; how long it does nothing is told apart. */
static void look_at_device(look *its, double now, weft_rank_view *view)
{
    const bool has_moved = !view->is_on_device || view->device_wait != its->device_wait ||
                           view->device_done != its->device_done;
    if (has_moved) its->device_moved = now;
    its->device_wait = view->device_wait;
    its->device_done = view->device_done;
    view->device_idle = now - its->device_moved;
    view->device_allowed = 1e-3 * weft_sync_load(&device_patience_ms);
}

/* ---- lanes ----------------------------------------------------------------------------------- */

enum { SHOWN_LANES = 4 };

/* The team of a rank's lanes, if each of them waits. */
typedef struct lanes {
    uint64_t thread;
    int n;          /* 0: one of them is at work, or they are not in sight */
    uint64_t waits; /* so far */
    char text[200];
} lanes;

static void say_lane(lanes *l, int lane, const char *what, int whom)
{
    const size_t used = strlen(l->text);
    char name[24] = "";
    if (whom != WEFT_ANY) snprintf(name, sizeof name, ", lane %d", whom);
    snprintf(l->text + used, sizeof l->text - used, "%s lane %d for %s%s", lane > 0 ? "," : ":",
             lane, what, name);
}

static void look_at_team(const weft_team_view *team, void *argument)
{
    lanes *l = argument;
    if (team->n < 2 || weft_sync_load_relaxed(&team->owner) != l->thread) return;
    lanes found = {.thread = l->thread, .n = team->n};
    for (int i = 0; i < team->n; i++) {
        const weft_wait_sign *sign = weft_team_sign_at(team, i);
        const char *what = weft_sync_load_acquire(&sign->what);
        if (what == NULL) return;
        found.waits += weft_sync_load_relaxed(&sign->number);
        if (i < SHOWN_LANES) say_lane(&found, i, what, weft_sync_load_relaxed(&sign->whom));
    }
    *l = found;
}

/* Lanes that all wait, and go on doing so, wait for each other: who works shows no sign. */
static void look_at_lanes(const weft_recorder *recorder, look *its, double now,
                          weft_rank_view *view)
{
    lanes l = {.thread = weft_sync_load_relaxed(&recorder->head.thread)};
    if (weft_sync_load(&recorder->head.is_running)) weft_teams_look(look_at_team, &l);
    if (l.n == 0 || l.waits != its->lane_waits) its->lanes_moved = now;
    its->lane_waits = l.waits;
    view->stuck = now - its->lanes_moved;
    view->stuck_allowed = weft_sync_load(&is_hurried) ? HURRY_S : 0;
    if (view->stuck == 0) return;
    char doing[WEFT_DOING_BYTES];
    snprintf(doing, sizeof doing, "%.200s, with %d lanes that wait%s%s", view->doing, l.n, l.text,
             l.n > SHOWN_LANES ? ", ..." : "");
    memcpy(view->doing, doing, sizeof doing);
}

void weft_look_at(int index, double now, const weft_recall *asked, weft_rank_view *view)
{
    const weft_recorder *recorder = weft_recorder_at(index);
    look *its = &here.looks[index];
    weft_view_take(recorder, view);
    weft_view_recall(recorder, asked, view);
    const uint64_t waiting = view->is_waiting ? weft_sync_load(&recorder->head.waiting) : 0;
    if (waiting != its->waiting || waiting == 0) its->waiting_since = now;
    const bool has_called = view->n_begun != its->n_begun;
    its->waiting = waiting;
    its->n_begun = view->n_begun;
    view->waiting = now - its->waiting_since;
    look_at_device(its, now, view);
    look_at_lanes(recorder, its, now, view);
    view->at_work = !view->is_waiting && !view->is_on_device &&
                    (here.has_used_processor || view->busy[0] || here.is_occupied);
    if (view->at_work || view->is_waiting || view->is_on_device || has_called) its->worked = now;
    view->idle = now - its->worked;
}

void weft_look_forgive(double seconds)
{
    for (int i = 0; i < here.n; i++) {
        here.looks[i].waiting_since += seconds;
        here.looks[i].worked += seconds;
        here.looks[i].device_moved += seconds;
        here.looks[i].lanes_moved += seconds;
    }
}

void weft_look_device_patience(int milliseconds)
{
    weft_sync_store(&device_patience_ms, milliseconds);
}

void weft_look_hurry(bool now)
{
    weft_sync_store(&is_hurried, now);
}
