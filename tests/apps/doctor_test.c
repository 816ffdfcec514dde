/* doctor_test: weft doctor runs alone and on several ranks, its JSON is JSON, and what is wrong
 * with a node fails with the way out. */
#include "training.h"

#include <jansson.h>
#include <sys/stat.h>

#define DOCTOR WEFT_TEST_BIN "/weft doctor "

/* A line of shell, its stdout and stderr. */
static const command_result *run_line(const char *format, const char *argument)
{
    static command_result last; /* large: not on the stack */
    char line[2 * TRAINING_TEXT], full[2 * TRAINING_TEXT + 64];
    snprintf(line, sizeof line, format, argument);
    snprintf(full, sizeof full, "cd %s && ( %s ) 2>&1", folder, line);
    last = command_run_all(full);
    return &last;
}

/* The line of that verdict and name; NULL: there is none. */
static const char *find_line(const command_result *r, const char *verdict, const char *name)
{
    char begin[64];
    snprintf(begin, sizeof begin, "  %-4s  %-11s  ", verdict, name);
    return strstr(r->text, begin);
}

static void check_line(const command_result *r, const char *verdict, const char *name,
                       const char *text)
{
    const char *line = find_line(r, verdict, name);
    char found[512];
    if (!weft_test_check(line != NULL, __FILE__, __LINE__, name)) {
        fprintf(stderr, "no line \"%s %s\" in:\n%s\n", verdict, name, r->text);
        return;
    }
    snprintf(found, sizeof found, "%.*s", (int)strcspn(line, "\n"), line);
    CHECK_TEXT(found, text);
}

static void check_fails(const command_result *r, const char *name, const char *text)
{
    CHECK_EQ_INT(r->status, 2);
    check_line(r, "fail", name, text);
}

static bool can_mount(void)
{
    return geteuid() == 0 &&
           run_line("unshare --mount mount -t tmpfs tmpfs /mnt%s", "")->status == 0;
}

/* ---- the tests ------------------------------------------------------------------------------ */

static void test_every_check_has_its_line(void)
{
    static const char *const names[] = {
#define DOCTOR_CHECK(name, function, scope) name,
#include "apps/weft/doctor/list.inc"
#undef DOCTOR_CHECK
    };
    const command_result *r = run_line(DOCTOR "--run %s", folder);
    int n_lines = 0;
    CHECK(r->status == 0 || strstr(r->text, "\n  fail  ") != NULL);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        n_lines += find_line(r, "ok", names[i]) || find_line(r, "warn", names[i]) ||
                   find_line(r, "fail", names[i]);
    CHECK(n_lines >= 20); /* some do not apply to every machine */
    check_line(r, "ok", "run", folder);
    check_line(r, "ok", "rename", "takes the place");
    if (WEFT_TEST_MPIEXEC[0] != '\0') check_line(r, "ok", "mpi", "MPI_THREAD_");
    CHECK_TEXT(run_line("ls -A%s", "")->text, "text.txt\n"); /* nothing is left behind */
    CHECK(strstr(run_line("ls -A%s", "")->text, "weft") == NULL);
}

static void test_json(void)
{
    const command_result *r = run_line(DOCTOR "--json%s", "");
    json_error_t where;
    json_t *report = json_loads(r->text, 0, &where);
    if (!weft_test_check(report != NULL, __FILE__, __LINE__, where.text)) return;
    CHECK_EQ_INT(json_is_true(json_object_get(report, "ok")), r->status == 0);
    const json_t *host = json_array_get(json_object_get(report, "hosts"), 0);
    const json_t *checks = json_object_get(host, "checks"), *line;
    size_t i;
    CHECK_EQ_INT(json_array_size(json_object_get(report, "hosts")), 1);
    CHECK(json_array_size(checks) >= 20);
    json_array_foreach(checks, i, line)
    {
        const char *verdict = json_string_value(json_object_get(line, "verdict"));
        CHECK(verdict != NULL && strstr("ok warn fail", verdict) != NULL);
        CHECK(json_string_length(json_object_get(line, "text")) > 0);
    }
    json_decref(report);
}

static void test_folders(void)
{
    check_fails(run_line(DOCTOR "--run nowhere/at/all%s", ""), "run", "--run DIR");
    check_fails(run_line(DOCTOR "--run text.txt%s", ""), "run", "not a folder");
    check_line(run_line(DOCTOR "--run new%s", ""), "ok", "run", "is made in it");
    check_line(run_line(DOCTOR "--run %s/new/", folder), "ok", "run", "is made in it");
    if (geteuid() == 0) return;
    check_fails(run_line("mkdir closed; chmod 555 closed; " DOCTOR "--run closed%s", ""), "run",
                "Permission denied");
}

static void test_limits(void)
{
    check_fails(run_line("ulimit -n 60; " DOCTOR "%s", ""), "ulimit -n", "at least 1024");
    check_line(run_line("ulimit -n 500; " DOCTOR "%s", ""), "warn", "ulimit -n", "500 open files");
    check_line(run_line("ulimit -s 1024; " DOCTOR "%s", ""), "warn", "ulimit -s", "1024 KiB");
    const command_result *r = run_line("ulimit -f 1000; " DOCTOR "%s", "");
    check_fails(r, "ulimit -f", "checkpoints are longer");
    check_line(r, "fail", "speed", "File too large");
    CHECK_EQ_INT(command_lines(r->text, "  ok    mpi "), WEFT_TEST_MPIEXEC[0] != '\0');
}

static void test_lanes(void)
{
    const command_result *r = run_line(DOCTOR "%s", "");
    check_line(r, "ok", "lanes", " a rank, each with a core of its own");
    check_line(run_line(DOCTOR "--lanes 900%s", ""), "warn", "lanes",
               "900 threads (1 rank of 900 lanes) share ");
#ifndef WEFT_SANITIZE /* which wants all of the address space */
    /* no room for so many stacks: a finding, not the end */
    r = run_line("ulimit -s 1000000; ulimit -v 12000000; " DOCTOR "--lanes 32%s", "");
    if (r->status < 0 || strstr(r->text, "ulimit:") != NULL) return;
    check_fails(r, "lanes", "fewer lanes a rank (--lanes)");
    check_line(r, "ok", "run", "can be written");
#endif
}

static void test_processes_on_one_core(void)
{
    char line[1024];
    if (WEFT_TEST_MPIEXEC[0] == '\0') return;
    snprintf(line, sizeof line, TWO_RANKS " taskset -c %d " DOCTOR "%%s", command_first_core());
    const bool has_others = sysconf(_SC_NPROCESSORS_ONLN) > 1;
    check_line(run_line(line, ""), "warn", "lanes",
               has_others ? "2 processes are bound to one core, while " : "share 1 core");
    snprintf(line, sizeof line, WEFT_TEST_MPIEXEC " -n 1 taskset -c %d " DOCTOR "%%s",
             command_first_core());
    if (has_others)
        check_line(run_line(line, ""), "warn", "lanes", "1 process here may use 1 of the host's");
}

static void test_a_run_that_is_under_way(void)
{
    check_line(run_line("mkdir -p held; " DOCTOR "--run held%s", ""), "ok", "run lock",
               "no job is training in");
    const pid_t child = training_start("", "held", "--steps 100000");
    CHECK(training_await("held", 1));
    check_fails(run_line(DOCTOR "--run held%s", ""), "run lock", "another job is training in held");
    check_fails(run_line(DOCTOR "--run held/%s", ""), "run lock", "on host ");
    kill(child, SIGTERM);
    (void)training_wait(child);
    check_line(run_line(DOCTOR "--run held%s", ""), "ok", "run lock", "no job is training in");
}

/* With a small, a full and a read-only file system of its own, which go with the process. */
static void test_disks(void)
{
    if (!can_mount()) return;
    check_fails(run_line("mkdir -p disk; unshare --mount sh -c 'mount -t tmpfs -o size=16m tmpfs "
                         "disk && " DOCTOR "--run disk%s'",
                         ""),
                "space", "16 MiB are free");
    const command_result *r = run_line("unshare --mount sh -c 'mount -t tmpfs -o nr_inodes=20 "
                                       "tmpfs disk && " DOCTOR "--run disk%s'",
                                       "");
    check_fails(r, "inodes", "files more");
    check_line(r, "warn", "file system", "is memory");
    r = run_line(
        "unshare --mount sh -c 'mount -t tmpfs -o ro tmpfs disk && " DOCTOR "--run disk%s'", "");
    check_fails(r, "run", "Read-only file system");
    CHECK(find_line(r, "ok", "rename") == NULL);
}

static void test_a_broken_mpi_does_not_break_it(void)
{
    if (WEFT_TEST_MPIEXEC[0] == '\0') return;
    const command_result *r = run_line("OMPI_MCA_pml=no_such " DOCTOR "%s", "");
    check_fails(r, "mpi", "MPI_Init");
    check_line(r, "ok", "run", "can be written"); /* the others are there all the same */
}

static void test_ranks(void)
{
    if (WEFT_TEST_MPIEXEC[0] == '\0') return;
    const command_result *r = run_line(FOUR_RANKS " " DOCTOR "%s", "");
    CHECK_EQ_INT(r->status, 0);
    CHECK_TEXT(r->text, ", 4 processes\n");
    CHECK_EQ_INT(command_lines(r->text, "  ok    run   "), 1); /* one table, from the root */
    check_line(r, "ok", "launcher", "4 on this host");
    CHECK(strstr(r->text, "what differs") == NULL);
    r = run_line(TWO_RANKS " " DOCTOR "--run nowhere/at/all%s", "");
    check_fails(r, "run", "--run DIR");
    if (!can_mount()) return;
    r = run_line("unshare --mount sh -c 'mount -t tmpfs -o size=8m tmpfs /dev/shm && "
                 "OMPI_MCA_btl=self,tcp " TWO_RANKS " " DOCTOR "%s'",
                 "");
    check_fails(r, "/dev/shm", "--mca btl self,tcp");
    /* one of two ranks has less: the line names it */
    r = run_line(WEFT_TEST_MPIEXEC " --oversubscribe -n 1 " DOCTOR "%s", "");
    CHECK_EQ_INT(r->status, 0);
    r = run_line(TWO_RANKS " sh -c 'test $OMPI_COMM_WORLD_RANK = 0 || ulimit -s 1024; exec " DOCTOR
                           "%s'",
                 "");
    check_line(r, "warn", "ulimit -s", "(process 1)");
}

int main(void)
{
    /* in memory where that can be: every doctor writes 64 MiB to the disk, synced */
    if (CHECK(text_folder_open("/dev/shm", "doctor") || text_folder_open("/tmp", "doctor"))) {
        RUN(test_every_check_has_its_line);
        RUN(test_json);
        RUN(test_folders);
        RUN(test_limits);
        RUN(test_lanes);
        RUN(test_processes_on_one_core);
        RUN(test_a_run_that_is_under_way);
        RUN(test_disks);
        RUN(test_a_broken_mpi_does_not_break_it);
        RUN(test_ranks);
        text_folder_close();
    }
    return weft_test_report();
}
