/* lock_test: one training at a time in a run directory; a lock that is left behind is none. */
#include <errno.h>
#include <sys/file.h>
#include <sys/stat.h>

static int flock_as_told(int file, int operation);
#define flock flock_as_told
#include "apps/lock.c" /* the programs' own; it is in no library */
#undef flock

#include "training.h"

static int no_locks; /* what flock fails with; 0: the kernel's */

static int flock_as_told(int file, int operation)
{
    errno = no_locks;
    return no_locks != 0 ? -1 : flock(file, operation);
}

/* ---- the lock alone ------------------------------------------------------------------------- */

static void test_held_once(void)
{
    app_lock one = {0}, other = {0};
    char expected[64];
    weft_error error = {.rank = -1};
    CHECK_OK(app_lock_take(&one, folder, &error), error);
    CHECK_EQ_INT(app_lock_take(&other, folder, &error), WEFT_USAGE);
    snprintf(expected, sizeof expected, "process %ld on host ", (long)getpid());
    CHECK_TEXT(error.message, expected);
    CHECK_TEXT(error.message, ", since 20");
    app_lock_leave(&one);
    error = (weft_error){.rank = -1};
    CHECK_OK(app_lock_take(&other, folder, &error), error);
    app_lock_leave(&other);
}

static void test_what_a_dead_process_left_is_no_lock(void)
{
    char path[1024];
    app_lock lock = {0};
    weft_error error = {.rank = -1};
    snprintf(path, sizeof path, "%s/lock", folder);
    FILE *file = fopen(path, "w");
    if (!CHECK(file != NULL)) return;
    fprintf(file, "process 1 on host elsewhere, since 2001-01-01 00:00:00\n");
    fclose(file);
    CHECK_OK(app_lock_take(&lock, folder, &error), error);
    app_lock_leave(&lock);
}

/* The folder is moved aside and made again while another waits: it must not hold the old one. */
static void test_the_lock_of_the_new_folder_counts(void)
{
    char a[1024], b[1024];
    app_lock mine = {0}, other = {0};
    weft_error error = {.rank = -1};
    snprintf(a, sizeof a, "%s/moving", folder);
    snprintf(b, sizeof b, "%s/moving.1", folder);
    CHECK(mkdir(a, 0777) == 0);
    CHECK_OK(app_lock_take(&mine, a, &error), error);
    const int old = mine.file;
    CHECK(rename(a, b) == 0 && mkdir(a, 0777) == 0);
    CHECK(!is_current(old, "moving/lock"));
    CHECK_OK(app_lock_take(&mine, a, &error), error);
    CHECK_EQ_INT(app_lock_take(&other, a, &error), WEFT_USAGE);
    error = (weft_error){.rank = -1};
    CHECK_OK(app_lock_take(&other, b, &error), error); /* the old one was let go */
    app_lock_leave(&other);
    app_lock_leave(&mine);
}

static void test_without_locks_it_says_so(void)
{
    app_lock one = {0}, other = {0};
    weft_error error = {.rank = -1};
    no_locks = ENOSYS;
    CHECK_OK(app_lock_take(&one, folder, &error), error);
    CHECK_OK(app_lock_take(&other, folder, &error), error);
    CHECK_TEXT(one.note, "Function not implemented");
    CHECK_TEXT(one.note, "second job");
    no_locks = 0;
    app_lock_leave(&one);
    app_lock_leave(&other);
}

static void test_a_pipe_or_a_link_of_that_name(void)
{
    char path[1024];
    app_lock lock = {0};
    weft_error error = {.rank = -1};
    snprintf(path, sizeof path, "%s/odd", folder);
    CHECK(mkdir(path, 0777) == 0);
    strcat(path, "/lock");
    CHECK(symlink("/dev/null", path) == 0);
    CHECK_EQ_INT(app_lock_take(&lock, "nowhere", &error), WEFT_IO);
    CHECK_TEXT(error.message, "--run DIR");
    path[strlen(path) - strlen("/lock")] = '\0';
    error = (weft_error){.rank = -1};
    CHECK_EQ_INT(app_lock_take(&lock, path, &error), WEFT_IO);
    CHECK(!lock.is_held);
}

/* ---- two jobs ------------------------------------------------------------------------------- */

static void check_refused(const char *launcher, const char *arguments, pid_t owner)
{
    char expected[64];
    const command_result *r = training_run(launcher, "shared", arguments);
    CHECK_EQ_INT(r->status, 2);
    CHECK_EQ_INT(command_lines(r->text, "gpt: "), 1);
    snprintf(expected, sizeof expected, "process %ld on host ", (long)owner);
    CHECK_TEXT(r->text, expected);
}

/* One sentence; nothing is moved or written; reading goes on; and a killed owner is no owner. */
static void test_the_second_job_is_refused(void)
{
    char line[1024];
    double losses[TRAINING_STEPS + 1];
    const pid_t first = training_start("", "shared", "--steps 400 --batch 300 --save-every 2");
    CHECK(training_await("shared", 3));
    check_refused("", "--steps 400", first);
    check_refused("", "--steps 400 --fresh", first);
    check_refused("", "--steps 400 --resume none", first);
    if (WEFT_TEST_MPIEXEC[0] != '\0')
        check_refused(TWO_RANKS, "--steps 400 --layout batch:data", first);
    CHECK(!training_is_there("shared.1") && !training_is_there("shared/ckpt.1"));
    snprintf(line, sizeof line, WEFT_TEST_BIN "/weft ckpt list %s/shared", folder);
    CHECK_EQ_INT(command_run(line).status, 0);
    snprintf(line, sizeof line, WEFT_TEST_BIN "/gpt sample --run %s/shared --sample 4", folder);
    CHECK_EQ_INT(command_run(line).status, 0);
    CHECK_EQ_INT(kill(first, SIGKILL), 0);
    CHECK_EQ_INT(training_wait(first), -SIGKILL);
    const int done = training_losses("shared", losses);
    char arguments[128];
    snprintf(arguments, sizeof arguments, "--steps 400 --batch 300 --until %d", done + 1);
    const command_result *r = training_run("", "shared", arguments);
    weft_test_check(r->status == 0, __FILE__, __LINE__, r->text);
    CHECK_EQ_INT(training_losses("shared", losses), done + 1);
}

/* The lock of a job over several processes goes with its root. */
static void test_killed_ranks_leave_no_lock(void)
{
    if (WEFT_TEST_MPIEXEC[0] == '\0') return;
    const pid_t first = training_start(TWO_RANKS, "ranks", "--steps 400 --layout batch:data");
    CHECK(training_await("ranks", 2));
    pid_t ranks[8];
    const int n = training_ranks(first, ranks, 8);
    CHECK_EQ_INT(n, 2);
    for (int i = 0; i < n; i++)
        kill(ranks[i], SIGKILL);
    CHECK(training_wait(first) != 0);
    const command_result *r =
        training_run(TWO_RANKS, "ranks", "--steps 400 --until 1 --layout batch:data");
    weft_test_check(r->status == 0, __FILE__, __LINE__, r->text);
}

int main(void)
{
    if (CHECK(text_folder_open("/tmp", "lock"))) {
        RUN(test_held_once);
        RUN(test_what_a_dead_process_left_is_no_lock);
        RUN(test_the_lock_of_the_new_folder_counts);
        RUN(test_without_locks_it_says_so);
        RUN(test_a_pipe_or_a_link_of_that_name);
        RUN(test_the_second_job_is_refused);
        RUN(test_killed_ranks_leave_no_lock);
        text_folder_close();
    }
    return weft_test_report();
}
