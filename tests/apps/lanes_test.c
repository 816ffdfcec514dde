/* lanes_test: --lanes of every program: how many there are, from wherever it is said; the same numbers with any; a
 * sentence for what cannot be; a process that is bound, and one whose cores become fewer while it runs.
 */
#include "training.h"

#include <ctype.h>
#include <jansson.h>
#include <sched.h>

#define INFO WEFT_TEST_BIN "/weft info --json "

static void check_that(bool passed, int at, const char *line, const command_result *r)
{
    char text[4096];
    snprintf(text, sizeof text, "%.1500s\n    gave status %d and said: %.1500s", line, r->status,
             r->text);
    weft_test_check(passed, __FILE__, at, text);
}

/* A number of weft info --json; -1: there is none. */
static long long number_of(const char *line, const char *part, const char *name)
{
    const command_result *r = text_folder_run(line);
    const char *text = strchr(r->text, '{'); /* mpirun may say something first */
    json_t *all = text != NULL ? json_loads(text, JSON_DISABLE_EOF_CHECK, NULL) : NULL;
    const json_t *from = *part != '\0' ? json_object_get(all, part) : all;
    const json_t *value = json_object_get(from, name);
    const long long number = json_is_integer(value) ? json_integer_value(value) : -1;
    json_decref(all);
    return number;
}

static long long lanes_of(const char *line)
{
    return number_of(line, "mesh", "lanes");
}

/* ---- what is said ---------------------------------------------------------------------------- */

static void test_a_number_is_said(void)
{
    CHECK_EQ_INT(lanes_of(INFO "--lanes 3"), 3);
    CHECK_EQ_INT(lanes_of(INFO "--lanes 3 --mesh data:2"), 3);
    CHECK_EQ_INT(lanes_of("WEFT_LANES=5 " INFO), 5);
    CHECK_EQ_INT(lanes_of("WEFT_LANES=5 " INFO "--lanes 2"), 2);
    CHECK_EQ_INT(lanes_of(INFO "--lanes 1"), 1);
}

static void test_no_number_is_what_is_found(void)
{
    const long long n_cores = number_of(INFO, "", "cores"), lanes = lanes_of(INFO);
    CHECK(n_cores >= 1);
    CHECK(lanes >= 1 && lanes <= n_cores);
    CHECK_EQ_INT(lanes_of(INFO "--lanes 0"), lanes);
    CHECK_EQ_INT(lanes_of(INFO "--mesh data:1024"), 1);
}

static void test_every_program_has_it(void)
{
    static const char *const programs[] = {"gpt",     "mnist",    "charlm",
                                           "seq2seq", "word2vec", "weft info"};
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        char line[1024];
        snprintf(line, sizeof line, WEFT_TEST_BIN "/%s --help=all", programs[i]);
        const command_result *r = text_folder_run(line);
        check_that(strstr(r->text, "--lanes N ") != NULL && strstr(r->text, "0: as many") != NULL,
                   __LINE__, line, r);
    }
}

static void test_wrong_numbers_are_refused(void)
{
    static const char *const lines[] = {
        WEFT_TEST_BIN "/weft info --lanes -1",
        WEFT_TEST_BIN "/weft info --lanes 1025",
        WEFT_TEST_BIN "/weft info --lanes 99999999999999999999",
        WEFT_TEST_BIN "/weft info --lanes 1.5",
        WEFT_TEST_BIN "/weft info --lanes two",
        WEFT_TEST_BIN "/weft info --lanes ''",
        WEFT_TEST_BIN "/weft info --lanes",
        "WEFT_LANES=-1 " WEFT_TEST_BIN "/weft info",
        WEFT_TEST_BIN "/gpt train --data text.txt --lanes -1",
        WEFT_TEST_BIN "/charlm --data text.txt --lanes 4x",
        "echo 'lanes = many' >wrong; " WEFT_TEST_BIN "/gpt train --data text.txt --config wrong",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        const command_result *r = text_folder_run(lines[i]);
        check_that(r->status == 2 && command_lines(r->text, "") == 1 && strstr(r->text, "lanes"),
                   __LINE__, lines[i], r);
    }
}

/* ---- what a training does with it ------------------------------------------------------------ */

#define TRAIN                                                                                      \
    WEFT_TEST_BIN                                                                                  \
    "/gpt train --data text.txt --steps 4 --layers 2 --width 24 --heads 3 --batch 6 "              \
    "--seq 12 --dropout 0.2 "

static void test_no_number_depends_on_it(void)
{
    static const char *const lines[] = {
        TRAIN "--lanes 1 --run one",
        "echo 'lanes = 2 # of each rank' >two.txt; " TRAIN "--config two.txt --run two",
        "WEFT_LANES=5 " TRAIN "--run five",
        TRAIN "--run found",
    };
    static const char *const others[] = {"two", "five", "found"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        const command_result *r = text_folder_run(lines[i]);
        check_that(r->status == 0, __LINE__, lines[i], r);
    }
    CHECK_TEXT(text_folder_run("cat two/run.json")->text, "\"lanes\": 2");
    CHECK_TEXT(text_folder_run("cat five/run.json")->text, "\"lanes\": 5");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        char line[512];
        snprintf(line, sizeof line, WEFT_TEST_BIN "/weft ckpt diff one %s", others[i]);
        CHECK_TEXT(text_folder_run(line)->text, "no difference");
        CHECK(training_check(others[i], "one", 4));
    }
    /* and it is another number with which it goes on */
    CHECK_EQ_INT(text_folder_run(TRAIN "--lanes 3 --steps 6 --run one")->status, 0);
    CHECK_EQ_INT(text_folder_run(TRAIN "--lanes 1 --steps 6 --run two")->status, 0);
    CHECK(training_check("two", "one", 6));
}

static void test_the_head_says_it_where_it_was_chosen(void)
{
    CHECK_TEXT(text_folder_run(TRAIN "--lanes 2 --run head")->text, ", 2 lanes each");
    const char *text = text_folder_run(TRAIN "--fresh --run head")->text;
    CHECK(strstr(text, "core each") != NULL || strstr(text, "cores each") != NULL);
    CHECK(strstr(text, "lane each") == NULL && strstr(text, "lanes each") == NULL);
}

static void test_more_threads_than_cores_are_told_once(void)
{
    const command_result *r = text_folder_run(TRAIN "--lanes 700 --run crowd --dtype f64");
    CHECK_EQ_INT(r->status, 0);
    CHECK_EQ_INT(command_lines(r->text, "700 threads (1 rank of 700 lanes) share "), 1);
    r = text_folder_run(WEFT_TEST_BIN
                        "/charlm --data text.txt --steps 1 --lanes 700 --run crowd-charlm");
    CHECK_EQ_INT(r->status, 0);
    CHECK_EQ_INT(command_lines(r->text, "700 threads (1 rank of 700 lanes) share "), 1);
    if (WEFT_TEST_MPIEXEC[0] == '\0') return;
    r = text_folder_run(TWO_RANKS " " TRAIN "--lanes 300 --run crowd-mpi");
    CHECK_EQ_INT(r->status, 0);
    CHECK_EQ_INT(command_lines(r->text, "600 threads (2 ranks of 300 lanes) share "), 1);
}

/* ---- what the system does not give ----------------------------------------------------------- */

/* With stacks of 1 GB, a process of 12 GB has no room for 32 threads. */
#define LITTLE_ROOM "ulimit -s 1000000; ulimit -v 12000000; "

static void check_refused(const char *line, int status, const char *begin, const char *text)
{
    const command_result *r = text_folder_run(line);
    check_that(r->status == status && command_lines(r->text, begin) == 1 && strstr(r->text, text) &&
                   strstr(r->text, "fewer lanes a rank (--lanes)"),
               __LINE__, line, r);
}

static void test_a_thread_that_cannot_be_made(void)
{
    if (text_folder_run(LITTLE_ROOM)->status != 0 ||
        text_folder_run(LITTLE_ROOM INFO)->status != 0) {
        puts("skipped: this shell may not have other limits");
        return;
    }
    check_refused(LITTLE_ROOM WEFT_TEST_BIN "/weft info --lanes 32", 1,
                  "weft info: the 32 lanes of rank 0: started ", "of 32 threads");
    check_refused(LITTLE_ROOM TRAIN "--lanes 32 --run none", 1,
                  "gpt: the 32 lanes of rank 0: started ", "the system refused");
    if (WEFT_TEST_MPIEXEC[0] == '\0') return;
    check_refused(TWO_RANKS " sh -c 'test $OMPI_COMM_WORLD_RANK = 0 || " LITTLE_ROOM
                            "exec " WEFT_TEST_BIN "/weft info --lanes 32'",
                  1, "weft info: rank 1: the 32 lanes of rank 1: started ", "of 32 threads");
}

/* Root has no limit of this kind: it becomes another user first. */
static void test_more_threads_than_the_user_may_have(void)
{
    const char *as = getuid() == 0 ? "setpriv --reuid=65534 --clear-groups " : "";
    char line[2048];
    snprintf(line, sizeof line, "cd / && %sprlimit --nproc=200 " INFO, as);
    if (text_folder_run(line)->status != 0) {
        puts("skipped: no setpriv and prlimit here, or no other user may run the programs");
        return;
    }
    snprintf(line, sizeof line,
             "cd / && %sprlimit --nproc=200 " WEFT_TEST_BIN "/weft info --lanes 201", as);
    check_refused(line, 2, "weft info: mesh data:1 with 201 lanes a rank is 201 threads",
                  "the system allows 200 (ulimit -u)");
    snprintf(line, sizeof line,
             "cd / && %sprlimit --nproc=200 " WEFT_TEST_BIN "/weft info --lanes 51 --mesh data:4",
             as);
    check_refused(line, 2, "weft info: mesh data:4 with 51 lanes a rank is 204 threads", "200");
}

/* ---- cores that become fewer ----------------------------------------------------------------- */

/* All threads of a process onto one core; returns how many there were. */
static int bind_to_one(pid_t process)
{
    char path[64];
    cpu_set_t one;
    int n = 0;
    CPU_ZERO(&one);
    CPU_SET(command_first_core(), &one);
    snprintf(path, sizeof path, "/proc/%d/task", (int)process);
    DIR *all = opendir(path);
    for (struct dirent *each; all != NULL && (each = readdir(all)) != NULL;)
        if (isdigit((unsigned char)each->d_name[0]))
            n += sched_setaffinity(atoi(each->d_name), sizeof one, &one) == 0;
    if (all != NULL) closedir(all);
    return n;
}

static void test_fewer_cores_while_it_runs(void)
{
    const pid_t child = training_start("", "fewer", "--steps 60 --lanes 4");
    CHECK(training_await("fewer", 3));
    CHECK(bind_to_one(child) >= 4);
    CHECK_EQ_INT(training_wait(child), 0);
    const pid_t other = training_start("", "same", "--steps 60 --lanes 1");
    CHECK_EQ_INT(training_wait(other), 0);
    CHECK(training_check("fewer", "same", 60));
}

static void test_fewer_cores_of_processes(void)
{
    pid_t ranks[2];
    if (WEFT_TEST_MPIEXEC[0] == '\0') return;
    const pid_t child =
        training_start(TWO_RANKS, "fewer-mpi", "--steps 60 --lanes 2 --layout batch:data");
    CHECK(training_await("fewer-mpi", 3));
    CHECK_EQ_INT(training_ranks(child, ranks, 2), 2);
    for (int i = 0; i < 2; i++)
        CHECK(bind_to_one(ranks[i]) >= 2);
    CHECK_EQ_INT(training_wait(child), 0);
    CHECK_EQ_INT(training_losses("fewer-mpi", (double[TRAINING_STEPS + 1]){0}), 60);
}

/* ---- bound ----------------------------------------------------------------------------------- */

static void test_processes_that_are_bound(void)
{
    const long long n = number_of(INFO, "", "cores");
    char line[1024];
    if (WEFT_TEST_MPIEXEC[0] == '\0') return;
    CHECK_EQ_INT(lanes_of(TWO_RANKS " --bind-to none " INFO), n / 2 > 1 ? n / 2 : 1);
    snprintf(line, sizeof line, TWO_RANKS " taskset -c %d " INFO, command_first_core());
    CHECK_EQ_INT(lanes_of(line), 1);
    CHECK_TEXT(text_folder_run(line)->text,
               n > 1 ? "2 processes are bound to one core" : "share 1 core");
    if (n < 2 || text_folder_run(TWO_RANKS " --bind-to core true")->status != 0) {
        puts("skipped: two cores, to which mpirun can bind, are not here");
        return;
    }
    CHECK_EQ_INT(lanes_of(TWO_RANKS " --bind-to core " INFO), 1);
    CHECK_EQ_INT(number_of(TWO_RANKS " --bind-to core " INFO, "", "cores"), 1);
    if (n == 2)
        CHECK_TEXT(text_folder_run(TWO_RANKS " --bind-to core " INFO)->text, "\"note\": null");
    const char *of_one = WEFT_TEST_MPIEXEC " -n 1 --bind-to core " INFO;
    CHECK_TEXT(text_folder_run(of_one)->text, "the job's 1 process here may use 1 of the host's ");
}

static void test_another_machine(void)
{
    const char *line = "HWLOC_SYNTHETIC='core:4 pu:1' HWLOC_THISSYSTEM=1 " INFO;
    CHECK_EQ_INT(number_of(line, "found", "host_cores"), 4);
    const long long n = number_of(line, "", "cores");
    CHECK(n >= 1 && n <= 4);
    CHECK_EQ_INT(text_folder_run("HWLOC_SYNTHETIC='core:4 pu:1' HWLOC_THISSYSTEM=1 " TRAIN
                                 "--mesh data:2 --layout batch:data --run synthetic")
                     ->status,
                 0);
}

int main(void)
{
    if (CHECK(text_folder_open("/tmp", "lanes"))) {
        RUN(test_a_number_is_said);
        RUN(test_no_number_is_what_is_found);
        RUN(test_every_program_has_it);
        RUN(test_wrong_numbers_are_refused);
        RUN(test_no_number_depends_on_it);
        RUN(test_the_head_says_it_where_it_was_chosen);
        RUN(test_more_threads_than_cores_are_told_once);
        RUN(test_a_thread_that_cannot_be_made);
        RUN(test_more_threads_than_the_user_may_have);
        RUN(test_fewer_cores_while_it_runs);
        RUN(test_fewer_cores_of_processes);
        RUN(test_processes_that_are_bound);
        RUN(test_another_machine);
        text_folder_close();
    }
    return weft_test_report();
}
