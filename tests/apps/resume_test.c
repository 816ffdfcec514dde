/* resume_test: the same command again continues a run: the losses of every step are those of the
 * run that nobody stopped, however it was stopped, on another mesh too.
 *
 * The programs are started, signalled and killed as a user or a batch system does it.
 */
#include "damage.h"
#include "losses.h"
#include "text_folder.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test.h"

enum { STEPS = 24, TEXT = 2048, RESUME_ME = 75 };
static double whole[STEPS + 1]; /* losses of the run that is not stopped, from index 1 */

#define SMALL                                                                                      \
    "--layers 2 --width 24 --heads 3 --batch 6 --seq 12 --dtype f64 --dropout 0.2 --quiet "
#define TWO_D                                                                                      \
    "--mesh data:2,model:2 --layout batch:data,hidden:model,heads:model,vocab:model --zero 1 "

/* gpt train in a run directory of that name; what it gave, until the next one. */
static const command_result *train(const char *launcher, const char *run, const char *arguments)
{
    static command_result last; /* large: not on the stack */
    char line[4 * TEXT];
    snprintf(line, sizeof line,
             "%s " WEFT_TEST_BIN "/gpt train --data %s/text.txt --run %s/%s " SMALL "%s", launcher,
             folder, folder, run, arguments);
    last = command_run(line);
    return &last;
}

/* Start it in the background; returns its process. Long enough that a signal finds it at work. */
static pid_t start(const char *run, const char *arguments)
{
    char line[4 * TEXT];
    snprintf(line, sizeof line,
             "exec " WEFT_TEST_BIN "/gpt train --data %s/text.txt --run %s/%s " SMALL "%s", folder,
             folder, run, arguments);
    const pid_t child = fork();
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", line, (char *)NULL);
        _exit(127);
    }
    return child;
}

static int read_losses(const char *run, double losses[STEPS + 1])
{
    char path[TEXT];
    snprintf(path, sizeof path, "%s/%s", folder, run);
    return losses_read(path, STEPS, losses);
}

/* Every step is there, with the losses `expected` within `relative` (0: to the bit). */
static void check_losses(const char *run, const double expected[STEPS + 1], double relative)
{
    double losses[STEPS + 1] = {0};
    CHECK_EQ_INT(read_losses(run, losses), STEPS);
    for (int i = 1; i <= STEPS; i++)
        CHECK_CLOSE(losses[i], expected[i], relative);
}

static void check_continued(const char *run, double relative)
{
    check_losses(run, whole, relative);
}

/* Wait until the run has a step numbered `step` in its metrics; false after 20 s. */
static bool await_step(const char *run, int step)
{
    double losses[STEPS + 1];
    for (int i = 0; i < 4000; i++) {
        if (read_losses(run, losses) >= step) return true;
        usleep(5000);
    }
    return false;
}

static int exit_status(pid_t child)
{
    int status = 0;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool is_there(const char *path)
{
    char full[TEXT];
    snprintf(full, sizeof full, "%s/%s", folder, path);
    return access(full, F_OK) == 0;
}

static void touch(const char *path)
{
    char full[TEXT];
    snprintf(full, sizeof full, "%s/%s", folder, path);
    FILE *file = fopen(full, "w");
    if (CHECK(file != NULL)) fclose(file);
}

/* ---- the tests ------------------------------------------------------------------------------ */

static void test_the_whole_run(void)
{
    const command_result *r = train("", "whole", "--steps 24");
    weft_test_check(r->status == 0, __FILE__, __LINE__, r->text);
    CHECK_EQ_INT(read_losses("whole", whole), STEPS);
    CHECK(whole[STEPS] < whole[1]);
    CHECK(is_there("whole/ckpt/step_00000024"));
}

static void test_stopped_by_until(void)
{
    CHECK_EQ_INT(train("", "until", "--steps 24 --until 7")->status, 0);
    CHECK(is_there("until/ckpt/step_00000007"));
    CHECK_EQ_INT(train("", "until", "--steps 24")->status, 0);
    check_continued("until", 0);
}

static void test_another_mesh_continues(void)
{
    CHECK_EQ_INT(train("", "mesh", "--steps 24 --until 9 " TWO_D)->status, 0);
    const command_result *r =
        train("", "mesh", "--steps 24 --until 15 --mesh data:3 --layout batch:data --zero 3");
    weft_test_check(r->status == 0, __FILE__, __LINE__, r->text);
    CHECK_EQ_INT(train("", "mesh", "--steps 24")->status, 0);
    check_continued("mesh", 1e-10);
}

/* Rates are of the step alone, and averages come back with the weights. */
static void test_other_rules_schedules_and_averages_continue(void)
{
    static const char other[] = "--steps 24 --optimizer muon --schedule cosine_restarts --warmup 3 "
                                "--period 4 --growth 2 --clip 0.05 --clip-by adaptive "
                                "--average 0.8";
    char line[TEXT];
    double expected[STEPS + 1] = {0};
    CHECK_EQ_INT(train("", "other", other)->status, 0);
    CHECK_EQ_INT(read_losses("other", expected), STEPS);
    CHECK(expected[STEPS] < expected[1] && expected[STEPS] != whole[STEPS]);
    snprintf(line, sizeof line, "%s --until 10", other);
    CHECK_EQ_INT(train("", "other_until", line)->status, 0);
    CHECK_EQ_INT(train("", "other_until", other)->status, 0);
    check_losses("other_until", expected, 0);
    snprintf(line, sizeof line, "%s --until 10 " TWO_D, other);
    CHECK_EQ_INT(train("", "other_mesh", line)->status, 0);
    CHECK_EQ_INT(train("", "other_mesh", other)->status, 0);
    check_losses("other_mesh", expected, 1e-9);
}

static void test_processes_continue_threads(void)
{
    if (WEFT_TEST_MPIEXEC[0] == '\0') return;
    CHECK_EQ_INT(train("", "mpi", "--steps 24 --until 5 --mesh data:2 --layout batch:data")->status,
                 0);
    const command_result *r = train(WEFT_TEST_MPIEXEC " -n 2 --oversubscribe", "mpi",
                                    "--steps 24 --save-every 4 --layout batch:data --zero 3");
    weft_test_check(r->status == 0, __FILE__, __LINE__, r->text);
    check_continued("mpi", 1e-10);
}

/* Steps long enough that a kill finds the run at work, in the middle of a save as well as between
 * two. */
static void test_killed_again_and_again(void)
{
    static const char long_steps[] = "--steps 24 --save-every 2 --batch 300";
    double expected[STEPS + 1] = {0};
    CHECK_EQ_INT(train("", "slow", long_steps)->status, 0);
    CHECK_EQ_INT(read_losses("slow", expected), STEPS);
    for (int step = 3; step < STEPS; step += 5) {
        int status = 0;
        const pid_t child = start("killed", long_steps);
        CHECK(await_step("killed", step));
        kill(child, SIGKILL);
        CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
    }
    CHECK_EQ_INT(train("", "killed", long_steps)->status, 0);
    check_losses("killed", expected, 0);
}

/* Change a byte in the middle of a file. */
static void damage(const char *path)
{
    char full[TEXT];
    snprintf(full, sizeof full, "%s/%s", folder, path);
    damage_middle(full);
}

static void test_a_damaged_checkpoint_is_passed_over(void)
{
    const char *const arguments = "--steps 24 --save-every 4 --keep 3 --no-quiet";
    CHECK_EQ_INT(train("", "damaged", "--steps 24 --save-every 4 --keep 3 --until 12")->status, 0);
    damage("damaged/ckpt/step_00000012/manifest.json");
    damage("damaged/ckpt/step_00000008/manifest.json");
    const command_result *r = train("", "damaged", arguments);
    weft_test_check(r->status == 0, __FILE__, __LINE__, r->text);
    CHECK_TEXT(r->text, "step 12 is damaged");
    CHECK_TEXT(r->text, "continues from the checkpoint of step 4");
    check_continued("damaged", 0);
}

/* A long run, so that the signal finds it at work; then no more than a step. */
static void check_signal(int number, const char *run)
{
    double losses[STEPS + 1];
    const pid_t child = start(run, "--steps 24 --until 24 --batch 600");
    CHECK(await_step(run, 2));
    kill(child, number);
    CHECK_EQ_INT(exit_status(child), RESUME_ME);
    const int done = read_losses(run, losses);
    char path[TEXT];
    CHECK(done >= 2 && done < STEPS);
    snprintf(path, sizeof path, "%s/ckpt/step_%08d", run, done);
    CHECK(is_there(path));
}

static void test_signals_save_and_stop(void)
{
    check_signal(SIGTERM, "term");
    check_signal(SIGUSR1, "usr1");
    check_signal(SIGINT, "int");
}

static void test_a_signal_to_mpirun_stops_all_ranks(void)
{
    char line[4 * TEXT];
    double losses[STEPS + 1];
    if (WEFT_TEST_MPIEXEC[0] == '\0') return;
    snprintf(line, sizeof line,
             "exec " WEFT_TEST_MPIEXEC " -n 2 --oversubscribe " WEFT_TEST_BIN
             "/gpt train --data %s/text.txt --run %s/all " SMALL
             "--steps 24 --batch 600 --layout batch:data >%s/all.txt 2>&1",
             folder, folder, folder);
    const pid_t child = fork();
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", line, (char *)NULL);
        _exit(127);
    }
    CHECK(await_step("all", 2));
    kill(child, SIGUSR1);
    CHECK_EQ_INT(exit_status(child), RESUME_ME);
    char path[TEXT];
    snprintf(path, sizeof path, "all/ckpt/step_%08d", read_losses("all", losses));
    CHECK(is_there(path));
}

static void test_failures_have_their_own_status(void)
{
    const command_result *r = train("", "full", "--steps 24 --metrics /dev/full");
    CHECK_EQ_INT(r->status, 74);
    CHECK_TEXT(r->text, "No space left");
    r = train("", "inf", "--steps 24 --rate 1e300 --warmup 0 --clip 0 --optimizer sgd");
    CHECK_EQ_INT(r->status, 76);
}

static void test_a_halt_file_stops_and_the_next_run_is_bit_exact(void)
{
    char path[TEXT];
    snprintf(path, sizeof path, "%s/halt", folder);
    CHECK_EQ_INT(mkdir(path, 0777), 0);
    touch("halt/halt");
    CHECK_EQ_INT(train("", "halt", "--steps 24")->status, RESUME_ME);
    CHECK(!is_there("halt/halt"));
    CHECK(is_there("halt/ckpt/step_00000001"));
    CHECK_EQ_INT(train("", "halt", "--steps 24")->status, 0);
    check_continued("halt", 0);
}

static void test_time_stops(void)
{
    double losses[STEPS + 1];
    CHECK_EQ_INT(train("", "time", "--steps 24 --max-time 0.001s")->status, RESUME_ME);
    CHECK_EQ_INT(read_losses("time", losses), 1);
    CHECK_EQ_INT(train("env SLURM_JOB_END_TIME=1", "time", "--steps 24")->status, RESUME_ME);
    CHECK_EQ_INT(read_losses("time", losses), 2);
    CHECK_EQ_INT(train("", "time", "--steps 24 --max-time 1h")->status, 0);
    check_continued("time", 0);
    const command_result *r = train("", "time", "--steps 24 --max-time 10");
    CHECK_EQ_INT(r->status, 2);
    CHECK_TEXT(r->text, "90s");
}

static void test_a_checkpoint_is_made_when_the_newest_is_old(void)
{
    CHECK_EQ_INT(train("", "aged", "--steps 6 --save-after 0.000001s --keep 9")->status, 0);
    CHECK(is_there("aged/ckpt/step_00000001") && is_there("aged/ckpt/step_00000005"));
    CHECK_EQ_INT(train("", "young", "--steps 6 --keep 9")->status, 0);
    CHECK(!is_there("young/ckpt/step_00000005") && is_there("young/ckpt/step_00000006"));
    if (WEFT_TEST_MPIEXEC[0] == '\0') return;
    CHECK_EQ_INT(train(WEFT_TEST_MPIEXEC " -n 2 --oversubscribe", "aged2",
                       "--steps 6 --save-after 0.000001s --keep 9 --layout batch:data")
                     ->status,
                 0);
    CHECK(is_there("aged2/ckpt/step_00000005") && is_there("aged2/ckpt/step_00000006"));
}

static void test_a_complete_run_says_so(void)
{
    char line[TEXT];
    snprintf(line, sizeof line,
             WEFT_TEST_BIN "/gpt train --data %s/text.txt --run %s/whole " SMALL
                           "--no-quiet --steps 24",
             folder, folder);
    const command_result r = command_run(line);
    CHECK_EQ_INT(r.status, 0);
    CHECK_TEXT(r.text, "complete");
    check_continued("whole", 0);
}

static void test_fresh_moves_aside(void)
{
    CHECK_EQ_INT(train("", "fresh", "--steps 24 --until 2")->status, 0);
    touch("fresh/mine");
    CHECK_EQ_INT(train("", "fresh", "--steps 24 --fresh")->status, 0);
    CHECK(is_there("fresh.1/mine"));
    CHECK(is_there("fresh.1/ckpt/step_00000002"));
    check_continued("fresh", 0);
    CHECK_EQ_INT(train("", "fresh", "--steps 24 --until 1 --fresh")->status, 0);
    CHECK(is_there("fresh.2/ckpt/step_00000024"));
}

static void test_resume_from_a_step_and_from_none(void)
{
    CHECK_EQ_INT(train("", "step", "--steps 24 --save-every 4 --keep 9 --until 14")->status, 0);
    CHECK_EQ_INT(train("", "step", "--steps 24 --resume 8 --until 9")->status, 0);
    CHECK(is_there("step/ckpt.1/step_00000012"));
    CHECK(is_there("step/ckpt/step_00000009"));
    CHECK_EQ_INT(train("", "step", "--steps 24 --resume 3")->status, 2);
    CHECK_EQ_INT(train("", "step", "--steps 24 --resume soon")->status, 2);
    CHECK_EQ_INT(train("", "step", "--steps 24 --resume none")->status, 0);
    CHECK(is_there("step/ckpt.2/step_00000009"));
    check_continued("step", 0);
}

static void test_another_model_is_refused(void)
{
    const command_result *r = train("", "whole", "--steps 30 --width 48");
    CHECK_EQ_INT(r->status, 2);
    CHECK_EQ_INT(command_lines(r->text, "gpt: "), 1);
    CHECK_TEXT(r->text, "--fresh");
    CHECK_TEXT(r->text, "48");
    r = train("", "whole", "--steps 30 --layers 1");
    CHECK_EQ_INT(r->status, 2);
    CHECK_TEXT(r->text, "tensors");
    r = train("", "whole", "--steps 30 --optimizer sgd");
    CHECK_EQ_INT(r->status, 2);
    CHECK_TEXT(r->text, "--fresh");
    r = train("", "whole", "--steps 30 --seed 2");
    CHECK_EQ_INT(r->status, 2);
    CHECK_TEXT(r->text, "seed 1");
    CHECK(is_there("whole/ckpt/step_00000024"));
}

int main(void)
{
    if (CHECK(text_folder_open("/tmp", "resume"))) {
        RUN(test_the_whole_run);
        RUN(test_stopped_by_until);
        RUN(test_another_mesh_continues);
        RUN(test_other_rules_schedules_and_averages_continue);
        RUN(test_processes_continue_threads);
        RUN(test_killed_again_and_again);
        RUN(test_a_damaged_checkpoint_is_passed_over);
        RUN(test_signals_save_and_stop);
        RUN(test_a_signal_to_mpirun_stops_all_ranks);
        RUN(test_failures_have_their_own_status);
        RUN(test_a_halt_file_stops_and_the_next_run_is_bit_exact);
        RUN(test_time_stops);
        RUN(test_a_checkpoint_is_made_when_the_newest_is_old);
        RUN(test_a_complete_run_says_so);
        RUN(test_fresh_moves_aside);
        RUN(test_resume_from_a_step_and_from_none);
        RUN(test_another_model_is_refused);
        text_folder_close();
    }
    return weft_test_report();
}
