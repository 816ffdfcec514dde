/* stuck_lanes_test: training whose lanes wait for each other ends, by the watch or at SIGTERM, and says which lanes,
 * at which step and line; on threads and as processes.
 */
#include "jobs.h"

#include <signal.h>
#include <unistd.h>

#include "test.h"

#define TRAIN                                                                                      \
    "timeout -s KILL 100 " WEFT_TEST_BIN "/gpt train --layers 1 --width 24 --heads 2 --batch 6 "   \
    "--seq 12 --dropout 0 --steps 5 --lanes 3 --patience 3s --plugin " WEFT_TEST_STUCK             \
    " --optimizer stalling --fresh --run /tmp/weft-stuck-lanes "
enum { HUNG = 72 };

static void check_paragraph(const job_run *job, int rank)
{
    char name[40];
    snprintf(name, sizeof name, "rank %d (host ", rank);
    CHECK_EQ_INT(job->status, HUNG);
    CHECK_TEXT(job->text, name);
    CHECK_TEXT(job->text, "its lanes have waited for each other");
    CHECK_TEXT(job->text, "at step 2");
    CHECK_TEXT(job->text, "in its own work of stall's result");
    CHECK_TEXT(job->text, "with 3 lanes that wait: lane 0 for the ");
    CHECK(strstr(job->text, "others of the team, lane 1 for a lane that is at these items in an "
                            "earlier pass, lane 0, lane 2 for") != NULL ||
          strstr(job->text, "part that it does for a late one, lane 1, lane 1 for") != NULL);
    if (job->status != HUNG) fprintf(stderr, "%s\n", job->text);
}

/* Once for each of 15 variables: the 20th time is in the second step. */
static void test_the_watch_ends_a_run_whose_lanes_wait_for_each_other(void)
{
    static job_run alone = {.line = "TEST_STALL_AT=20 " TRAIN " 2>&1"};
    jobs_run_one(&alone);
    check_paragraph(&alone, 0);
}

static void test_of_several_ranks_the_one_that_hangs_is_named(void)
{
    static job_run two = {.line =
                              "TEST_STALL_AT=50 " TRAIN " --mesh data:2 --layout batch:data 2>&1"};
    jobs_run_one(&two);
    CHECK_EQ_INT(two.status, HUNG);
    CHECK_TEXT(two.text, "its lanes have waited for each other");
}

/* Nobody ends it but who asked for that. */
static void test_without_patience_it_ends_at_a_signal(void)
{
    static job_run told = {.line =
                               "export TEST_STALL_AT=20; " TRAIN
                               "--patience 0s 2>&1 & child=$!; sleep 8; kill -0 $child || exit 9; "
                               "kill -TERM $child; wait $child"};
    jobs_run_one(&told);
    check_paragraph(&told, 0);
}

/* What was saved before is whole: the same command, where nothing stalls, continues from there. */
static void test_what_was_saved_is_there(void)
{
    static job_run hung = {.line = "TEST_STALL_AT=20 " TRAIN " --save-every 1 2>&1"};
    static job_run next = {.line = "TEST_STALL_AT=0 " TRAIN " --no-fresh 2>&1"};
    jobs_run_one(&hung);
    CHECK_EQ_INT(hung.status, HUNG);
    CHECK_TEXT(hung.text, "Newest checkpoint: step 1");
    jobs_run_one(&next);
    CHECK_EQ_INT(next.status, 0);
    CHECK_TEXT(next.text, "step 1");
    CHECK_TEXT(next.text, "\n       5 ");
    if (next.status != 0) fprintf(stderr, "%s\n", next.text);
}

int main(void)
{
    RUN(test_the_watch_ends_a_run_whose_lanes_wait_for_each_other);
    RUN(test_of_several_ranks_the_one_that_hangs_is_named);
    RUN(test_without_patience_it_ends_at_a_signal);
    RUN(test_what_was_saved_is_there);
    return weft_test_report();
}
