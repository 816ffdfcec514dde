/* answers_test: where the device cuda is not there, the programs say which part is missing, each in its own sentence; where it
 * is, they name it. */
#include "apps/command.h"

#include <stdlib.h>
#include <unistd.h>

#include "test.h"

#define INFO WEFT_TEST_BIN "/weft info --mesh data:1 "

static char nowhere[] = "/tmp/weft_answers_XXXXXX";

static const command_result *run(const char *line)
{
    static command_result last; /* large: not on the stack */
    last = command_run_all(line);
    return &last;
}

static const command_result *run_with(const char *before, const char *arguments)
{
    char line[2000];
    snprintf(line, sizeof line, "%s timeout 60 %s 2>&1", before, arguments);
    return run(line);
}

#define EMULATED "LD_LIBRARY_PATH=" WEFT_TEST_CUDA_DRIVER

static void check_refused(const char *before, const char *more, const char *fact)
{
    char arguments[1000];
    snprintf(arguments, sizeof arguments, INFO "--device cuda %s", more);
    const command_result *r = run_with(before, arguments);
    CHECK_EQ_INT(r->status, 2);
    CHECK_TEXT(r->text, "weft info: there is no device cuda");
    CHECK_TEXT(r->text, fact);
    CHECK_EQ_INT(command_lines(r->text, ""), 1);
}

static void test_no_library_no_driver_and_no_device_are_three_sentences(void)
{
    char more[200], broken[200], before[300];
    snprintf(more, sizeof more, "--device-path %s", nowhere);
    check_refused(EMULATED, more,
                  "has no libweft_cuda.so, which is built where the CUDA Toolkit is");
    snprintf(broken, sizeof broken, "%s/libcuda.so.1", nowhere);
    FILE *file = fopen(broken, "w"); /* a driver that cannot be loaded, whatever this machine has */
    if (file) fputs("no library\n", file), fclose(file);
    snprintf(before, sizeof before, "LD_LIBRARY_PATH=%s", nowhere);
    check_refused(before, "", "no NVIDIA driver can be loaded");
    unlink(broken);
    check_refused(
        EMULATED " TEST_CUDA_DEVICES=0 CUDA_VISIBLE_DEVICES=9", "",
        "the NVIDIA driver is there and finds no GPU: no CUDA-capable device is detected, "
        "and CUDA_VISIBLE_DEVICES is \"9\"");
}

static void test_the_nearest_name_is_asked_for(void)
{
    const command_result *r = run_with("", INFO "--device cuad");
    CHECK_EQ_INT(r->status, 2);
    CHECK_TEXT(r->text, "no device cuad; did you mean cuda?");
    CHECK_TEXT(run_with("", INFO "--device gpu")->text, "no device gpu; did you mean cuda?");
    r = run_with(EMULATED, INFO "--device cuda:1");
    CHECK_EQ_INT(r->status, 2);
    CHECK_TEXT(r->text, "no device cuda:1: a rank takes the one of its place among those of its "
                        "host; say cuda, and which there are by CUDA_VISIBLE_DEVICES=1");
    static const char *const others[] = {":1", "cu:1"}; /* numbers of no device */
    for (int k = 0; k < 2; k++) {
        char arguments[200];
        snprintf(arguments, sizeof arguments, INFO "--device %s", others[k]);
        r = run_with(EMULATED, arguments);
        CHECK_EQ_INT(r->status, 2);
        CHECK_TEXT(r->text, "it can be one of: auto, cpu, cuda");
    }
    r = run_with("WEFT_DEVICE=gpu", INFO);
    CHECK_EQ_INT(r->status, 2);
    CHECK_TEXT(r->text, "it can be one of: auto, cpu, cuda");
}

static void test_info_names_the_device_or_what_is_missing(void)
{
    const command_result *r = run_with(EMULATED, INFO);
    CHECK_EQ_INT(r->status, 0);
    CHECK_TEXT(r->text, "devices     cpu\n");
    CHECK_TEXT(r->text,
               "cuda: emulated GPU 0, number 0 of 1, compute capability 9.0, 4.0 GiB free");
    char before[200];
    snprintf(before, sizeof before, "WEFT_DEVICE_PATH=%s", nowhere);
    r = run_with(before, INFO);
    CHECK_EQ_INT(r->status, 0);
    CHECK_TEXT(r->text, "devices     cpu\n            there is no device cuda: /tmp/weft_answers_");
    r = run_with(EMULATED, INFO "--json");
    CHECK_TEXT(r->text, "\"cuda\"");
    r = run_with(before, INFO "--json");
    CHECK(strstr(r->text, "\"cuda\"") == NULL);
}

/* By what products and attention are computed, or why by plain kernels; a library of another major version is left alone. */
static void test_info_says_which_libraries_compute(void)
{
    char before[300];
    if (!WEFT_TEST_HAS_LIBRARIES) return;
    const command_result *r = run_with(EMULATED, INFO);
    CHECK(strstr(r->text, ", cuBLASLt ") != NULL && strstr(r->text, ", cuDNN ") != NULL);
    CHECK(strstr(r->text, "plain kernels") == NULL);
    r = run_with(EMULATED " TEST_CUDNN_VERSION=8905", INFO);
    CHECK_TEXT(r->text, ", cuDNN 8.9.5, built with ");
    CHECK_TEXT(r->text, ": attention, convolutions by plain kernels");
    r = run_with(EMULATED " TEST_CUDNN_VERSION=90800", INFO);
    CHECK_TEXT(r->text, ", cuDNN 9.8.0 (built with ");
    snprintf(before, sizeof before, "LD_LIBRARY_PATH=%s:" WEFT_TEST_CUDA_DRIVER, nowhere);
    char broken[200];
    snprintf(broken, sizeof broken, "%s/" WEFT_TEST_CUBLASLT, nowhere);
    FILE *file = fopen(broken, "w");
    if (file) fputs("no library\n", file), fclose(file);
    r = run_with(before, INFO);
    CHECK_EQ_INT(r->status, 0);
    CHECK_TEXT(r->text, ", no " WEFT_TEST_CUBLASLT ": products by plain kernels");
    unlink(broken);
}

static void test_auto_is_the_cpu_where_there_is_no_other(void)
{
    char before[200];
    snprintf(before, sizeof before, "WEFT_DEVICE_PATH=%s", nowhere);
    CHECK_EQ_INT(run_with(before, INFO "--device auto")->status, 0);
    CHECK_EQ_INT(run_with(EMULATED, INFO "--device auto")->status, 0);
}

static void test_every_process_takes_a_gpu_of_its_own(void)
{
    const command_result *r =
        run_with(EMULATED " TEST_CUDA_DEVICES=4 OMPI_COMM_WORLD_LOCAL_RANK=2", INFO);
    CHECK_TEXT(r->text, "emulated GPU 2, number 2 of 4");
    r = run_with(EMULATED " TEST_CUDA_DEVICES=2 SLURM_LOCALID=3", INFO);
    CHECK_TEXT(r->text, "emulated GPU 1, number 1 of 2");
}

static void test_the_doctor_names_it(void)
{
    const command_result *r = run_with(EMULATED, WEFT_TEST_BIN "/weft doctor");
    CHECK_TEXT(r->text, "gpu          emulated GPU 0");
    CHECK(strstr(r->text, "  fail  gpu") == NULL);
}

int main(void)
{
    if (mkdtemp(nowhere) == NULL) return 1;
    RUN(test_no_library_no_driver_and_no_device_are_three_sentences);
    RUN(test_the_nearest_name_is_asked_for);
    RUN(test_info_names_the_device_or_what_is_missing);
    RUN(test_info_says_which_libraries_compute);
    RUN(test_auto_is_the_cpu_where_there_is_no_other);
    RUN(test_every_process_takes_a_gpu_of_its_own);
    RUN(test_the_doctor_names_it);
    rmdir(nowhere);
    return weft_test_report();
}
