/* crash_net.h: states of a run that are saved in one process and found again in another.
 *
 * Version v of the small net is its state after v steps of training; it says so itself, in the
 * member `sample` of what is saved. Every process is a child of a test that holds nothing: it may
 * die at any place.
 */
#ifndef WEFT_TESTS_CRASH_NET_H
#define WEFT_TESTS_CRASH_NET_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "checkpoint_net.h"
#include "faults.h"

enum { MOST_SAVES = 6, VERSIONS = 10 };

/* Each of the calls is tried, or every so-many-th. */
static inline int crash_stride(void)
{
    const int of_a_hundred = weft_test_cases(100);
    return of_a_hundred < 100 ? 100 / of_a_hundred : 1;
}

/* One after the other: version 1 as steps[0], version 2 as steps[1], ... The last is the one that
 * things happen to. */
typedef struct scenario {
    const char *name;
    int n;
    int64_t steps[MOST_SAVES];
    bool has_no_exchange;
    bool keeps_open; /* one opening for all saves: later ones do without HDF5 */
} scenario;

static const scenario scenarios[] = {
    {"the first of all", 1, {1}, false},
    {"a new step, the oldest goes", 3, {1, 2, 3}, false},
    {"the same step again", 3, {1, 2, 2}, false},
    {"the same step again, names cannot be exchanged", 3, {1, 2, 2}, true},
    {"the same step a third time, names cannot be exchanged", 4, {1, 2, 2, 2}, true},
    {"a new step, kept open", 3, {1, 2, 3}, false, true},
    {"the same step again, kept open", 3, {1, 2, 2}, false, true},
};
enum { N_SCENARIOS = sizeof scenarios / sizeof *scenarios };

/* What a child tells; shared memory. */
typedef struct told {
    int status; /* of the save or restore; -1: not come so far */
    int64_t n_calls;
    bool has_struck;
    char message[480], skipped[480];
    int64_t step, version; /* restored */
    bool is_exact;         /* every byte is that version's */
    int next_status;       /* of one more save */
    int n_descriptors[2];  /* open before and after */
} told;

static char versions[VERSIONS][NET_BYTES];
static told *said;
static char root[64];

static inline void *share(size_t bytes)
{
    return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

/* Returns the child's wait status. A child that fails a check ends with 1. */
static inline int in_child(void (*work)(const void *), const void *argument)
{
    int status = -1;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        const int n_failed = atomic_load(&weft_test_.n_failed);
        work(argument);
        fflush(NULL);
        _exit(atomic_load(&weft_test_.n_failed) > n_failed);
    }
    waitpid(child, &status, 0);
    return status;
}

static inline bool was_killed(int status)
{
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

/* One core, so one lane, so no thread: every child has the same blank program, without making it.
 */
static net blank;

static inline bool open_blank(void)
{
    static const place alone = {"data:1", "", 0, 1};
    weft_error error = {0};
    cpu_set_t allowed, one;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return false;
    int core = (int)(getpid() % CPU_COUNT(&allowed)), cpu = 0;
    while (!CPU_ISSET(cpu, &allowed) || core-- > 0)
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    const bool is_open =
        CHECK_EQ_INT(sched_setaffinity(0, sizeof one, &one), 0) &&
        CHECK_OK(weft_world_open(&world, &error), error) &&
        CHECK_OK(net_open(&alone, &(net_options){.dtype = WEFT_F32}, &blank, &error), error);
    weft_world_close();
    return is_open;
}

static inline void fill_versions(const void *shared)
{
    char(*all)[NET_BYTES] = (void *)(uintptr_t)shared;
    weft_error error = {0};
    for (int v = 1; v < VERSIONS; v++) {
        CHECK_OK(net_run(&blank, v, v, NULL, &error), error);
        net_read(&blank, all[v]);
    }
}

/* A folder in memory where there is one: thousands of saves, each with several syncs. */
static inline bool crash_open(void)
{
    snprintf(root, sizeof root, "%s/weft-crash-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    char(*all)[NET_BYTES] = share(sizeof versions);
    said = share(sizeof *said);
    if (all == MAP_FAILED || said == MAP_FAILED || mkdtemp(root) == NULL) return false;
    if (!open_blank()) return false;
    if (in_child(fill_versions, all) != 0) return false;
    memcpy(versions, all, sizeof versions);
    return true;
}

static inline int remove_entry(const char *path, const struct stat *facts, int kind,
                               struct FTW *where)
{
    (void)facts, (void)kind, (void)where;
    return remove(path);
}

static inline void remove_folder(const char *path)
{
    CHECK(nftw(path, remove_entry, 8, FTW_DEPTH | FTW_PHYS) == 0 || errno == ENOENT);
}

/* At the end of the test. */
static inline void crash_close(void)
{
    net_close(&blank);
    remove_folder(root);
}

static weft_checkpoints *kept; /* NULL: every save opens and closes */

static inline void keep_open(const scenario *s, const char *folder)
{
    weft_error error = {0};
    if (s->keeps_open) CHECK_OK(weft_checkpoints_open(folder, NULL, &kept, &error), error);
}

static inline weft_status save_version(const char *folder, int version, int64_t step,
                                       weft_error *error)
{
    weft_checkpoints *c = kept;
    const weft_checkpoint_state state = {.step = step, .sample = version, .seed = 7};
    if (c == NULL) WEFT_TRY(weft_checkpoints_open(folder, NULL, &c, error));
    weft_status status = weft_checkpoints_save(c, blank.program, &state, error);
    if (status == WEFT_OK) status = weft_checkpoints_wait(c, error);
    if (c != kept) weft_checkpoints_close(&c);
    return status;
}

/* Only names of steps are there. */
static inline bool is_tidy(const char *folder)
{
    DIR *listing = opendir(folder);
    bool is_good = listing != NULL;
    for (struct dirent *entry; listing && (entry = readdir(listing)) != NULL;) {
        if (entry->d_name[0] == '.') continue;
        is_good &= strlen(entry->d_name) == strlen("step_00000001");
    }
    if (listing) closedir(listing);
    return is_good;
}

/* Restore the newest in `folder`, tell which version it is, and save one more. */
static inline void look(const void *folder)
{
    weft_error error = {0};
    weft_checkpoint_state state;
    weft_checkpoints *c = NULL;
    char bytes[NET_BYTES];
    said->status = weft_checkpoints_open(folder, NULL, &c, &error);
    if (said->status == WEFT_OK)
        said->status = weft_checkpoints_restore(c, blank.program, WEFT_NEWEST, &state, &error);
    snprintf(said->message, sizeof said->message, "%s", error.message);
    if (said->status == WEFT_OK) {
        net_read(&blank, bytes);
        snprintf(said->skipped, sizeof said->skipped, "%s", weft_checkpoints_skipped(c));
        said->step = state.step;
        said->version = state.sample;
        said->is_exact = state.sample >= 1 && state.sample < VERSIONS &&
                         memcmp(bytes, versions[state.sample], NET_BYTES) == 0;
        CHECK(is_tidy(folder));
        const weft_checkpoint_state next = {.step = state.step + 1, .sample = state.sample};
        said->next_status = weft_checkpoints_save(c, blank.program, &next, &error);
        if (said->next_status == WEFT_OK) said->next_status = weft_checkpoints_wait(c, &error);
        int64_t steps[8] = {0};
        const int n_steps = weft_stored_steps(folder, steps, 8);
        if (said->next_status == WEFT_OK)
            CHECK(n_steps >= 1 && n_steps <= 2 && steps[n_steps - 1] == next.step);
    }
    weft_checkpoints_close(&c);
}

enum { MOST_CALLS = 256 };

/* What the record of a whole save says. */
typedef struct recorded {
    int64_t commit; /* the number of the call that gives the new state its name */
    bool is_write[MOST_CALLS];
} recorded;

static inline recorded read_record(int log, int64_t step)
{
    char name[64], paths[2 * 4400];
    fault_record r;
    recorded seen = {0};
    snprintf(name, sizeof name, "ckpt/step_%08lld", (long long)step);
    lseek(log, 0, SEEK_SET);
    while (read(log, &r, sizeof r) == sizeof r) {
        const int n = r.path_bytes + r.other_bytes;
        if (!CHECK(n < (int)sizeof paths && read(log, paths, (size_t)n) == n)) break;
        paths[n] = '\0';
        lseek(log, r.data_bytes, SEEK_CUR);
        if ((r.call == FAULT_RENAME || r.call == FAULT_EXCHANGE) &&
            strcmp(paths + r.path_bytes, name) == 0)
            seen.commit = r.number;
        if (r.call == FAULT_WRITE && r.number < MOST_CALLS) seen.is_write[r.number] = true;
    }
    return seen;
}

typedef struct trial {
    const scenario *scene;
    const char *folder;
    fault_plan plan; /* of the last save */
} trial;

static inline void save_all(const void *argument)
{
    const trial *t = argument;
    const scenario *s = t->scene;
    weft_error error = {0};
    keep_open(s, t->folder);
    for (int i = 0; i < s->n; i++) {
        if (i == s->n - 1) faults_start(&t->plan);
        CHECK_OK(net_run(&blank, i + 1, i + 1, NULL, &error), error);
        said->status = save_version(t->folder, i + 1, s->steps[i], &error);
    }
    snprintf(said->message, sizeof said->message, "%s", error.message);
    said->n_calls = faults_seen();
    weft_checkpoints_close(&kept);
}

static inline void forget(void)
{
    *said = (told){.status = -1, .next_status = -1};
}

typedef struct place_of_trial {
    char run[128], checkpoints[160];
} place_of_trial;

/* The scenario without a fault, in another process: what its last save calls, and the trial to repeat with a fault. */
static inline trial whole_save(const scenario *s, place_of_trial *place, recorded *seen)
{
    char path[160];
    snprintf(place->run, sizeof place->run, "%s/run", root);
    snprintf(place->checkpoints, sizeof place->checkpoints, "%s/ckpt", place->run);
    snprintf(path, sizeof path, "%s/log", root);
    const int log = open(path, O_RDWR | O_CREAT | O_TRUNC | O_APPEND, 0666);
    trial t = {s,
               place->checkpoints,
               {.folder = place->run,
                .calls = FAULT_CHANGES,
                .log = log,
                .has_no_exchange = s->has_no_exchange}};
    CHECK_EQ_INT(mkdir(place->run, 0777), 0);
    forget();
    CHECK_EQ_INT(in_child(save_all, &t), 0);
    *seen = read_record(log, s->steps[s->n - 1]);
    close(log);
    t.plan.log = 0;
    return t;
}

#endif
