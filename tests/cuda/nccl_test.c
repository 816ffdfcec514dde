/* nccl_test: gpt by the engine nccl, on an emulated libnccl that adds up in an order of its own. It has the losses of
 * the CPU in every layout, between processes and between threads; with --deterministic the bits of the other engines.
 * A missing or failing piece is one sentence. */
#include "apps/text_folder.h"

#include <math.h>
#include <stdlib.h>

#include "test.h"

enum { STEPS = 3, TEXT = 2000 };

#define SMALL                                                                                      \
    "--layers 2 --width 12 --heads 3 --batch 4 --seq 8 --warmup 2 --rate 3e-3 --dropout 0.1 "      \
    "--quiet --steps 3 "
#define MPI   WEFT_TEST_MPIEXEC " --oversubscribe -n "
#define TWO_D "--mesh data:2,model:2 --layout batch:data,hidden:model,heads:model,vocab:model "

static const command_result *run(const char *launcher, const char *arguments, const char *metrics)
{
    static command_result last; /* large: not on the stack */
    static int n_runs;
    char line[TEXT];
    snprintf(line, sizeof line,
             "%s " WEFT_TEST_BIN "/gpt train --data %s/text.txt --run %s/run%d --metrics %s " SMALL
             "%s 2>&1",
             launcher, folder, folder, n_runs++, metrics, arguments);
    last = command_run_all(line);
    return &last;
}

static const char *train(const char *launcher, const char *arguments, double *losses)
{
    static int n_runs;
    char path[256];
    snprintf(path, sizeof path, "%s/metrics%d.jsonl", folder, n_runs++);
    const command_result *r = run(launcher, arguments, path);
    weft_test_check(r->status == 0, __FILE__, __LINE__, r->text);
    weft_test_check(text_folder_losses(path, losses, 2 * STEPS) == STEPS, __FILE__, __LINE__,
                    arguments);
    return r->text;
}

/* How often each of NCCL's was called, in all processes. */
static int count_calls(const char *text, const char *call)
{
    int n = 0;
    for (const char *at = text; (at = strstr(at, call)) != NULL; at += strlen(call))
        n += atoi(at + strlen(call));
    return n;
}

static double alone[2 * STEPS];

static void check_losses(const char *launcher, const char *arguments, const char *call)
{
    double losses[2 * STEPS] = {0};
    char line[TEXT];
    snprintf(line, sizeof line, "--device cuda %s", arguments);
    const char *text = train(launcher, line, losses);
    for (int i = 0; i < STEPS; i++)
        weft_test_check(fabs(losses[i] - alone[i]) <= 1e-5 * alone[i], __FILE__, __LINE__,
                        arguments);
    weft_test_check(count_calls(text, call) > 0, __FILE__, __LINE__, arguments);
}

static void test_threads_with_a_gpu_each_have_the_losses_of_the_cpu(void)
{
    check_losses("", "--mesh data:2 --layout batch:data", "ncclAllReduce");
    check_losses("", TWO_D "--zero 3", "ncclAllGather");
}

static void test_processes_have_them_in_every_layout(void)
{
    check_losses(MPI "2", "--layout batch:data", "ncclAllReduce");
    check_losses(MPI "2", "--layout batch:data --zero 3", "ncclReduceScatter");
    check_losses(MPI "4", TWO_D "--zero 1", "ncclAllReduce");
    check_losses(MPI "4", "--mesh data:2,model:2 --layout batch:data,seq:model --zero 3",
                 "ncclSend");
}

/* NCCL's order is another one; the order of the ranks is that of MPI and threads. */
static void test_deterministic_gives_the_bits_of_other_engines(void)
{
    const char *arguments = "--device cuda --mesh data:4 --layout batch:data --zero 1 ";
    double expected[2 * STEPS] = {0}, ordered[2 * STEPS] = {1}, own[2 * STEPS] = {0};
    char line[TEXT];
    snprintf(line, sizeof line, "%s --engine mpi", arguments);
    (void)train(MPI "4", line, expected);
    snprintf(line, sizeof line, "%s --deterministic", arguments);
    const char *text = train(MPI "4", line, ordered);
    CHECK_EQ_INT(count_calls(text, "ncclAllReduce") + count_calls(text, "ncclReduceScatter"), 0);
    CHECK(count_calls(text, "ncclSend") > 0);
    CHECK(memcmp(expected, ordered, STEPS * sizeof *expected) == 0);
    (void)train(MPI "4", arguments, own);
    CHECK(memcmp(expected, own, STEPS * sizeof *expected) != 0);
}

/* ---- what is missing or fails ------------------------------------------------------------------- */

static void check_refused(const char *launcher, const char *arguments, int status,
                          const char *sentence)
{
    const command_result *r = run(launcher, arguments, "/dev/null");
    CHECK_EQ_INT(r->status, status);
    CHECK_TEXT(r->text, sentence);
}

static void test_an_older_nccl_is_refused_by_name_and_else_left_alone(void)
{
    setenv("TEST_NCCL_VERSION", "21805", 1);
    check_refused(MPI "2", "--device cuda --engine nccl --layout batch:data", 2,
                  "gpt: engine nccl: libnccl.so.2 is NCCL 2.18.5, and this Weft was built for ");
    double losses[2 * STEPS] = {0};
    const char *text = train(MPI "2", "--device cuda --layout batch:data", losses);
    CHECK_EQ_INT(count_calls(text, "ncclAllReduce"), 0);
    unsetenv("TEST_NCCL_VERSION");
}

static void test_it_is_for_gpus_that_ranks_have_for_themselves(void)
{
    check_refused(MPI "2", "--engine nccl --layout batch:data", 2, "there is no engine nccl; ");
    setenv("TEST_CUDA_DEVICES", "1", 1);
    setenv("WEFT_SHARE_GPU", "1", 1);
    check_refused("", "--device cuda --engine nccl --mesh data:2 --layout batch:data", 2,
                  "ranks 0 and 1 of this process are on one GPU, cuda 0, which NCCL refuses");
    check_losses(MPI "2", "--engine nccl --layout batch:data",
                 "ncclAllReduce"); /* slow, on a GPU */
    double losses[2 * STEPS] = {0};
    const char *text = train(MPI "2", "--device cuda --layout batch:data", losses);
    CHECK_EQ_INT(count_calls(text, "ncclAllReduce"), 0);
    unsetenv("WEFT_SHARE_GPU");
    setenv("TEST_CUDA_DEVICES", "4", 1);
}

/* Each of two processes with a device of its own kind. */
static void test_ranks_on_other_devices_are_told_so(void)
{
    char one[TEXT];
    snprintf(one, sizeof one,
             MPI "1 " WEFT_TEST_BIN
                 "/gpt train --data %s/text.txt --run %s/mixed --device cpu " SMALL " : -n 1",
             folder, folder);
    check_refused(
        one, "--device cuda --engine mpi", 2,
        "rank 1 exchanges by engine mpi on cuda, but rank 0 by mpi; choose the same on all");
}

static void test_what_fails_names_the_call(void)
{
    setenv("TEST_NCCL_FAIL", "ncclAllReduce:3", 1);
    const command_result *r = run(MPI "2", "--device cuda --layout batch:data", "/dev/null");
    unsetenv("TEST_NCCL_FAIL");
    CHECK_EQ_INT(r->status, 71);
    CHECK_TEXT(r->text,
               ", in all_"); /* the one that failed, or the one that was put when it was known */
    CHECK_TEXT(r->text, "remote process exited or there was a network error; NCCL_DEBUG=INFO says "
                        "more");
}

int main(void)
{
    if (!WEFT_TEST_HAS_NCCL || WEFT_TEST_MPIEXEC[0] == '\0') {
        puts(WEFT_TEST_HAS_NCCL ? "skipped: built without MPI" : "skipped: built without nccl.h");
        return 77;
    }
    if (!CHECK(text_folder_open("/tmp", "cuda-nccl"))) return weft_test_report();
    setenv("TEST_CUDA_DEVICES", "4", 1);
    setenv("TEST_NCCL_TELL", "1", 1);
    (void)train("", "--device cpu", alone);
    RUN(test_threads_with_a_gpu_each_have_the_losses_of_the_cpu);
    RUN(test_processes_have_them_in_every_layout);
    RUN(test_deterministic_gives_the_bits_of_other_engines);
    RUN(test_an_older_nccl_is_refused_by_name_and_else_left_alone);
    RUN(test_it_is_for_gpus_that_ranks_have_for_themselves);
    RUN(test_ranks_on_other_devices_are_told_so);
    RUN(test_what_fails_names_the_call);
    char line[TEXT];
    snprintf(line, sizeof line, "rm -r %s", folder);
    CHECK_EQ_INT(command_run(line).status, 0);
    return weft_test_report();
}
