/* deadline_test: the end of a batch job from a variable or from squeue, and time limits that hold.
 *
 *   test_apps_deadline --many N   runs under N random limits, with a clock beside them
 *
 * The squeue asked here is a script that this test writes and puts first on PATH.
 */
#include "apps/deadline.c" /* the programs' own; they are in no library */
#include "apps/stop.c"

#include <sys/stat.h>

#include "training.h"

static char path_before[8192];

/* A squeue that runs these lines of shell; NULL: there is none on PATH. */
static void make_squeue(const char *lines)
{
    char path[1024], search[9216];
    snprintf(path, sizeof path, "%s/bin", folder);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/bin/squeue", folder);
    unlink(path);
    snprintf(search, sizeof search, "%s/bin:%s", folder, path_before);
    if (lines == NULL) snprintf(search, sizeof search, "%s/bin", folder);
    setenv("PATH", search, 1);
    if (lines == NULL) return;
    FILE *file = fopen(path, "w");
    if (!CHECK(file != NULL)) return;
    fprintf(file, "#!/bin/sh\n%s\n", lines);
    fclose(file);
    chmod(path, 0755);
}

static void as_before(void)
{
    setenv("PATH", path_before, 1);
    unsetenv("SLURM_JOB_ID");
    unsetenv("SLURM_JOB_END_TIME");
}

/* Poll until the answer has been dealt with. */
static void await_answer(deadline *d)
{
    for (int i = 0; i < 10000 && d->child > 0; i++) {
        deadline_poll(d);
        usleep(2000);
    }
    CHECK_EQ_INT(d->child, 0);
}

/* ---- what squeue says ----------------------------------------------------------------------- */

static void test_every_form_of_time(void)
{
    static const struct {
        const char *text;
        double seconds; /* -1: none */
    } forms[] = {
        {"1-02:03:04", 93784},
        {"10-00:00:00", 864000},
        {"2:03:04", 7384},
        {"23:59:59", 86399},
        {"03:04", 184},
        {"0:00", 0},
        {"0:01", 1},
        {"59:59", 3599},
        {"UNLIMITED", -1},
        {"INVALID", -1},
        {"NOT_SET", -1},
        {"", -1},
        {"5", -1},
        {"1-2", -1},
        {"1-02:03", -1},
        {"1:2:3:4", -1},
        {"-1:00", -1},
        {"1:", -1},
        {":1", -1},
        {"1:00x", -1},
        {"1-", -1},
        {"x-01:02:03", -1},
        {"+1:00", -1},
        {" 1:00", -1},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        double seconds = -1;
        const bool is_time = deadline_parse(forms[i].text, &seconds);
        CHECK_EQ_INT(is_time, forms[i].seconds >= 0);
        CHECK_CLOSE(seconds, forms[i].seconds, 0);
    }
}

/* ---- asking --------------------------------------------------------------------------------- */

static void test_squeue_is_asked_for_this_job(void)
{
    deadline d;
    char line[1024];
    snprintf(line, sizeof line, "echo \"$@\" >%s/asked; echo 1:00:00", folder);
    make_squeue(line);
    setenv("SLURM_JOB_ID", "4711", 1);
    deadline_open(&d);
    CHECK(d.end == 0);
    await_answer(&d);
    CHECK_CLOSE(d.end, d.asked + 3600, 1e-12);
    CHECK_TEXT(d.source, "squeue");
    snprintf(line, sizeof line, "cat %s/asked", folder);
    CHECK_TEXT(command_run_all(line).text, "-h -j 4711 -o %L");

    make_squeue("echo INVALID"); /* what was known stays */
    d.every = 0;
    deadline_poll(&d);
    CHECK(d.child > 0);
    const double before = d.end;
    await_answer(&d);
    CHECK(d.end == before);
    make_squeue("echo 30:00"); /* an administrator has made it shorter */
    deadline_poll(&d);
    await_answer(&d);
    CHECK_CLOSE(d.end, d.asked + 1800, 1e-12);
    make_squeue("echo UNLIMITED");
    deadline_poll(&d);
    await_answer(&d);
    CHECK(d.end == 0);
    deadline_close(&d);
    as_before();
}

static void test_a_squeue_that_fails_or_talks_is_none(void)
{
    static const char *const bad[] = {"exit 1",   "echo 1:00; exit 1", "kill -9 $$",           "",
                                      "yes 1:00", "echo; echo 1:00",   "exec cat /dev/urandom"};
    setenv("SLURM_JOB_ID", "1", 1);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        deadline d;
        make_squeue(bad[i]);
        deadline_open(&d);
        await_answer(&d);
        CHECK(d.end == 0);
        deadline_close(&d);
    }
    as_before();
}

static void test_no_squeue_is_not_asked_again(void)
{
    deadline d;
    setenv("SLURM_JOB_ID", "1", 1);
    make_squeue(NULL);
    deadline_open(&d);
    CHECK(d.job == NULL && d.child == 0 && d.end == 0);
    d.every = 0;
    deadline_poll(&d);
    CHECK_EQ_INT(d.child, 0);
    as_before();
}

/* Whatever squeue started goes with it, and nobody waits for it. */
static void test_a_squeue_that_hangs_is_given_up(void)
{
    deadline d;
    make_squeue("echo $$ >&2; sleep 1000; echo 1:00");
    setenv("SLURM_JOB_ID", "1", 1);
    deadline_open(&d);
    const pid_t child = d.child;
    CHECK(child > 0);
    deadline_poll(&d);
    CHECK_EQ_INT(d.child, child);
    d.patience = 0;
    await_answer(&d);
    CHECK(d.end == 0);
    CHECK(d.job != NULL); /* it may answer another time */
    for (int i = 0; i < 1000 && kill(-child, 0) == 0; i++)
        usleep(2000); /* the sleep is init's to bury */
    deadline_close(&d);
    make_squeue("sleep 1000");
    deadline_open(&d);
    deadline_close(&d);
    CHECK_EQ_INT(d.child, 0);
    as_before();
}

static void test_the_variable_comes_first(void)
{
    deadline d;
    char text[32];
    make_squeue("echo 1:00:00");
    setenv("SLURM_JOB_ID", "1", 1);
    snprintf(text, sizeof text, "%lld", (long long)time(NULL) + 1000);
    setenv("SLURM_JOB_END_TIME", text, 1);
    deadline_open(&d);
    CHECK_EQ_INT(d.child, 0);
    CHECK_TEXT(d.source, "SLURM_JOB_END_TIME");
    CHECK_CLOSE(d.end, app_seconds() + 1000, 0.1);
    setenv("SLURM_JOB_END_TIME", "1", 1); /* over, long before this machine began */
    deadline_open(&d);
    CHECK(d.end > 0 && d.end < app_seconds());
    as_before();
    deadline_open(&d); /* neither: no job */
    CHECK(d.end == 0 && d.child == 0);
}

/* ---- the earlier end, and what is told about it --------------------------------------------- */

static void test_the_earlier_end_is_told(void)
{
    char text[128] = "";
    stop_watch watch = {.folder = folder, .begun = app_seconds(), .limit = 7200};
    CHECK(stop_watch_news(&watch, text, sizeof text));
    CHECK_TEXT(text, "stops before ");
    CHECK_TEXT(text, "(--max-time)");
    CHECK(!stop_watch_news(&watch, text, sizeof text));
    watch.job = (deadline){.end = app_seconds() + 3600, .source = "squeue"};
    CHECK(stop_watch_news(&watch, text, sizeof text));
    CHECK_TEXT(text, "(squeue)");
    watch.job.end += 60; /* not worth a line */
    CHECK(!stop_watch_news(&watch, text, sizeof text));
    CHECK(!has_no_time(&watch));
    watch.job.end = app_seconds() + 10;
    watch.slowest = 4;
    watch.saving = 7;
    CHECK(has_no_time(&watch));
    CHECK_TEXT(watch.why, "(squeue)");
    watch.limit = 1; /* sooner than that */
    CHECK(has_no_time(&watch));
    CHECK_TEXT(watch.why, "--max-time");
    watch = (stop_watch){.folder = NULL, .limit = 1, .begun = app_seconds()};
    CHECK(!stop_watch_news(&watch, text, sizeof text)); /* not the root */
    watch = (stop_watch){.folder = folder};
    CHECK(!stop_watch_news(&watch, text, sizeof text)); /* any time */
    CHECK(!has_no_time(&watch));
}

/* Whether a file of the folder has that text. */
static bool file_has(const char *name, const char *text)
{
    static char all[1 << 16];
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "r");
    if (file == NULL) return false;
    all[fread(all, 1, sizeof all - 1, file)] = '\0';
    fclose(file);
    return strstr(all, text) != NULL;
}

/* mpirun puts its own folder before PATH, and a real squeue may be in that. */
static const char *ranks_with_this_path(void)
{
    static char launcher[TRAINING_TEXT];
    snprintf(launcher, sizeof launcher, TWO_RANKS " env PATH=%s", getenv("PATH"));
    return launcher;
}

static void test_a_run_stops_before_the_end_that_squeue_tells(void)
{
    setenv("SLURM_JOB_ID", "1", 1);
    make_squeue("echo 1:00:00");
    const pid_t child = training_start("", "squeue", "--steps 400 --batch 300 --no-quiet");
    for (int i = 0; i < 3000 && !file_has("squeue.txt", "(squeue)"); i++)
        usleep(5000);
    kill(child, SIGTERM);
    CHECK_EQ_INT(training_wait(child), 75);
    CHECK(file_has("squeue/log.txt", "(squeue)"));
    make_squeue("echo 0:00");
    const command_result *r = training_run("", "squeue", "--steps 400 --batch 300 --no-quiet");
    CHECK_EQ_INT(r->status, 75);
    CHECK_TEXT(r->text, "(squeue)");
    if (WEFT_TEST_MPIEXEC[0] != '\0') { /* the root is told, all stop */
        r = training_run(ranks_with_this_path(), "both",
                         "--steps 400 --batch 300 --layout batch:data");
        CHECK_EQ_INT(r->status, 75);
    }
    make_squeue("sleep 1000"); /* nobody waits for it, nor does it outlive the run */
    CHECK_EQ_INT(training_run("", "hangs", "--steps 400 --until 5")->status, 0);
    CHECK(!file_has("hangs/log.txt", "stops before"));
    as_before();
}

/* ---- time limits ---------------------------------------------------------------------------- */

/* Every step but the last was begun only because it, as slow as the slowest, would still fit. */
static void check_within(const char *name, double limit)
{
    char path[1024], line[1024];
    double total = 0, slowest = 0, last = 0;
    snprintf(path, sizeof path, "%s/%s/metrics.jsonl", folder, name);
    FILE *file = fopen(path, "r");
    if (!CHECK(file != NULL)) return;
    while (fgets(line, sizeof line, file) != NULL) {
        const char *at = strstr(line, "\"ms\":");
        total += last;
        if (last > slowest) slowest = last;
        last = at != NULL ? 1e-3 * atof(at + strlen("\"ms\":")) : 0;
    }
    fclose(file);
    CHECK(last > 0);
    CHECK(total == 0 || total + slowest <= limit);
}

static void test_random_limits(void)
{
    srand(7);
    for (int i = 0; i < 4; i++) {
        char name[32], log[64], arguments[128];
        const double limit = 0.3 + 0.7 * rand() / RAND_MAX;
        snprintf(name, sizeof name, "limit%d", i);
        snprintf(arguments, sizeof arguments, "--steps 400 --batch 600 --max-time %.3fs", limit);
        CHECK_EQ_INT(training_run("", name, arguments)->status, 75);
        check_within(name, limit);
        snprintf(log, sizeof log, "%s/log.txt", name);
        CHECK(file_has(log, "stops before") || training_losses(name, (double[401]){0}) == 1);
    }
}

/* When the last checkpoint was on the disk. */
static double saved_at(const char *name)
{
    char path[1024];
    struct stat facts;
    snprintf(path, sizeof path, "%s/%s/ckpt", folder, name);
    if (!CHECK(stat(path, &facts) == 0)) return 0;
    return (double)facts.st_mtim.tv_sec + 1e-9 * (double)facts.st_mtim.tv_nsec;
}

/* From when the time of ranks counts: mpirun takes its own to begin, and to end. */
#define DATED_RANKS                                                                                \
    TWO_RANKS " sh -c 'test $OMPI_COMM_WORLD_RANK != 0 || touch %s/begun; exec \"$@\"' sh"

static double ranks_began(void)
{
    char path[1024];
    struct stat facts;
    snprintf(path, sizeof path, "%s/begun", folder);
    if (!CHECK(stat(path, &facts) == 0)) return 0;
    return (double)facts.st_mtim.tv_sec + 1e-9 * (double)facts.st_mtim.tv_nsec;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* With a clock: for the long runs only. Every third under MPI, with saves in between. */
static void test_many_limits(int n)
{
    int n_late = 0, n_over = 0, n_done = 0;
    double saved = -1e9, ended[2] = {-1e9, -1e9};
    char ranks[1024];
    snprintf(ranks, sizeof ranks, DATED_RANKS, folder);
    srand(11);
    for (int i = 0; i < n; i++) {
        char name[32], arguments[256];
        const bool is_mpi = WEFT_TEST_MPIEXEC[0] != '\0' && i % 3 == 0;
        const double limit = 1.5 + 2.5 * rand() / RAND_MAX, begun = now();
        snprintf(name, sizeof name, "many%d", i);
        snprintf(arguments, sizeof arguments,
                 "--steps 400 --batch %d --max-time %.3fs --save-every %d%s", 200 + rand() % 2000,
                 limit, rand() % 2 * (1 + rand() % 9), is_mpi ? " --layout batch:data" : "");
        const command_result *r = training_run(is_mpi ? ranks : "", name, arguments);
        n_done += r->status == 0;
        CHECK(r->status == 75 || r->status == 0);
        check_within(name, limit);
        const double late = saved_at(name) - (is_mpi ? ranks_began() : begun) - limit;
        saved = fmax(saved, late);
        ended[is_mpi] = fmax(ended[is_mpi], r->seconds - limit);
        n_late += late > 0;
        n_over += !is_mpi && r->seconds > limit;
    }
    printf("%d limits, %d of them under mpirun; %d ended before their limit\n", n, (n + 2) / 3,
           n_done);
    printf("saved after the limit: %d, the latest %+.3f s\n", n_late, saved);
    printf("alone, ended after the limit: %d, the latest %+.3f s\n", n_over, ended[0]);
    printf("under mpirun, with its start and end: the latest %+.3f s\n", ended[1]);
    CHECK_EQ_INT(n_late + n_over, 0);
}

int main(int n, char **arguments)
{
    snprintf(path_before, sizeof path_before, "%s", getenv("PATH") ? getenv("PATH") : "/bin");
    if (!CHECK(text_folder_open("/tmp", "deadline"))) return weft_test_report();
    if (n == 3 && strcmp(arguments[1], "--many") == 0) {
        test_many_limits(atoi(arguments[2]));
    } else {
        RUN(test_every_form_of_time);
        RUN(test_squeue_is_asked_for_this_job);
        RUN(test_a_squeue_that_fails_or_talks_is_none);
        if (WEFT_TEST_EMULATOR[0] ==
            '\0') /* one does not tell that a program could not be started */
            RUN(test_no_squeue_is_not_asked_again);
        RUN(test_a_squeue_that_hangs_is_given_up);
        RUN(test_the_variable_comes_first);
        RUN(test_the_earlier_end_is_told);
        RUN(test_a_run_stops_before_the_end_that_squeue_tells);
        RUN(test_random_limits);
    }
    text_folder_close();
    return weft_test_report();
}
