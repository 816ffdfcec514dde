/* checkpoint_full_test: every call of a save fails once, and every call from the n-th on: no room, no quota, a disk
 * that fails, half a write. The process goes on and ends as it should, one sentence names the path, the saved state
 * is there, and the next save works. */
#include "crash_net.h"

#include <sys/mount.h>
#include <sys/statvfs.h>

/* Of one save, with what can be asked for room or refused. */
static const struct {
    const char *name;
    fault_action action;
    int error;
    bool is_for_good;
} kinds[] = {
    {"no room, for good", FAULT_FAIL, ENOSPC, true},
    {"no room, once", FAULT_FAIL, ENOSPC, false},
    {"a disk that fails, once", FAULT_FAIL, EIO, false},
    {"no quota, for good", FAULT_FAIL, EDQUOT, true},
    {"short writes", FAULT_SHORT, 0, true},
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

static int count_descriptors(void)
{
    DIR *listing = opendir("/proc/self/fd");
    int n = 0;
    while (listing && readdir(listing) != NULL)
        n++;
    if (listing) closedir(listing);
    return n;
}

/* The save that fails, between two elsewhere that need not, and an end by exit. */
static void save_through(const void *argument)
{
    const trial *t = argument;
    weft_error error = {0};
    char elsewhere[128];
    snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", root);
    CHECK_OK(save_version(elsewhere, 0, 1, &error), error); /* the library has begun */
    const int n_before = count_descriptors();
    save_all(t);
    faults_stop();
    CHECK_EQ_INT(count_descriptors(), n_before);
    CHECK_OK(save_version(elsewhere, 0, 1, &error), error);
}

static void end_by_exit(const void *argument)
{
    const int n_failed = atomic_load(&weft_test_.n_failed);
    save_through(argument);
    fflush(NULL);
    exit(atomic_load(&weft_test_.n_failed) > n_failed);
}

/* The path, the reason, and for a full disk what is free. */
static bool is_good_sentence(const char *message, const char *folder, int kind)
{
    const bool is_room = kinds[kind].error != EIO;
    return strstr(message, folder) != NULL &&
           strstr(message, strerror(kinds[kind].error)) != NULL &&
           (strstr(message, "bytes and") != NULL) == is_room;
}

static int n_tried, n_refused;
static bool is_all; /* --all: every kind for every scenario */

static void fail_at(trial *t, const char *folder, int kind, int64_t at, int64_t commit)
{
    char text[900];
    t->plan.at = at;
    t->plan.action = kinds[kind].action;
    t->plan.error = kinds[kind].error;
    t->plan.is_for_good = kinds[kind].is_for_good;
    remove_folder(folder);
    CHECK_EQ_INT(mkdir(folder, 0777), 0);
    forget();
    const int status = in_child(end_by_exit, t);
    const int save_status = said->status;
    char message[480];
    snprintf(message, sizeof message, "%s", said->message);
    const bool is_new = at > commit || save_status == WEFT_OK;
    forget();
    const int looked = in_child(look, t->folder);
    snprintf(text, sizeof text,
             "%s, %s, call %lld: wait status %d, save %d \"%s\"; then %d: version %lld, exact %d, "
             "next %d; %s",
             t->scene->name, kinds[kind].name, (long long)at, status, save_status, message,
             said->status, (long long)said->version, said->is_exact, said->next_status,
             said->message);
    const int64_t due = t->scene->n - !is_new;
    weft_test_check(status == 0 && looked == 0 &&
                        (save_status == WEFT_OK ||
                         (save_status == WEFT_IO && is_good_sentence(message, folder, kind))) &&
                        said->status == WEFT_OK && said->version == due &&
                        (said->is_exact || due == 0) && said->next_status == WEFT_OK,
                    __FILE__, __LINE__, text);
    n_tried++;
    n_refused += save_status != WEFT_OK;
}

/* only: one of the kinds; below 0 all */
static void check_scenario(const scenario *s, int only)
{
    place_of_trial place;
    recorded seen;
    trial t = whole_save(s, &place, &seen);
    const int64_t n = said->n_calls;
    const int stride = crash_stride();
    for (int kind = 0; kind < N_KINDS; kind++)
        for (int64_t at = 1 + kind % stride; at <= n && (is_all || kind == only || only < 0);
             at += stride)
            fail_at(&t, place.run, kind, at, seen.commit);
    remove_folder(place.run);
}

static void test_every_call_of_a_save_fails(void)
{
    enum { KEPT_OPEN = 5, AGAIN_WITHOUT_EXCHANGE = 3, NO_ROOM = 0 };
    check_scenario(&scenarios[KEPT_OPEN], is_all ? -1 : NO_ROOM);
    check_scenario(&scenarios[AGAIN_WITHOUT_EXCHANGE], -1);
    for (int i = 0; i < N_SCENARIOS && is_all; i++)
        if (i != AGAIN_WITHOUT_EXCHANGE && i != KEPT_OPEN) check_scenario(&scenarios[i], -1);
    printf("  %d faults, %d of them refused the save\n", n_tried, n_refused);
}

/* ---- a disk that is really full -------------------------------------------------------------- */

static bool mount_small(const char *folder, int kib, unsigned long flags)
{
    char options[32];
    snprintf(options, sizeof options, "size=%dk", kib);
    return mount("weft", folder, "tmpfs", flags, options) == 0;
}

/* In a view of the file systems of its own, which ends with the process. said->status: -1 when it
 * may not mount. */
static void fill_disk(const void *argument)
{
    const int kib = *(const int *)argument;
    char folder[128], inner[160];
    weft_error error = {0};
    snprintf(folder, sizeof folder, "%s/full", root);
    snprintf(inner, sizeof inner, "%s/ckpt", folder);
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        !mount_small(folder, kib, 0))
        return;
    int version = 1;
    for (; version < VERSIONS && error.status == WEFT_OK; version++) {
        CHECK_OK(net_run(&blank, version, version, NULL, &error), error);
        said->status = save_version(inner, version, version, &error);
    }
    CHECK_EQ_INT(said->status, WEFT_IO);
    CHECK_TEXT(error.message, folder);
    CHECK_TEXT(error.message, "free");
    look(inner); /* one more save has no room either */
    CHECK_EQ_INT(said->status, WEFT_OK);
    CHECK_EQ_INT(said->version, version - 2);
    CHECK(said->is_exact || version == 2);
    CHECK(mount_small(folder, 1 << 20, MS_REMOUNT));
    look(inner);
    CHECK_EQ_INT(said->version, version - 2);
    CHECK_EQ_INT(said->next_status, WEFT_OK);
}

static void test_a_disk_that_is_full(void)
{
    /* From less than one checkpoint to a little less than three, as many as there are for a while.
     */
    static const int sizes[] = {8, 24, 40, 64, 80, 96, 112, 128, 144, 176, 208, 240};
    char folder[128];
    int n = 0;
    snprintf(folder, sizeof folder, "%s/full", root);
    CHECK_EQ_INT(mkdir(folder, 0777), 0);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++, n++) {
        forget();
        CHECK_EQ_INT(in_child(fill_disk, &sizes[i]), 0);
        if (said->status == -1) break;
    }
    if (said->status == -1)
        printf("  left out: this user may not mount a tmpfs\n");
    else
        printf("  %d sizes of a tmpfs\n", n);
}

int main(int n, char **arguments)
{
    is_all = n > 1 && strcmp(arguments[1], "--all") == 0;
    if (!CAN_SAVE) {
        weft_test_skip("built without HDF5, which checkpoints are written with");
    } else if (CHECK(crash_open())) {
        RUN(test_every_call_of_a_save_fails);
        RUN(test_a_disk_that_is_full);
        crash_close();
    }
    return weft_test_report();
}
