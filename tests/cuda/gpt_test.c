/* gpt_test: gpt and mnist train on the device cuda, to the losses that they have on the CPU, under every kind of
 * layout, with ranks in a process and with MPI. They continue, from a checkpoint, on the other device. */
#include "apps/histograms_read.h"
#include "apps/text_folder.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "test.h"

enum { STEPS = 4, TEXT = 2000 };

#define SMALL                                                                                      \
    "--layers 2 --width 12 --heads 3 --batch 4 --seq 8 --warmup 2 --rate 3e-3 --dropout 0.1 "      \
    "--quiet "

/* The losses of a run, in a folder of its own or in `run`; returns how many there are. */
static int train(const char *launcher, const char *arguments, const char *run, double *losses)
{
    static int n_runs;
    char line[TEXT], path[256], own[40];
    snprintf(own, sizeof own, "run%d", ++n_runs);
    snprintf(path, sizeof path, "%s/metrics%d.jsonl", folder, n_runs);
    snprintf(line, sizeof line,
             "%s " WEFT_TEST_BIN "/gpt train --data %s/text.txt --run %s/%s " SMALL
             "--metrics %s %s 2>&1",
             launcher, folder, folder, run ? run : own, path, arguments);
    const command_result r = command_run_all(line);
    weft_test_check(r.status == 0, __FILE__, __LINE__, r.text);
    return text_folder_losses(path, losses, 2 * STEPS);
}

static void check_losses(const char *launcher, const char *arguments, const double *expected)
{
    double losses[2 * STEPS] = {0};
    char line[TEXT];
    snprintf(line, sizeof line, "--device cuda --steps %d %s", STEPS, arguments);
    weft_test_check(train(launcher, line, NULL, losses) == STEPS, __FILE__, __LINE__, arguments);
    for (int i = 0; i < STEPS; i++)
        weft_test_check(fabs(losses[i] - expected[i]) <= 1e-5 * expected[i], __FILE__, __LINE__,
                        arguments);
}

static double alone[2 * STEPS];

static void test_one_rank_has_the_losses_of_the_cpu(void)
{
    CHECK_EQ_INT(train("", "--device cpu --steps 4", NULL, alone), STEPS);
    check_losses("", "", alone);
}

static void test_every_layout_has_them(void)
{
    static const char *const layouts[] = {
        "--mesh data:2 --layout batch:data",
        "--mesh data:2 --layout batch:data --zero 3",
        "--mesh model:2 --layout hidden:model,heads:model,vocab:model",
        "--mesh data:2,model:2 --layout batch:data,hidden:model,heads:model,vocab:model",
        "--mesh data:2,model:2 --layout batch:data,seq:model --zero 3",
    };
    for (size_t k = 0; k < sizeof layouts / sizeof *layouts; k++)
        check_losses("", layouts[k], alone);
}

/* A file that is no library stands before the one that is: products are the plain kernels'. */
static void test_without_a_library_for_products_it_has_them(void)
{
    char path[600], before[900];
    const char *libraries = getenv("LD_LIBRARY_PATH");
    double losses[2 * STEPS] = {0};
    snprintf(path, sizeof path, "%s/libcublasLt.so.%s", folder, WEFT_TEST_CUDA_TOOLKIT);
    FILE *file = fopen(path, "w");
    if (!CHECK(file != NULL)) return;
    fputs("no library\n", file);
    fclose(file);
    snprintf(before, sizeof before, "LD_LIBRARY_PATH=%s:%s", folder, libraries ? libraries : "");
    CHECK_EQ_INT(train(before, "--device cuda --steps 4", NULL, losses), STEPS);
    for (int i = 0; i < STEPS; i++)
        CHECK_CLOSE(losses[i], alone[i], 1e-5);
    unlink(path);
}

/* Nearly the losses, and not quite: products, and in bf16 attention, are those that a library does in less than f32. */
static void test_products_in_less_than_f32_have_nearly_those_losses(void)
{
    static const char *const ways[] = {"--device cuda --steps 4 --precision tf32",
                                       "--device cuda --steps 4 --precision bf16"};
    for (int w = 0; w < 2; w++) {
        double losses[2 * STEPS] = {0}, off = 0;
        CHECK_EQ_INT(train("", ways[w], NULL, losses), STEPS);
        for (int i = 0; i < STEPS; i++) {
            CHECK_CLOSE(losses[i], alone[i], 2e-3);
            off = fmax(off, fabs(losses[i] - alone[i]));
        }
        CHECK(off > 0);
    }
}

/* Numbers of bf16, which attention takes as they are, on one rank and split. */
static void test_numbers_of_bf16_have_nearly_the_losses_of_the_cpu(void)
{
    static const char *const layouts[] = {"", "--mesh data:2 --layout batch:data --zero 3",
                                          "--mesh model:2 --layout hidden:model,heads:model"};
    double expected[2 * STEPS] = {0};
    CHECK_EQ_INT(train("", "--device cpu --steps 4 --dtype bf16", NULL, expected), STEPS);
    for (size_t k = 0; k < sizeof layouts / sizeof *layouts; k++) {
        double losses[2 * STEPS] = {0};
        char line[TEXT];
        snprintf(line, sizeof line, "--device cuda --steps 4 --dtype bf16 --precision bf16 %s",
                 layouts[k]);
        CHECK_EQ_INT(train("", line, NULL, losses), STEPS);
        for (int i = 0; i < STEPS; i++)
            CHECK_CLOSE(losses[i], expected[i], 2e-3);
    }
}

static void test_ranks_without_a_gpu_of_their_own_share_one_where_it_is_said(void)
{
    const char *arguments = "--mesh data:2 --layout batch:data --device cuda --steps 1";
    char line[TEXT];
    setenv("TEST_CUDA_DEVICES", "1", 1);
    snprintf(line, sizeof line,
             WEFT_TEST_BIN "/gpt train --data %s/text.txt --run %s/shared " SMALL "%s 2>&1", folder,
             folder, arguments);
    const command_result r = command_run_all(line);
    CHECK_EQ_INT(r.status, 2);
    CHECK_TEXT(r.text, "gpt: ranks 0 and 1 would share device cuda 0");
    CHECK_EQ_INT(command_lines(r.text, ""), 1);
    setenv("WEFT_SHARE_GPU", "1", 1);
    check_losses("", "--mesh data:2 --layout batch:data", alone);
    unsetenv("WEFT_SHARE_GPU");
    setenv("TEST_CUDA_DEVICES", "4", 1);
}

/* What is exchanged goes through the host's memory. */
static void test_processes_have_them(void)
{
    if (WEFT_TEST_MPIEXEC[0] == '\0') return;
    check_losses(WEFT_TEST_MPIEXEC " -n 2 --oversubscribe", "--layout batch:data --zero 3", alone);
    check_losses(WEFT_TEST_MPIEXEC " -n 4 --oversubscribe",
                 "--mesh data:2,model:2 --layout batch:data,hidden:model,heads:model,vocab:model",
                 alone);
    /* As where a launcher gives each process one GPU and hides the others. */
    setenv("TEST_CUDA_DEVICES", "1", 1);
    setenv("TEST_CUDA_APART", "1", 1);
    check_losses(WEFT_TEST_MPIEXEC " -n 2 --oversubscribe", "--layout batch:data", alone);
    unsetenv("TEST_CUDA_APART");
    setenv("TEST_CUDA_DEVICES", "4", 1);
}

/* Two steps on one device, and the rest on the other. */
static void test_a_checkpoint_goes_on_elsewhere(void)
{
    static const char *const devices[][2] = {{"cpu", "cuda"}, {"cuda", "cpu"}};
    for (int k = 0; k < 2; k++) {
        double losses[2 * STEPS] = {0};
        char line[TEXT], run[20];
        snprintf(run, sizeof run, "moved%d", k);
        snprintf(line, sizeof line, "--device %s --steps %d --until 2", devices[k][0], STEPS);
        CHECK_EQ_INT(train("", line, run, losses), 2);
        snprintf(line, sizeof line, "--device %s --steps %d --mesh data:2 --layout batch:data",
                 devices[k][1], STEPS);
        CHECK_EQ_INT(train("", line, run, losses + 2), STEPS - 2);
        for (int i = 0; i < STEPS; i++)
            CHECK_CLOSE(losses[i], alone[i], 1e-5 * alone[i]);
    }
}

/* ---- histograms ------------------------------------------------------------------------------- */

static read_file board_of(const char *name)
{
    char path[256], paths[2][512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (!CHECK_EQ_INT(read_folder(path, paths, 2), 1)) exit(1);
    return read_events(paths[0]);
}

/* They are counted where the variables are, and are those of the CPU; what is trained is the same with them. */
static void test_histograms_are_those_of_the_cpu(void)
{
    static const char *const ways[] = {"--device cpu", "--device cuda",
                                       "--device cuda --mesh data:2 --layout batch:data --zero 3"};
    read_file first = {0};
    for (int w = 0; w < 3; w++) {
        double losses[2 * STEPS] = {0};
        char line[TEXT], name[20];
        snprintf(name, sizeof name, "board%d", w);
        snprintf(line, sizeof line, "--steps %d --tensorboard %s/%s --histograms 2 %s", STEPS,
                 folder, name, ways[w]);
        CHECK_EQ_INT(train("", line, NULL, losses), STEPS);
        for (int i = 0; i < STEPS; i++)
            CHECK_CLOSE(losses[i], alone[i], 1e-5 * alone[i]);
        read_file f = board_of(name);
        CHECK(f.is_whole);
        if (w == 0) {
            first = f;
            continue;
        }
        CHECK(check_histograms(&first, &f) == 3 * 2 * 29 &&
              check_histograms(&f, &first) == 3 * 2 * 29);
        read_done(&f);
    }
    read_done(&first);
}

/* ---- mnist ------------------------------------------------------------------------------------ */

static double mnist_accuracy(const char *arguments)
{
    static int n_runs;
    char line[TEXT];
    snprintf(line, sizeof line,
             WEFT_TEST_BIN "/mnist --data " WEFT_TEST_DATA "/../../shared/data/mnist-t10k --run "
                           "%s/mnist%d --steps 10 --hidden 32 %s 2>&1",
             folder, n_runs++, arguments);
    const command_result r = command_run_all(line);
    const char *at = strstr(r.text, "test accuracy ");
    if (!weft_test_check(r.status == 0 && at != NULL, __FILE__, __LINE__, r.text)) return -1;
    return atof(at + strlen("test accuracy "));
}

static void test_mnist_learns_as_on_the_cpu(void)
{
    const double expected = mnist_accuracy("--device cpu");
    CHECK_CLOSE(mnist_accuracy("--device cuda"), expected, 0.5);
    CHECK_CLOSE(mnist_accuracy("--device cuda --mesh data:2,model:2 --layout "
                               "batch:data,hidden:model --zero 3"),
                expected, 0.5);
}

int main(void)
{
    setenv("TEST_CUDA_DEVICES", "4", 0); /* of the emulated driver */
    if (!CHECK(text_folder_open("/tmp", "cuda-gpt"))) return weft_test_report();
    RUN(test_one_rank_has_the_losses_of_the_cpu);
    RUN(test_every_layout_has_them);
    RUN(test_without_a_library_for_products_it_has_them);
    RUN(test_products_in_less_than_f32_have_nearly_those_losses);
    RUN(test_numbers_of_bf16_have_nearly_the_losses_of_the_cpu);
    RUN(test_ranks_without_a_gpu_of_their_own_share_one_where_it_is_said);
    RUN(test_processes_have_them);
    RUN(test_a_checkpoint_goes_on_elsewhere);
    RUN(test_histograms_are_those_of_the_cpu);
    if (access(WEFT_TEST_DATA "/../../shared/data/mnist-t10k", R_OK) == 0)
        RUN(test_mnist_learns_as_on_the_cpu);
    char line[TEXT];
    snprintf(line, sizeof line, "rm -r %s", folder);
    CHECK_EQ_INT(command_run(line).status, 0);
    return weft_test_report();
}
