/* recover_test: a program dies while it restores, while it removes an old checkpoint, while it
 * passes over a damaged one, and fifty times before it has done a step. The next start succeeds,
 * with the state that is due, and nothing has grown.
 *
 * --kills N: how many kills of each kind.
 */
#include "damage.h"
#include "runs.h"

#include "../io/faults.h"

static const char arguments[] = "--steps 24 --save-every 3 --keep 2";
static const char until_12[] = "--steps 24 --save-every 3 --keep 2 --until 12";

/* Put the library between gpt and libc, for its checkpoints. */
static void environment_of(const char *run, unsigned calls, int64_t at, fault_action action,
                           char text[TEXT])
{
    const char *options = getenv("ASAN_OPTIONS");
    snprintf(text, TEXT,
             "LD_PRELOAD=" WEFT_TEST_FAULTS_LIBRARY
             " ASAN_OPTIONS=%s%sverify_asan_link_order=0 " FAULTS_VARIABLE
             "='%u %lld %d 0 0 %s/%s/ckpt'",
             options ? options : "", options ? ":" : "", calls, (long long)at, (int)action, folder,
             run);
}

/* One run that dies at the call; false when it has not so many. */
static bool dies_at(unsigned calls, int64_t at, const char *more)
{
    char environment[TEXT];
    environment_of("dying", calls, at, FAULT_CRASH_BEFORE, environment);
    const int status = run_to_the_end(&on_threads, environment, "dying", more);
    if (status == 0) return false;
    CHECK_EQ_INT(status, 128 + SIGKILL);
    return true;
}

static void check_next_start(const char *reference)
{
    CHECK_EQ_INT(run_to_the_end(&on_threads, "", "dying", arguments), 0);
    is_as("dying", reference);
    CHECK(!is_saving("dying", NULL));
}

static int n_kills = 1;

/* The n_kills calls are spread over all that there are: 1, 1 + stride, ... */
static void kill_at_calls(const char *name, const char *from, unsigned calls, const char *more)
{
    int n_tried = 0;
    for (int64_t at = 1, most = 0; n_tried < n_kills && weft_test_.n_failed < 8; n_tried++) {
        copy_run(from, "dying");
        if (!dies_at(calls, at, more)) {
            if (CHECK(at > 1 && most == 0)) most = at;
            n_tried--;
            at = 1 + n_tried % (at - 1); /* once more through them */
            continue;
        }
        check_next_start("whole");
        at += most ? 1 : 1 + 80 / n_kills;
        if (most && at >= most) at = 1;
    }
    printf("  %s: %d kills\n", name, n_tried);
}

static void test_killed_while_restoring(void)
{
    kill_at_calls("restoring", "half", 1u << FAULT_READ, arguments);
}

static void test_killed_while_removing(void)
{
    kill_at_calls("removing old ones", "half", 1u << FAULT_UNLINK | 1u << FAULT_SYNC, arguments);
}

/* Change a byte in the middle of a file of the newest. */
static void damage(const char *file)
{
    char path[TEXT];
    snprintf(path, sizeof path, "%s/hurt/ckpt/step_00000012/%s", folder, file);
    damage_middle(path);
}

static void test_killed_while_passing_over_a_damaged_one(void)
{
    copy_run("half", "hurt");
    damage("state.h5");
    kill_at_calls("passing over a damaged one", "hurt", FAULT_CHANGES | 1u << FAULT_READ,
                  arguments);
}

/* ---- before the first step ------------------------------------------------------------------- */

/* Names and lengths of all that is in the run; what its steps and checkpoints are, to the bit. */
static void describe(const char *run, char text[TEXT])
{
    char line[TEXT];
    snprintf(line, sizeof line,
             "cd %s/%s && find . -type f -printf '%%p %%s\\n' | sort; "
             "find ckpt metrics.jsonl -type f -exec cksum {} + | sort",
             folder, run);
    snprintf(text, TEXT, "%s", command_run_all(line).text);
}

static void test_killed_before_a_step_ends(void)
{
    enum { NO_STEP = 12 };
    static const unsigned calls = 1u << FAULT_READ | 1u << FAULT_CLOSE | 1u << FAULT_SYNC;
    static char before[TEXT], after[TEXT];
    const int n = n_kills > 50 ? 50 : n_kills;
    double losses[STEPS + 1];
    copy_run("half", "dying");
    CHECK(dies_at(calls, 1, arguments)); /* what the last run has recorded is kept, once */
    describe("dying", before);
    for (int i = 0; i < n; i++)
        CHECK(dies_at(calls, 1 + i % 16, arguments));
    describe("dying", after);
    CHECK(strlen(before) > 200);
    CHECK(strcmp(before, after) == 0);
    shell("diff -r '%s/%s/ckpt' '%s/%s/ckpt'", "half", "dying");
    CHECK_EQ_INT(read_losses("dying", losses), NO_STEP);
    check_next_start("whole");
    printf("  before a step ends: %d kills in a row\n", n + 1);
}

int main(int n, char **all)
{
    if (n > 2 && strcmp(all[1], "--kills") == 0) n_kills = atoi(all[2]);
    if (CHECK(open_runs(arguments)) &&
        CHECK_EQ_INT(run_to_the_end(&on_threads, "", "half", until_12), 0)) {
        RUN(test_killed_while_restoring);
        RUN(test_killed_while_removing);
        RUN(test_killed_while_passing_over_a_damaged_one);
        RUN(test_killed_before_a_step_ends);
        close_runs();
    }
    return weft_test_report();
}
